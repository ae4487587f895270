"""A corpus of small dependency trees: a determiner, a noun, a verb, and a noun, of words that a tiny encoder knows."""

import random
from pathlib import Path

from corpora import prepared
from thaw.data.corpus import Corpus
from tiny_corpus import Bench

NOUNS, VERBS = ["river", "Anna", "Berlin", "Oslo", "Karl"], ["sings", "sleeps"]
ENTRY = {
    "words": "words",
    "targets": {"arcs": "edges", "upos": "tags", "entities": "tags"},
    "labels": {
        "arcs": ["det", "nsubj", "aux", "root", "obj", "punct"],
        "upos": ["DET", "NOUN", "VERB", "PUNCT"],
        "entities": ["O", "B-PER", "B-LOC"],
    },
    "keep": ["head"],
}
NAMES = {"Anna": "B-PER", "Karl": "B-PER", "Berlin": "B-LOC", "Oslo": "B-LOC"}


def row(draw: random.Random) -> dict:
    """Return a sentence `the noun verb [verb] noun .` with its tree, tags and entities."""
    verbs = [draw.choice(VERBS) for _ in range(draw.randint(1, 2))]
    words = ["the", draw.choice(NOUNS), *verbs, draw.choice(NOUNS), "."]
    upos = ["DET", "NOUN", *["VERB"] * len(verbs), "NOUN", "PUNCT"]
    root = len(verbs) + 1
    heads = [1, root, *[root] * (len(verbs) - 1), -1, root, root]
    relations = ["det", "nsubj", *["aux"] * (len(verbs) - 1), "root", "obj", "punct"]
    pairs = zip(heads, relations, strict=True)
    arcs = [
        {"span1": [word, word + 1], "span2": [head, head + 1] if head >= 0 else [word, word + 1], "label": relation}
        for word, (head, relation) in enumerate(pairs)
    ]
    entities = [NAMES.get(word, "O") for word in words]
    heads = [str(head + 1) for head in heads]
    return {"words": words, "arcs": arcs, "upos": upos, "head": heads, "entities": entities}


def tree_corpus(folder: Path, **splits) -> Corpus:
    """Prepare 60 training rows and 20 each of validation and test; `splits` may bring rows of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for seed, (split, count) in enumerate({"train": 60, "validation": 20, "test": 20}.items()):
        draw = random.Random(seed)
        made[split] = [row(draw) for _ in range(count)]
    return prepared(folder, ENTRY, **(made | splits))


class TreeBench(Bench):
    """A bench on such a corpus, and the specs of its probes."""

    def probe_spec(self, kind: str, target: str, **entry) -> dict:
        """Return the spec of a probe of some kind on a target: arcs, upos or entities."""
        types = {"arcs": ("edges", "edge_f1"), "upos": ("tagging", "accuracy"), "entities": ("spans", "span_f1")}
        name, metric = types[target]
        every = list(range(self.layers + 1))
        return {
            "version": 1,
            "of": {"task": "t", "subset": "all", "encoder": "e", "probe": kind},
            "task": {"id": "t", "corpus": "mine", "target": target, "type": name, "metrics": [metric]},
            "subset": {},
            "probe": {"kind": kind, **entry},
            "layers": self.layers,
            "read": every,
            "phases": [{"boundary": n} for n in every],
            "seeds": [1],
            "compute": {"threads": 1},
            **self.upstream,
        }
