"""How unlike the words of two samples of text are: the Jensen-Shannon divergence of their terms (Lin 1991)."""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

TERM = re.compile(r"\w+|[^\w\s]")


def terms(texts: Iterable[str]) -> list[str]:
    """Return the words and marks of some texts, lower case, in their order."""
    return [term for text in texts for term in TERM.findall(text.lower())]


def jensen_shannon(first: Iterable[str], second: Iterable[str]) -> float:
    """Return the Jensen-Shannon divergence in bits of the terms of two samples: 0 as often each, 1 none in common.

    D(P, Q) = (KL(P | M) + KL(Q | M)) / 2 with M = (P + Q) / 2 (Lin 1991), over all terms of both.
    """
    counts = [Counter(first), Counter(second)]
    known = sorted(counts[0].keys() | counts[1].keys())
    one, two = (np.array([count[term] for term in known]) / count.total() for count in counts)
    return (_divergence(one, (one + two) / 2) + _divergence(two, (one + two) / 2)) / 2


def _divergence(one: np.ndarray, other: np.ndarray) -> float:
    """Return the Kullback-Leibler divergence in bits of two distributions; the other is 0 nowhere where one is not."""
    there = one > 0
    return float((one[there] * np.log2(one[there] / other[there])).sum())
