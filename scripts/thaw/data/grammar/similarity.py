"""Similarity: how many of five facts (doer, act, other, place, day) two sentences share, whatever their word order."""

from thaw.data.grammar.morphology import participle, past, sentence
from thaw.data.grammar.words import DAYS

SEED = 1106

DOERS = [
    ("doctor", "physician"), ("lawyer", "attorney"), ("teacher", "instructor"), ("student", "pupil"),
    ("writer", "author"), ("soldier", "warrior"), ("priest", "clergyman"), ("thief", "robber"), ("king", "monarch"),
    ("guest", "visitor"), ("actor", "performer"), ("infant", "baby"), ("kid", "child"), ("buyer", "customer"),
    ("seller", "vendor"), ("reporter", "journalist"), ("singer", "vocalist"), ("coach", "trainer"),
    ("captain", "skipper"), ("artist", "painter"), ("boss", "employer"), ("farmer", "peasant"),
    ("killer", "murderer"), ("driver", "motorist"), ("cop", "policeman"), ("manager", "director"),
    ("butler", "servant"), ("scientist", "researcher"), ("gambler", "player"), ("citizen", "resident"),
]  # fmt: skip
DEEDS = [
    ("call", "phone"), ("help", "assist"), ("warn", "alert"), ("blame", "accuse"), ("praise", "applaud"),
    ("follow", "pursue"), ("rescue", "save"), ("hire", "employ"), ("attack", "assault"), ("question", "interrogate"),
    ("mock", "ridicule"), ("watch", "observe"), ("annoy", "irritate"), ("surprise", "astonish"),
    ("defend", "protect"), ("frighten", "scare"), ("trick", "deceive"), ("push", "shove"), ("embrace", "hug"),
    ("greet", "welcome"), ("punish", "discipline"), ("forgive", "pardon"), ("admire", "respect"),
    ("dismiss", "fire"),
]  # fmt: skip
SCENES = [
    ("forest", "woods"), ("shop", "store"), ("street", "road"), ("house", "home"), ("harbor", "port"),
    ("hotel", "inn"), ("cellar", "basement"), ("garden", "yard"), ("church", "chapel"), ("prison", "jail"),
    ("hospital", "clinic"), ("castle", "fortress"), ("college", "university"), ("city", "town"),
    ("stadium", "arena"), ("cafe", "coffeehouse"), ("desert", "wasteland"), ("kitchen", "galley"),
]  # fmt: skip
FACTS = ("doer", "act", "other", "place", "day")
FORMS = (
    "the {doer} {past} the {other} in the {place} on {day}",
    "the {other} was {participle} by the {doer} in the {place} on {day}",
    "on {day} the {doer} {past} the {other} in the {place}",
    "on {day} the {other} was {participle} by the {doer} in the {place}",
)


def write(pen, facts: dict) -> str:
    """Write five facts as a sentence, active or passive, the day in front or at the end, each by one of its words."""
    told = {fact: pen.form(synonyms) for fact, synonyms in facts.items()}
    act = told["act"]
    return sentence(pen.form(FORMS).format(**told, past=past(act), participle=participle(act)))


def family(pen) -> list[dict]:
    """Write one pair of sentences and its score: the number of facts they share, from 0 to 5.

    A shared fact may be told by a synonym; exchanged roles lose two facts and no word.
    """
    days = [(day,) for day in DAYS]
    people, deeds, scenes, times = (
        pen.words(entries, count) for entries, count in ((DOERS, 4), (DEEDS, 2), (SCENES, 2), (days, 2))
    )
    first = dict(zip(FACTS, (people[0], deeds[0], people[1], scenes[0], times[0]), strict=True))
    others = dict(zip(FACTS, (people[2], deeds[1], people[3], scenes[1], times[1]), strict=True))
    kept = pen.shuffled(FACTS)[: pen.form(range(len(FACTS) + 1))]
    second = {fact: (first if fact in kept else others)[fact] for fact in FACTS}
    if "doer" not in kept and "other" not in kept and pen.toss():
        second |= {"doer": first["other"], "other": first["doer"]}
    return [{"sentence_a": write(pen, first), "sentence_b": write(pen, second), "score": float(len(kept))}]
