"""Paraphrase: the same words in another order say the same thing, or the reverse of it."""

from thaw.data.grammar.assemble_corpus import ACTS, PEOPLE, PLACES, participle, past, sentence

SEED = 1105

SCALES = [
    ("taller", "shorter"), ("older", "younger"), ("richer", "poorer"), ("faster", "slower"), ("stronger", "weaker"),
    ("louder", "quieter"),
]  # fmt: skip
TRADES = [
    ("sold", "bought"), ("lent", "borrowed"), ("gave", "got"), ("sent", "received"), ("handed", "took"),
    ("passed", "accepted"),
]  # fmt: skip
GIFTS = "book horse letter ring coat guitar clock map lamp boat sword camera key ticket violin".split()
EVENTS = "smiled laughed sang danced slept cried waited shouted left arrived coughed prayed spoke woke fell".split()


VERBS = [
    (("bought", "purchased"), ("sold", "auctioned")), (("fixed", "repaired"), ("broke", "damaged")),
    (("hid", "concealed"), ("showed", "displayed")), (("saved", "preserved"), ("destroyed", "ruined")),
    (("hated", "despised"), ("loved", "adored")), (("found", "discovered"), ("lost", "misplaced")),
    (("praised", "applauded"), ("criticized", "condemned")), (("accepted", "took"), ("refused", "rejected")),
    (("kept", "retained"), ("discarded", "dumped")), (("cleaned", "washed"), ("soiled", "stained")),
    (("permitted", "allowed"), ("banned", "prohibited")), (("filled", "loaded"), ("emptied", "unloaded")),
    (("raised", "lifted"), ("lowered", "dropped")), (("liked", "enjoyed"), ("disliked", "loathed")),
    (("wanted", "desired"), ("avoided", "shunned")), (("shut", "closed"), ("opened", "unlocked")),
    (("built", "constructed"), ("demolished", "wrecked")), (("remembered", "recalled"), ("forgot", "overlooked")),
    (("enlarged", "expanded"), ("reduced", "shrank")), (("pushed", "shoved"), ("pulled", "dragged")),
    (("decorated", "adorned"), ("spoiled", "marred")),
]  # fmt: skip
NOUNS = [
    ("doll", "puppet"), ("jail", "prison"), ("film", "movie"), ("photo", "picture"), ("rope", "cord"),
    ("stone", "rock"), ("gun", "pistol"), ("jewel", "gem"), ("coat", "jacket"), ("letter", "note"), ("cup", "mug"),
    ("hat", "cap"), ("meal", "dinner"), ("purse", "wallet"), ("garbage", "trash"),
    ("car", "automobile"), ("house", "home"), ("store", "shop"), ("box", "crate"), ("lamp", "light"),
    ("gift", "present"), ("ship", "vessel"), ("sofa", "couch"), ("cabin", "hut"), ("bag", "sack"),
    ("cab", "taxi"), ("rug", "carpet"), ("bike", "bicycle"), ("engine", "motor"), ("plane", "aircraft"),
]  # fmt: skip


def meanings(sampler) -> tuple[str, str, str]:
    """Write a sentence, the same in other words, and one that differs in the deed (its opposite) or in the thing."""
    (nouns, other_nouns), person, place = (
        sampler.words(NOUNS, 2),
        sampler.word(PEOPLE),
        f"in the {sampler.word(PLACES)}",
    )
    (verb, same), opposites = sampler.shuffled(list(sampler.word(VERBS)))
    noun, same_noun = sampler.shuffled(list(nouns))
    source, target = sampler.shuffled([f"the {person} {{}} the {{}} {place}", f"{place} , the {person} {{}} the {{}}"])
    other = (sampler.form(opposites), same_noun) if sampler.bernoulli(0.3) else (same, sampler.form(other_nouns))
    return source.format(verb, noun), target.format(same, same_noun), target.format(*other)


def voices(sampler) -> list[str]:
    """Give the ways to describe an act: active or passive, the place at the end or in front."""
    act, place = sampler.word(ACTS), f"in the {sampler.word(PLACES)}"
    active, passive = f"the {{0}} {past(act)} the {{1}}", f"the {{1}} was {participle(act)} by the {{0}}"
    return [f"{active} {place}", f"{passive} {place}", f"{place} , {active}", f"{place} , {passive}"]


def trades(sampler) -> list[str]:
    """Give the two sides of handing something over."""
    (give, take), gift = sampler.word(TRADES), sampler.word(GIFTS)
    return [f"the {{0}} {give} a {gift} to the {{1}}", f"the {{1}} {take} a {gift} from the {{0}}"]


def scales(sampler) -> list[str]:
    """Give the two directions of a comparison."""
    more, less = sampler.word(SCALES)
    place = f"in the {sampler.word(PLACES)}"
    return [f"the {{0}} {place} is {more} than the {{1}}", f"the {{1}} is {less} than the {{0}} {place}"]


def times(sampler) -> list[str]:
    """Give the ways to say which of two events came first."""
    first, second = sampler.words(EVENTS, 2)
    return [
        f"the {{0}} {first} before the {{1}} {second}",
        f"the {{1}} {second} after the {{0}} {first}",
        f"after the {{0}} {first} , the {{1}} {second}",
        f"before the {{1}} {second} , the {{0}} {first}",
    ]


def roles(sampler) -> tuple[str, str, str]:
    """Write a sentence, the same said from the other side, and that with the two roles exchanged."""
    one, two = sampler.words(PEOPLE, 2)
    source, target = sampler.shuffled(sampler.form([voices, voices, trades, scales, times])(sampler))[:2]
    return source.format(one, two), target.format(one, two), target.format(two, one)


def family(sampler) -> list[dict]:
    """Write a sentence with a paraphrase of it, and with a sentence as near to it that says the reverse."""
    first, same, other = map(sentence, sampler.form([meanings, meanings, meanings, roles])(sampler))
    return [
        {"sentence_a": first, "sentence_b": same, "label": "paraphrase"},
        {"sentence_a": first, "sentence_b": other, "label": "different"},
    ]
