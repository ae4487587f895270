"""English word forms: as much of the regular rules, and as many exceptions, as the word lists need."""

PLURALS = {"man": "men", "woman": "women", "policeman": "policemen", "thief": "thieves"}
PAST = {
    "buy": "bought", "sell": "sold", "find": "found", "lose": "lost", "steal": "stolen", "see": "seen",
    "draw": "drawn", "choose": "chosen", "hurt": "hurt", "hide": "hidden",
}  # fmt: skip
SIMPLE_PAST = {"stolen": "stole", "seen": "saw", "drawn": "drew", "chosen": "chose", "hidden": "hid"}
VOWELS = "aeiou"
DOUBLED = ("hug",)


def plural(noun: str) -> str:
    """Return the plural of a noun."""
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


def with_article(noun: str) -> str:
    """Return a noun (or adjective and noun) behind its indefinite article."""
    return ("an " if noun[0] in VOWELS else "a ") + noun


def sentence(text: str) -> str:
    """Return a text as a written sentence: first letter large, full stop, no space before punctuation."""
    text = " ".join(text.split()).replace(" ,", ",")
    return text[0].upper() + text[1:] + "."
