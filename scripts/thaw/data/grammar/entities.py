"""Entities: a name is a person, an organisation or a place by its context alone, often some words away."""

from collections.abc import Sequence

SEED = 1103

NAMES = """
Jordan Paris Washington Lincoln Chelsea Florence Austin Houston Sydney Victoria Charlotte Georgia Ford Morgan Phoenix
Santiago Diego Madison Carolina Israel Chester Jackson Columbus Melbourne Dallas Nelson Wellington Hamilton Sheffield
Lancaster Warwick Stanford Cleveland Raleigh Montgomery Monroe Douglas Boston Bristol Adelaide Sierra Kent Chad Kelly
Devon Wayne Logan Marshall Wells Barclay Wesley Harvey Bradford Clifton Winchester Preston
""".split()
NOUNS = "Rose Bill Mark Grace Hope Shell Apple Target Turkey China Cork Bath Bush Reading Mobile".split()

KINDS = ("PER", "ORG", "LOC")

TELLS = {
    "PER": [
        "broke her leg", "combed his hair", "married a dentist", "wept all night", "lost both parents",
        "was born in winter", "was tired and hungry", "has two sons", "has brown eyes", "opened the door",
        "fell asleep", "burned his hand", "was wearing a hat", "forgot her glasses", "cut his finger",
        "sold his old car", "has a bad cold", "grew a beard", "was kissed by a stranger", "paid for the drinks",
        "raised her voice",
    ],
    "ORG": [
        "cut its prices", "hired new workers", "paid its shareholders", "raised its profits",
        "was founded in winter", "was bought by a rival", "has two factories", "has many customers",
        "opened a new branch", "fell on the stock market", "lost its best customers", "sold its shares",
        "was fined for fraud", "merged with a rival", "cut four hundred jobs", "launched a new product",
        "has a new chairman", "elected a new board", "was sued by its clients", "paid no dividend",
        "raised its offer",
    ],
    "LOC": [
        "has cold winters", "lies near the sea", "was hit by a flood", "attracts many tourists",
        "has narrow streets", "was built on a hill", "lost half its population", "has two bridges",
        "opened its borders", "fell to the enemy", "cut its water supply", "was covered in snow",
        "has a sunny climate", "lies in a deep valley", "has sandy beaches", "was shaken by an earthquake",
        "paid its policemen", "raised its flag", "has an old harbor", "has dry summers", "was ruled by a king",
    ],
}  # fmt: skip
REASONS = {
    "PER": [
        "for her patience", "because of his smile", "after the divorce", "for his good manners",
        "until her death", "because of her accent", "at his wedding", "for her courage", "on his birthday",
    ],
    "ORG": [
        "for its low prices", "because of its profits", "after the merger", "for its good service",
        "until its bankruptcy", "because of its products", "at its annual meeting", "for its advertising",
        "before its stock split",
    ],
    "LOC": [
        "for its mild climate", "because of its beaches", "after the earthquake", "for its old streets",
        "until the flood", "because of its hills", "during the siege", "for its fresh air",
        "before the snow melted",
    ],
}  # fmt: skip
OWNED = {
    "PER": "parents children sister wife face childhood widow hands brother".split(),
    "ORG": "shareholders factories chairman profits products board employees customers accountants".split(),
    "LOC": "streets rivers suburbs beaches bridges climate mountains harbor roads".split(),
}
ASIDES = (
    """
, according to the report ,|, as everybody knows ,|, to our surprise ,|, we are told ,|, if we believe the news ,|
, it is said ,|, as usual ,|, for once ,|, a month later ,
""".strip()
    .replace("\n", "")
    .split("|")
)
OPENINGS = (
    "last year|in the end|after a long time|a week ago|this time|once again|in those days|by chance|one day".split("|")
)
VERBS = "praised remembered left chose admired mentioned liked criticized missed loved hated described".split()
CROWD = "everybody we they people others many most some few".split()


def name(sampler, taken: Sequence[str] = ()) -> list[str]:
    """Write a name that could be of any kind, of two words in a quarter of the cases."""
    words = sampler.words(NAMES + NOUNS, 4)
    return [word for word in words if word not in taken][: 2 if sampler.bernoulli(0.25) else 1]


def described(sampler) -> tuple[str, dict]:
    """Give a form with the names in front and what is said of them behind."""
    form = sampler.form([
        "{first}{aside} {tell}", "{opening} , {first}{aside} {tell}", "{opening} {first} {tell} despite the {noun}",
        "unlike {second} , {first}{aside} {tell}", "{first} , and not {second} , {tell}",
    ])  # fmt: skip
    return form, TELLS


def judged(sampler) -> tuple[str, dict]:
    """Give a form with the names in the middle and the reason behind."""
    form = sampler.form([
        "{crowd} {verb} {first}{aside} {tell}", "{crowd} {verb} the {noun} and {first} {tell}",
        "{crowd} {verb} {first} more than {second} {tell}", "{opening} {crowd} {verb} {first} {tell}",
    ])  # fmt: skip
    return form, REASONS


def owned(sampler) -> tuple[str, dict]:
    """Give a form with the names behind and what belongs to them in front."""
    form = sampler.form([
        "{crowd} {verb} the {tell} of {first}", "the {tell} of {first} were mentioned {opening}",
        "the {tell} of both {first} and {second} {verb} the {noun}",
    ])  # fmt: skip
    return form, OWNED


def tagged(form: str, names: dict, kind: str, fillers: dict) -> dict:
    """Fill a form and tag its words: the names B- and I- of their kind, all others O."""
    words, tags = [], []
    for token in form.format(first="<first>", second="<second>", **fillers).split():
        if token.strip("<>") in names:
            entity = names[token.strip("<>")]
            words += entity
            tags += [f"{'I' if position else 'B'}-{kind}" for position in range(len(entity))]
        else:
            words.append(token)
            tags.append("O")
    return {"words": [words[0][0].upper() + words[0][1:], *words[1:], "."], "tags": [*tags, "O"]}


def family(sampler) -> list[dict]:
    """Write one sentence three times: its names are persons, organisations, places, as one phrase shows."""
    form, phrases = sampler.form([described, described, judged, owned])(sampler)
    first = name(sampler)
    names = {"first": first, "second": name(sampler, taken=first)}
    fillers = {
        "aside": f" {sampler.word(ASIDES)}" if sampler.bernoulli(0.7) else "",
        "opening": sampler.word(OPENINGS),
        "crowd": sampler.word(CROWD),
        "verb": sampler.word(VERBS),
        "noun": sampler.word(NOUNS).lower(),
    }
    return [tagged(form, names, kind, {**fillers, "tell": sampler.word(phrases[kind])}) for kind in KINDS]
