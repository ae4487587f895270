"""Acceptability: minimal pairs of agreement across an intervening noun or clause, reflexives, and word order."""

from thaw.data.grammar.assemble_corpus import (
    ACTS,
    PEOPLE,
    PLACES,
    TRAITS,
    ing,
    participle,
    past,
    plural,
    sentence,
    with_s,
)

SEED = 1101

ADVERBS = ["often", "never", "always", "probably", "now", "also"]
RESTS = """
smile laugh dance complain wait shout cough walk whisper pray yawn argue sneeze snore tremble faint giggle blush shiver
smoke
""".split()
WHEN = ["every day", "at night", "in the morning", "after work", "on Sundays", "in winter", "all the time", "in public",
        "before lunch"]  # fmt: skip
NEXT_TO = ["near", "behind", "beside", "next to", "in front of"]
MEN = "king man boy prince father uncle brother policeman monk son grandfather wizard".split()
WOMEN = "queen woman girl princess mother aunt sister actress nun daughter grandmother lady".split()
HARMS = "hurt blame admire see hide trust describe defend draw praise".split()
COPULAS = [("is", "are"), ("was", "were"), ("has been", "have been"), ("seems", "seem"), ("looks", "look")]


def noun(word: str, many: bool) -> str:
    """Return a noun phrase in the number wanted."""
    return "the " + (plural(word) if many else word)


def verb(word: str, many: bool) -> str:
    """Return a verb of the present in the number wanted."""
    return word if many else with_s(word)


def subject(sampler, many: bool) -> str:
    """Write a subject, in most cases with a noun of the other number between it and its verb."""
    head, other = sampler.words(PEOPLE, 2)
    if sampler.bernoulli(0.4):
        return f"the {sampler.word(TRAITS)} {head if not many else plural(head)}"
    act = sampler.word(ACTS)
    attractor = noun(other, not many)
    return noun(head, many) + sampler.form([
        f" {sampler.form(NEXT_TO)} {attractor}",
        f" who {verb(act, many)} {attractor}",
        f" that {attractor} {verb(act, not many)}",
    ])  # fmt: skip


def agreement(sampler) -> tuple[str, str]:
    """Write a subject with a verb that agrees with it, and with one that agrees with the noun before it."""
    many = sampler.bernoulli()
    start = subject(sampler, many)
    if sampler.bernoulli():
        copula, trait = sampler.form(COPULAS), sampler.word(TRAITS)
        return f"{start} {copula[many]} {trait}", f"{start} {copula[not many]} {trait}"
    rest, when = sampler.word(RESTS), sampler.word(WHEN)
    return f"{start} {verb(rest, many)} {when}", f"{start} {verb(rest, not many)} {when}"


def reflexive(sampler) -> tuple[str, str]:
    """Write a reflexive that goes back to the subject, and one that goes back to the noun between them."""
    kinds = sampler.shuffled([(MEN, "himself"), (WOMEN, "herself"), (MEN + WOMEN, "themselves")])[:2]
    (heads, right), (others, wrong) = kinds
    head = noun(sampler.word(heads), right == "themselves")
    other = noun(sampler.word(others), wrong == "themselves")
    start = f"{head} {sampler.form(NEXT_TO)} {other} {past(sampler.word(HARMS))}"
    return f"{start} {right}", f"{start} {wrong}"


def order(sampler) -> tuple[str, str]:
    """Write a plain sentence, and the same with one word moved to a position where it cannot be."""
    head, other = sampler.words(PEOPLE, 2)
    trait, place, act = sampler.word(TRAITS), sampler.word(PLACES), past(sampler.word(ACTS))
    good = sampler.form([
        f"the {trait} {head} has often {act} the {other}", f"the {head} {act} the {trait} {other} in the {place}",
        f"the {head} of the {place} {act} the {trait} {other}",
    ]).split()  # fmt: skip
    source, target = sampler.form([(0, 1), (1, 0), (2, 4), (4, 2), (5, 3), (6, 4), (5, 7), (3, 6), (2, 0), (7, 6)])
    rest = good[:source] + good[source + 1 :]
    return " ".join(good), " ".join([*rest[:target], good[source], *rest[target:]])


def arguments(sampler) -> tuple[str, str]:
    """Write a verb with the object that it needs or cannot have, and a verb of the other sort in its place."""
    head, other = sampler.words(PEOPLE, 2)
    takes, bare = past(sampler.word(ACTS)), past(sampler.word(RESTS))
    place = f"in the {sampler.word(PLACES)}"
    start = f"the {sampler.word(TRAITS)} {head}"
    if sampler.bernoulli():
        return f"{start} {takes} the {other} {place}", f"{start} {bare} the {other} {place}"
    return f"{start} {bare} {place}", f"{start} {takes} {place}"


def auxiliary(sampler) -> tuple[str, str]:
    """Write a verb in the form that its auxiliary asks for, and in another."""
    head, other = sampler.words(PEOPLE, 2)
    act = sampler.word(ACTS)
    forms = {"has": participle(act), "was": ing(act), "will": act, "can": act, "must": act}
    helper = sampler.form(list(forms))
    wrong = sampler.form([form for form in forms.values() if form != forms[helper]])
    start, end = f"the {sampler.word(TRAITS)} {head} {helper} {sampler.form(ADVERBS)}", f"the {other}"
    return f"{start} {forms[helper]} {end}", f"{start} {wrong} {end}"


FORMS = [order] * 4 + [arguments] * 3 + [agreement] * 3 + [auxiliary, reflexive]


def family(sampler) -> list[dict]:
    """Write a minimal pair: one acceptable sentence and one that differs in one word or in word order."""
    good, bad = sampler.form(FORMS)(sampler)
    return [
        {"sentence": sentence(good), "label": "acceptable"},
        {"sentence": sentence(bad), "label": "unacceptable"},
    ]
