"""A trend over ordered groups: the test of Jonckheere (1954) and Terpstra (1952), exact over all divisions.

g groups, N values.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np

MOST = 100_000  # ways to form the groups that are gone through; of more so many are drawn


def falling(groups: list[list[float]]) -> float:
    """Return the one-sided p of the hypothesis that values fall from group to group, in their order.

    The share of all ways to put the N values into groups of these sizes in which as many pairs of values of two groups
    fall as here, or more; of equal values half a pair. 1.0 where fewer than two groups have values.
    """
    groups = [group for group in groups if group]
    if len(groups) < 2:
        return 1.0
    values, sizes = np.concatenate([np.asarray(group, float) for group in groups]), [len(group) for group in groups]
    seen = _pairs_that_fall(values, sizes)
    ways = [_pairs_that_fall(values[list(order)], sizes) for order in _orders(len(values), sizes)]
    return float(np.mean(np.array(ways) >= seen - 1e-9))


def _pairs_that_fall(values: np.ndarray, sizes: list[int]) -> float:
    group = np.repeat(np.arange(len(sizes)), sizes)
    before = group[:, None] < group[None, :]
    signs = np.sign(values[:, None] - values[None, :])
    return float(((signs + 1) / 2)[before].sum())


def _orders(count: int, sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide `count` places into groups of these sizes, each as the places in the groups' order."""
    ways, left = 1, count
    for size in sizes:
        ways *= comb(left, size)
        left -= size
    if ways <= MOST:
        yield from _divided(tuple(range(count)), sizes)
        return
    rng = np.random.default_rng(0)
    yield tuple(range(count))
    yield from (tuple(rng.permutation(count)) for _ in range(MOST))


def _divided(places: tuple[int, ...], sizes: list[int]) -> Iterator[tuple[int, ...]]:
    if not sizes:
        yield ()
        return
    for first in combinations(places, sizes[0]):
        rest = tuple(place for place in places if place not in first)
        yield from (first + others for others in _divided(rest, sizes[1:]))
