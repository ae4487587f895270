"""From families to frames: draw families of examples until each split is full, without a repeated sentence.

A corpus module has a SEED and `family(sampler) -> list[dict]`: a few examples that differ as little as possible while
their labels differ, so that labels are balanced and single words say little. A family never leaves its split.
"""

import random

from thaw.data.grammar.sampler import SentenceSampler

ROWS = {"train": 1008, "validation": 300, "test": 504}
TEXTS = ("sentence", "sentence_a", "sentence_b", "words")


def sentences(example: dict) -> list[str]:
    """Return the texts of an example in lower case, words joined: what counts as the same sentence."""
    texts = (example[column] for column in TEXTS if column in example)
    return [(text if isinstance(text, str) else " ".join(text)).lower() for text in texts]


def frames(corpus) -> dict:
    """Return split -> pandas frame of a corpus module; no example occurs twice, no sentence in two splits."""
    import pandas

    rng = random.Random(corpus.SEED)
    split_of: dict[str, str] = {}
    written: set[tuple] = set()
    result = {}
    for split, size in ROWS.items():
        sampler, rows = SentenceSampler(rng, split), []
        while len(rows) < size:
            family = corpus.family(sampler)
            keys = [tuple(sentences(example)) for example in family]
            strange = any(split_of.get(text, split) != split for key in keys for text in key)
            repeated = len(set(keys)) < len(keys) or any(len(set(key)) < len(key) for key in keys)
            if strange or repeated or written.intersection(keys) or len(rows) + len(family) > size:
                continue
            written.update(keys)
            split_of.update((text, split) for key in keys for text in key)
            rows.extend(family)
        result[split] = pandas.DataFrame(rows)
    return result
