"""English word forms: as much of the regular rules, and as many exceptions, as the word lists need."""

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
    """Return the past participle of a verb."""
    if verb in PAST:
        return PAST[verb]
    if verb.endswith("y") and verb[-2] not in VOWELS:
        return verb[:-1] + "ied"
    if verb in DOUBLED:
        return verb + verb[-1] + "ed"
    return verb + ("d" if verb.endswith("e") else "ed")


def ing(verb: str) -> str:
    """Return the present participle of a verb."""
    if verb in DOUBLED:
        return verb + verb[-1] + "ing"
    return (verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb) + "ing"


def past(verb: str) -> str:
    """Return the simple past of a verb."""
    return SIMPLE_PAST.get(participle(verb), participle(verb))


def sentence(text: str) -> str:
    """Return a text as a written sentence: first letter large, full stop, no space before punctuation."""
    text = " ".join(text.split()).replace(" ,", ",")
    return text[0].upper() + text[1:] + "."
