"""Sentiment: negation, contrast and disappointed hopes decide; the polarity of single words misleads."""

from thaw.data.grammar.morphology import PEOPLE, PLACES, sentence, with_article

SEED = 1102

GOOD = """
good great wonderful brilliant lovely charming superb excellent delightful funny clever fantastic pleasant beautiful
perfect amazing impressive exciting enjoyable fine elegant moving fresh splendid
""".split()
BAD = """
bad terrible awful boring dull poor horrible weak ugly dreadful disappointing annoying silly stupid rude painful nasty
clumsy tedious messy shallow stale gloomy cheap
""".split()
THINGS = """
film book play meal soup hotel room concert song album story game service museum party lecture tour dinner show novel
dessert speech ending cast view
""".split()
NEGATIONS = [
    "was not",
    "was never",
    "was hardly",
    "was anything but",
    "was far from",
    "was not at all",
    "never seemed",
]
AFFIRMATIONS = ["was", "was really", "was always", "was simply", "seemed", "was truly", "was nothing but"]


def claim(sampler, thing: str, good: bool) -> str:
    """Write a clause that says good or bad of a thing, directly or by denying the opposite."""
    if sampler.bernoulli():
        return f"the {thing} {sampler.form(NEGATIONS)} {sampler.word(BAD if good else GOOD)}"
    return f"the {thing} {sampler.form(AFFIRMATIONS)} {sampler.word(GOOD if good else BAD)}"


def contrast(sampler) -> list[str]:
    """Write two opposed clauses; the one after "but", or outside "although", is the verdict."""
    one, two = sampler.words(THINGS, 2)
    up, down = claim(sampler, one, True), claim(sampler, two, False)
    form = sampler.form([
        "{minor}, but {major}", "although {minor}, {major}", "{major}, although {minor}", "even if {minor}, {major}",
        "{minor}, and yet {major}", "{major}, even if {minor}",
    ])  # fmt: skip
    return [form.format(major=major, minor=minor) for major, minor in ((up, down), (down, up))]


def denial(sampler) -> list[str]:
    """Write what people did not say of a thing, and of the same thing what they did say."""
    thing, critic = sampler.word(THINGS), sampler.word(PEOPLE)
    form = sampler.form([
        "nobody who knew the {critic} called the {thing} {word}",
        "the {critic} did not find the {thing} {word}",
        "i do not agree that the {thing} was {word}",
        "it is wrong to call the {thing} of the {critic} {word}",
        "everybody who knew the {critic} called the {thing} {word}",
        "the {critic} did indeed find the {thing} {word}",
        "i do agree that the {thing} was {word}",
        "it is right to call the {thing} of the {critic} {word}",
    ])  # fmt: skip
    denies = any(word in form for word in ("nobody", "not", "wrong"))
    words = (BAD, GOOD) if denies else (GOOD, BAD)
    return [form.format(critic=critic, thing=thing, word=sampler.word(choice)) for choice in words]


def plain(sampler) -> list[str]:
    """Write one clause of praise or blame, with where it was said."""
    thing, place = sampler.word(THINGS), sampler.word(PLACES)
    return [f"{claim(sampler, thing, good)} in the {place}" for good in (True, False)]


def surprise(sampler) -> list[str]:
    """Write what was expected of a thing and what it turned out to be."""
    thing, good, bad = sampler.word(THINGS), sampler.word(GOOD), sampler.word(BAD)
    form = sampler.form([
        "we expected {minor} {thing} and got {major} one",
        "what promised to be {minor} {thing} was {major} one",
        "it was {major} {thing}, not {minor} one",
        "instead of {minor} {thing} we got {major} one",
        "we got {major} {thing} instead of {minor} one",
    ])  # fmt: skip
    pairs = ((good, bad), (bad, good))
    return [form.format(thing=thing, major=with_article(major), minor=with_article(minor)) for major, minor in pairs]


def family(sampler) -> list[dict]:
    """Write a positive and a negative sentence of nearly the same words."""
    positive, negative = sampler.form([contrast, contrast, denial, surprise, plain])(sampler)
    return [
        {"sentence": sentence(positive), "label": "positive"},
        {"sentence": sentence(negative), "label": "negative"},
    ]
