"""What a prepared corpus says of itself: rows, labels, lengths, repeats, overlap with train."""

from collections import Counter

import numpy as np

from thaw.data.carving import sentences
from thaw.data.checks import is_empty
from thaw.data.edges import labels_of

NAMED = 5  # so many row numbers are named where rows repeat


def seen(columns: dict[str, list], names: list[str], train: dict[str, list]) -> list[bool]:
    """Return for each row whether it shares a normalised sentence with train."""
    known = {text for texts in sentences(train, names) for text in texts}
    return [any(text in known for text in texts) for texts in sentences(columns, names)]


def describe(columns: dict[str, list], names: list[str], labels: dict[str, list[str]]) -> dict:
    """Return a split's part of the card.

    Args: columns as written to Parquet, with `row`, and `seen` in all splits but train; names of the text
    columns; labels of each label or tag target. `words` counts the words of both texts of a pair together.
    """
    split = {
        "rows": len(columns["row"]),
        "labels": {column: _count(columns[column], order) for column, order in labels.items()},
        "words": _lengths(columns, names),
        "empty": sum(any(map(is_empty, t)) for t in zip(*(columns[name] for name in names), strict=True)),
        **_repeats(sentences(columns, names), columns["row"]),
    }
    if "seen" in columns:
        rows = [row for row, known in zip(columns["row"], columns["seen"], strict=True) if known]
        split["overlap_train"] = {
            "rows": len(rows),
            "share": len(rows) / split["rows"],
            "first": rows[:NAMED],
        }
    return split


def _count(values: list, order: list[str]) -> dict[str, int]:
    """Count labels, all tags in lists, or all labels of edges, in the labels' order."""
    counts = Counter(tag for value in values for tag in labels_of(value))
    return {label: counts[label] for label in order}


def _lengths(columns: dict[str, list], names: list[str]) -> dict[str, float]:
    """Return mean, 95th percentile and maximum of the rows' lengths in words."""
    rows = zip(*(columns[name] for name in names), strict=True)
    words = [sum(len(text.split() if isinstance(text, str) else text) for text in texts) for texts in rows]
    return {
        "mean": round(float(np.mean(words)), 2),
        "p95": float(np.percentile(words, 95)),
        "max": max(words),
    }


def _repeats(texts: list[list[str]], rows: list[int]) -> dict:
    """Count the rows whose normalised texts all occur in an earlier row of the split, and name the first."""
    known, repeated = set(), []
    for row, key in zip(rows, map(tuple, texts), strict=True):
        if key in known:
            repeated.append(row)
        known.add(key)
    return {"duplicates": len(repeated), "duplicate_rows": repeated[:NAMED]}
