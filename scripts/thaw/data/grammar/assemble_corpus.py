"""From families to frames: draw families of examples until each split is full, without a repeated sentence.

A corpus module has a SEED and `family(sampler) -> list[dict]`: a few examples that differ as little as possible while
their labels differ, so that labels are balanced and single words say little. A family never leaves its split. The
column `family` names it, since a row whose twin was fitted is not unseen. Families that share a sentence are one.
"""

import random

from thaw.data.carving import components, normalise

PEOPLE = """
nurse pilot doctor lawyer teacher student farmer singer dancer writer painter soldier sailor driver waiter banker
artist actor author editor baker guard judge priest scientist engineer gardener neighbor visitor tourist coach player
manager director minister senator captain officer hunter thief merchant reporter detective butler tailor miner
""".split()

PLACES = """
garden kitchen library museum station park harbor market church school office theater hotel hospital forest village
castle airport cafe stadium
""".split()

ACTS = """
thank call help visit follow warn greet trust blame praise admire hire push watch phone insult invite attack accuse
miss remember ignore rescue kiss hug question punish chase mock interview annoy surprise defend summon fear support
""".split()

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split() + "Easter Christmas".split()

TRAITS = """
old young tall short rich poor famous clever lazy polite shy brave quiet angry happy proud nervous gentle honest
friendly
""".split()


PLURALS = {"man": "men", "woman": "women", "policeman": "policemen", "thief": "thieves"}
PAST = {
    "buy": "bought", "sell": "sold", "find": "found", "lose": "lost", "steal": "stolen", "see": "seen",
    "draw": "drawn", "choose": "chosen", "hurt": "hurt", "hide": "hidden",
}  # fmt: skip
SIMPLE_PAST = {"stolen": "stole", "seen": "saw", "drawn": "drew", "chosen": "chose", "hidden": "hid"}
VOWELS = "aeiou"
DOUBLED = ("hug",)


def plural(noun: str) -> str:
    return PLURALS.get(noun) or with_s(noun)


def with_s(word: str) -> str:
    """Return a word with the ending -s: a plural noun or a verb of the third person singular."""
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "sh", "ch", "x", "z")) else "s")


def participle(verb: str) -> str:
    if verb in PAST:
        return PAST[verb]
    if verb.endswith("y") and verb[-2] not in VOWELS:
        return verb[:-1] + "ied"
    if verb in DOUBLED:
        return verb + verb[-1] + "ed"
    return verb + ("d" if verb.endswith("e") else "ed")


def ing(verb: str) -> str:
    if verb in DOUBLED:
        return verb + verb[-1] + "ing"
    return (verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb) + "ing"


def past(verb: str) -> str:
    return SIMPLE_PAST.get(participle(verb), participle(verb))


def sentence(text: str) -> str:
    """Return a text as a written sentence: first letter large, full stop, no space before punctuation."""
    text = " ".join(text.split()).replace(" ,", ",")
    return text[0].upper() + text[1:] + "."


def part(words: list, split: str) -> list:
    """Return a split's share of a word list: of each three words one is for all, one for train, one for test.

    Validation writes with the words of train, so that test alone asks about words never trained on.
    """
    unused = 1 if split == "test" else 2
    return [word for position, word in enumerate(words) if position % 3 != unused]


class SentenceSampler:
    """Seeded choices for one split; `rng` is shared by the splits of a corpus, so their order matters."""

    def __init__(self, rng: random.Random, split: str):
        self.rng = rng
        self.split = split

    def word(self, words: list):
        """Return one entry of the split's part of a word list."""
        return self.rng.choice(part(words, self.split))

    def words(self, words: list, count: int) -> list:
        """Return several different entries of the split's part of a word list."""
        return self.rng.sample(part(words, self.split), count)

    def form(self, forms):
        """Return one of several forms (templates, function words), which all splits share."""
        return self.rng.choice(forms)

    def bernoulli(self, probability: float = 0.5) -> bool:
        return self.rng.random() < probability

    def shuffled(self, items: list) -> list:
        return self.rng.sample(items, len(items))


ROWS = {"train": 1008, "validation": 300, "test": 504}
TEXTS = ("sentence", "sentence_a", "sentence_b", "words")


def frames(corpus) -> dict:
    """Return split -> pandas frame of a corpus module; no example occurs twice, no sentence in two splits."""
    import pandas

    rng = random.Random(corpus.SEED)
    split_of: dict[str, str] = {}
    written: set[tuple] = set()
    result = {}
    for split, size in ROWS.items():
        sampler = SentenceSampler(rng, split)
        rows: list[dict] = []
        texts: list = []
        while len(rows) < size:
            family = corpus.family(sampler)
            keys = [tuple(normalise(example[name]) for name in TEXTS if name in example) for example in family]
            strange = any(split_of.get(text, split) != split for key in keys for text in key)
            repeated = len(set(keys)) < len(keys) or any(len(set(key)) < len(key) for key in keys)
            if strange or repeated or written.intersection(keys) or len(rows) + len(family) > size:
                continue
            written.update(keys)
            split_of.update((text, split) for key in keys for text in key)
            texts += [[f" {len(rows)}", *key] for key in keys]  # no sentence begins with a blank
            rows.extend(family)
        result[split] = pandas.DataFrame(rows).assign(family=components(texts))
    return result
