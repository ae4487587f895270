"""The slices of a test set in which scores may differ: by length, negation, and overlap of pairs."""

import re

import numpy as np

NEGATIONS = set("no not never none nobody nothing nowhere neither nor without cannot".split())


def slice_names(frame, texts: list[str]) -> dict[str, list[str]]:
    """Return by what examples are sliced, and the slice of each example of a frame [N].

    Slices are by length in words, by whether a text has a negation, and, of pairs, by how many of their words the texts
    share (Jaccard, in per cent); negations are those of English. Args: texts, the columns of texts, or that of words.
    """
    words = [[_words(text) for text in row] for row in frame[texts].itertuples(index=False)]
    keys = {"words": _thirds([sum(map(len, row)) for row in words])}
    keys["negation"] = ["with" if any(map(_negates, row)) else "without" for row in words]
    if len(texts) == 2:
        keys["shared words, %"] = _thirds([round(100 * _shared(*map(set, row))) for row in words])
    return keys


def in_order(names) -> list[str]:
    """Return the different names of slices, those of numbers rising."""
    return sorted(set(names), key=lambda name: (int((re.match(r"\d+", name) or [0])[0]), name))


def _words(text) -> list[str]:
    """Return the words of a text, or of a list of words, in lower case."""
    return re.findall(r"[\w']+", (text if isinstance(text, str) else " ".join(text)).lower())


def _negates(words: list[str]) -> bool:
    return any(word in NEGATIONS or word.endswith("n't") for word in words)


def _shared(first: set[str], second: set[str]) -> float:
    return len(first & second) / len(first | second) if first | second else 1.0


def _thirds(values: list[int]) -> list[str]:
    """Return the bounds of the third in which each value is, by rank; equal values are in the same one.

    Where many are equal the parts are no thirds, so they are called by their bounds.
    """
    low, high = np.quantile(values, [1 / 3, 2 / 3])
    parts = [int(value > low) + int(value >= high > low) for value in values]
    bounds = {part: [value for value, own in zip(values, parts, strict=True) if own == part] for part in set(parts)}
    ends = {part: dict.fromkeys([min(own), max(own)]) for part, own in bounds.items()}
    return [" to ".join(map(str, ends[part])) for part in parts]
