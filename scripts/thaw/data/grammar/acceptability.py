"""Acceptability: minimal pairs of agreement across an intervening noun or clause, reflexives, and word order."""

from thaw.data.grammar.morphology import past, plural, sentence, with_s
from thaw.data.grammar.words import ACTS, PEOPLE, PLACES, TRAITS

SEED = 1101

RESTS = """
smile laugh sing dance sleep cry swim travel complain wait shout read cook run walk whisper pray study drink argue
""".split()
WHEN = ["every day", "at night", "in the morning", "after work", "on Sundays", "in winter", "all the time", "in public",
        "before lunch"]  # fmt: skip
BESIDE = ["near", "behind", "beside", "next to", "in front of"]
MEN = "king man boy prince father uncle brother policeman monk son grandfather actor".split()
WOMEN = "queen woman girl princess mother aunt sister actress nun daughter grandmother lady".split()
HARMS = "hurt blame admire see hide trust describe defend draw praise".split()
COPULAS = [("is", "are"), ("was", "were"), ("has been", "have been"), ("seems", "seem"), ("looks", "look")]


def noun(word: str, many: bool) -> str:
    """Return a noun phrase in the number wanted."""
    return "the " + (plural(word) if many else word)


def verb(word: str, many: bool) -> str:
    """Return a verb of the present in the number wanted."""
    return word if many else with_s(word)


def subject(pen, many: bool) -> str:
    """Write a subject whose noun is followed by another of the other number, in a phrase or a clause."""
    head, other = pen.words(PEOPLE, 2)
    act = pen.word(ACTS)
    attractor = noun(other, not many)
    return noun(head, many) + pen.form([
        f" {pen.form(BESIDE)} {attractor}",
        f" who {verb(act, many)} {attractor}",
        f" that {attractor} {verb(act, not many)}",
    ])  # fmt: skip


def agreement(pen) -> tuple[str, str]:
    """Write a subject with a verb that agrees with it, and with one that agrees with the noun before it."""
    many = pen.toss()
    start = subject(pen, many)
    if pen.toss():
        copula, trait = pen.form(COPULAS), pen.word(TRAITS)
        return tuple(f"{start} {copula[number]} {trait}" for number in (many, not many))
    rest, when = pen.word(RESTS), pen.word(WHEN)
    return tuple(f"{start} {verb(rest, number)} {when}" for number in (many, not many))


def reflexive(pen) -> tuple[str, str]:
    """Write a reflexive that goes back to the subject, and one that goes back to the noun between them."""
    kinds = pen.shuffled([(MEN, "himself"), (WOMEN, "herself"), (MEN + WOMEN, "themselves")])[:2]
    (heads, right), (others, wrong) = kinds
    head = noun(pen.word(heads), right == "themselves")
    other = noun(pen.word(others), wrong == "themselves")
    start = f"{head} {pen.form(BESIDE)} {other} {past(pen.word(HARMS))}"
    return f"{start} {right}", f"{start} {wrong}"


def order(pen) -> tuple[str, str]:
    """Write a plain sentence, and the same with two neighbouring words exchanged."""
    head, other = pen.words(PEOPLE, 2)
    words = f"the {pen.word(TRAITS)} {head} has often {past(pen.word(ACTS))} the {other} in the {pen.word(PLACES)}"
    good = words.split()
    place = pen.form([0, 1, 3, 4, 6, 8, 9])
    bad = good[:place] + [good[place + 1], good[place]] + good[place + 2 :]
    return " ".join(good), " ".join(bad)


def family(pen) -> list[dict]:
    """Write a minimal pair: one acceptable sentence and one that differs in one word or in word order."""
    good, bad = pen.form([agreement, agreement, agreement, reflexive, order])(pen)
    return [
        {"sentence": sentence(good), "label": "acceptable"},
        {"sentence": sentence(bad), "label": "unacceptable"},
    ]
