"""Similarity: how many of five facts (doer, act, other, place, day) two sentences share, whatever their word order."""

from thaw.data.grammar.morphology import participle, past, sentence
from thaw.data.grammar.words import ACTS, DAYS, PEOPLE, PLACES

SEED = 1106

FACTS = ("doer", "act", "other", "place", "day")
FORMS = (
    "the {doer} {past} the {other} in the {place} on {day}",
    "the {other} was {participle} by the {doer} in the {place} on {day}",
    "on {day} the {doer} {past} the {other} in the {place}",
    "on {day} the {other} was {participle} by the {doer} in the {place}",
)


def write(pen, facts: dict) -> str:
    """Write five facts as a sentence, active or passive, the day in front or at the end."""
    act = facts["act"]
    return sentence(pen.form(FORMS).format(**facts, past=past(act), participle=participle(act)))


def family(pen) -> list[dict]:
    """Write one pair of sentences and its score: the number of facts they share, from 0 to 5.

    Exchanged roles lose two facts and no word; a fact that is not shared is told with another word.
    """
    people, acts, places, days = (
        pen.words(words, count) for words, count in ((PEOPLE, 4), (ACTS, 2), (PLACES, 2), (DAYS, 2))
    )
    first = dict(zip(FACTS, (people[0], acts[0], people[1], places[0], days[0]), strict=True))
    others = dict(zip(FACTS, (people[2], acts[1], people[3], places[1], days[1]), strict=True))
    score = pen.form(range(len(FACTS) + 1))
    kept = set(pen.shuffled(FACTS)[:score])
    second = {fact: (first if fact in kept else others)[fact] for fact in FACTS}
    if not kept & {"doer", "other"} and pen.toss(0.8):
        second |= {"doer": first["other"], "other": first["doer"]}
    return [{"sentence_a": write(pen, first), "sentence_b": write(pen, second), "score": float(score)}]
