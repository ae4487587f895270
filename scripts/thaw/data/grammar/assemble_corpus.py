"""From families to frames: draw families of examples until each split is full, without a repeated sentence.

A corpus module has a SEED and `family(sampler) -> list[dict]`: a few examples that differ as little as possible while
their labels differ, so that labels are balanced and single words say little. A family never leaves its split. The
column `family` names it, since a row whose twin was fitted is not unseen. Families that share a sentence are one.
"""

import random

from thaw.data.carving import components, normalise


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
        """Return True with the given probability."""
        return self.rng.random() < probability

    def shuffled(self, items: list) -> list:
        """Return the items in a new random order."""
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
