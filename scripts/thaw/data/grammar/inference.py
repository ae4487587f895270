"""Inference: negation, kinds and their members, quantifiers, and who did it to whom."""

from thaw.data.grammar.morphology import participle, past, sentence, with_article
from thaw.data.grammar.vocabulary_lists import ACTS, PEOPLE, PLACES, TRAITS

SEED = 1104

KINDS = {
    "mammal": "dog horse rabbit", "instrument": "guitar piano violin", "vehicle": "truck bus bicycle",
    "fruit": "peach lemon banana", "flower": "rose lily orchid", "tool": "hammer saw drill",
    "bird": "eagle owl swan", "weapon": "sword rifle pistol", "insect": "bee moth ant",
    "building": "barn hut tower", "garment": "shirt coat jacket", "fish": "trout salmon shark",
}  # fmt: skip
MEMBERS = [(member, kind) for kind, members in KINDS.items() for member in members.split()]
LOOKS = "red white small big cheap black green tiny huge blue strange yellow".split()
OPPOSITES = [
    ("big", "large", "small"), ("rich", "wealthy", "poor"), ("happy", "glad", "sad"), ("sick", "ill", "healthy"),
    ("fast", "quick", "slow"), ("quiet", "silent", "loud"), ("clever", "smart", "stupid"),
    ("afraid", "scared", "brave"), ("angry", "mad", "calm"), ("strong", "powerful", "weak"),
    ("thin", "slim", "fat"), ("tired", "weary", "rested"), ("polite", "courteous", "rude"),
    ("famous", "renowned", "unknown"), ("lazy", "idle", "busy"), ("lucky", "fortunate", "unlucky"),
    ("old", "elderly", "young"), ("wrong", "mistaken", "correct"), ("drunk", "intoxicated", "sober"),
    ("sure", "certain", "doubtful"), ("pretty", "beautiful", "ugly"), ("humble", "modest", "arrogant"),
    ("guilty", "culpable", "innocent"), ("cruel", "brutal", "kind"), ("married", "wed", "single"),
    ("honest", "truthful", "dishonest"),
    ("eager", "keen", "reluctant"), ("greedy", "selfish", "generous"), ("faithful", "loyal", "treacherous"),
    ("cheerful", "merry", "gloomy"), ("shy", "timid", "bold"), ("bald", "hairless", "hairy"),
    ("alive", "living", "dead"), ("asleep", "sleeping", "awake"), ("dirty", "filthy", "clean"),
    ("strange", "odd", "normal"), ("foreign", "alien", "native"), ("skilled", "expert", "incompetent"),
    ("blonde", "fair", "dark"), ("patient", "tolerant", "impatient"), ("wise", "sensible", "foolish"),
    ("free", "independent", "captive"), ("careless", "reckless", "careful"), ("boring", "dull", "interesting"),
]  # fmt: skip
DEEDS = "buy sell find lose want need steal see draw choose describe notice mention request".split()

LABELS = ("entailment", "neutral", "contradiction")


def did(person: str, deed: str, thing: str, yes: bool) -> str:
    """Say that a person did, or did not do, something to a thing."""
    return f"the {person} {past(deed) if yes else 'did not ' + deed} {with_article(thing)}"


def kinds(sampler) -> tuple[str, ...]:
    """Write about a thing, its kind and a special case of it: what holds of one decides about the others or not."""
    person, deed, look, yes = sampler.word(PEOPLE), sampler.word(DEEDS), sampler.word(LOOKS), sampler.bernoulli(0.7)
    (member, kind), *others = sampler.words(MEMBERS, 3)
    other, other_kind = next(entry for entry in others if entry[1] != kind)
    special = f"{look} {member}"
    wide, narrow = (kind, special) if yes else (special, kind)
    if sampler.bernoulli():
        premise, follows, undecided = member, wide, narrow
    else:
        premise, follows = narrow, sampler.form([wide, member])
        undecided = sampler.form([f"{look} {other}", other, other_kind])
    return tuple(
        did(person, deed, thing, holds)
        for thing, holds in (
            (premise, yes),
            (follows, yes),
            (undecided, yes == sampler.bernoulli(0.7)),
            (follows, not yes),
        )
    )


def opposites(sampler) -> tuple[str, ...]:
    """Write what a person is or is not, in a similar or the opposite word, or something else, or of somebody else."""
    (person, stranger), place = sampler.words(PEOPLE, 2), sampler.word(PLACES)
    (word, similar, opposite), others = sampler.words(OPPOSITES, 2)
    if sampler.bernoulli():
        word, similar = similar, word
    follows = f"not {opposite}" if sampler.bernoulli(0.3) else similar
    denied = f"not {similar}" if sampler.bernoulli(0.3) else opposite
    hypotheses = [(person, follows), (person, sampler.form(["", "", "not "]) + sampler.form(others)), (person, denied)]
    if sampler.bernoulli(0.6):
        hypotheses[1] = (stranger, sampler.form([word, follows, denied]))
    return tuple(f"the {who} in the {place} was {state}" for who, state in [(person, word), *hypotheses])


def quantifiers(sampler) -> tuple[str, ...]:
    """Write about every, some, no or not every member of a group, and about wider and narrower groups."""
    one, other = sampler.words(PEOPLE, 2)
    special = f"{sampler.word(TRAITS)} {one}"
    premise, follows, undecided, denied = sampler.form([
        (f"every {one}", [f"every {special}", f"some {one}"], ["every person"], [f"no {one}", f"not every {one}"]),
        (f"some {one}", ["some person"], [f"every {one}", f"some {special}", f"no {special}"], [f"no {one}"]),
        (f"no {one}", [f"no {special}", f"not every {one}"], ["no person", "some person"], [f"some {one}"]),
        (f"not every {one}", ["not every person"], [f"no {one}", f"some {one}"], [f"every {one}"]),
        (f"every {special}", [f"some {one}"], [f"every {one}", f"not every {one}"], [f"no {one}"]),
        (f"no {special}", [f"not every {one}"], [f"no {one}", f"some {one}"], [f"every {one}"]),
    ])  # fmt: skip
    rest = f"{past(sampler.word(ACTS))} the {other} in the {sampler.word(PLACES)}"
    return tuple(f"{group} {rest}" for group in (premise, *map(sampler.form, (follows, undecided, denied))))


def roles(sampler) -> tuple[str, ...]:
    """Write who did it to whom, the same in the passive, the reverse, and the denial."""
    (one, two), act, yes = sampler.words(PEOPLE, 2), sampler.word(ACTS), sampler.bernoulli()

    def active(doer: str, other: str, holds: bool) -> str:
        return f"the {doer} {past(act) if holds else 'did not ' + act} the {other}"

    def passive(doer: str, other: str, holds: bool) -> str:
        return f"the {other} was {'' if holds else 'not '}{participle(act)} by the {doer}"

    first, second = sampler.shuffled([active, passive])
    third, fourth = sampler.form([active, passive]), sampler.form([active, passive])
    return (
        first(one, two, yes),
        second(one, two, yes),
        third(two, one, sampler.bernoulli(0.8) == yes),
        fourth(one, two, not yes),
    )


def family(sampler) -> list[dict]:
    """Write a premise with three hypotheses: one that follows, one left open and one that cannot hold."""
    form = sampler.form([opposites] * 5 + [kinds] * 3 + [quantifiers, roles])
    premise, *hypotheses = map(sentence, form(sampler))
    return [
        {"sentence_a": premise, "sentence_b": hypothesis, "label": label}
        for hypothesis, label in zip(hypotheses, LABELS, strict=True)
    ]
