"""Similarity: how many of five facts (trait, doer, act, other, day) two sentences share, whatever their word order."""

from thaw.data.grammar.assemble_corpus import DAYS, TRAITS, participle, past, sentence

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
FACTS = ("trait", "doer", "act", "other", "day")
FORMS = (
    "the {trait} {doer} {past} the {other} on {day}",
    "the {other} was {participle} by the {trait} {doer} on {day}",
    "on {day} the {trait} {doer} {past} the {other}",
    "on {day} the {other} was {participle} by the {trait} {doer}",
)


def write(sampler, facts: dict) -> str:
    """Write five facts as a sentence, active or passive, the day in front or at the end, each by one of its words."""
    words = {fact: sampler.form(synonyms) for fact, synonyms in facts.items()}
    act = words["act"]
    return sentence(sampler.form(FORMS).format(**words, past=past(act), participle=participle(act)))


def family(sampler) -> list[dict]:
    """Write one pair of sentences and its score: the number of facts they share, from 0 to 5.

    A shared fact may be said by a synonym; exchanged roles lose two facts and no word.
    """
    people, deeds = sampler.words(DOERS, 4), sampler.words(DEEDS, 2)
    traits, days = ([(word,) for word in sampler.words(entries, 2)] for entries in (TRAITS, DAYS))
    first, others = (
        dict(zip(FACTS, (traits[side], people[side], deeds[side], people[side + 2], days[side]), strict=True))
        for side in (0, 1)
    )
    kept = sampler.shuffled(FACTS)[: sampler.form(range(len(FACTS) + 1))]
    second = {fact: (first if fact in kept else others)[fact] for fact in FACTS}
    if "doer" not in kept and "other" not in kept and sampler.bernoulli():
        second |= {"doer": first["other"], "other": first["doer"]}
    return [{"sentence_a": write(sampler, first), "sentence_b": write(sampler, second), "score": float(len(kept))}]
