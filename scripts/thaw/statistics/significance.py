"""Whether two strategies differ: paired differences over seeds, their test, effect size, and what it can say."""

from dataclasses import dataclass
from itertools import product
from math import ceil, sqrt

import numpy as np

from thaw.core.errors import UserError

FEWEST_SEEDS = 6  # a sign-flip test over n seeds cannot go below 2 / 2^n, which is above 0.05 with five
EXACT_SEEDS = 14
FLIPS = 20_000
ALPHA = 0.05


def sign_flip(differences, random_seed: int = 0) -> float:
    """Return the two-sided p of the mean of paired differences under changes of their signs.

    Exact over all 2^n signs up to 14 differences, then over 20,000 random ones (and the observed). It assumes that
    under no effect each difference is as likely with either sign (Fisher 1935).
    """
    differences = np.asarray(differences, dtype=np.float64)
    n = len(differences)
    if n == 0:
        raise UserError("a test needs one difference or more")
    if n <= EXACT_SEEDS:
        signs = np.array(list(product((1, -1), repeat=n)))
    else:
        drawn = np.random.default_rng(random_seed).choice((1, -1), size=(FLIPS, n))
        signs = np.vstack([np.ones(n), drawn])
    sums = np.abs(signs @ differences)
    return float((sums >= abs(differences.sum()) - 1e-12).mean())


def holm(values: list[float]) -> list[float]:
    """Return p-values adjusted for being a family, in their order (Holm 1979)."""
    adjusted, highest = [0.0] * len(values), 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, values[index] * (len(values) - rank)))
        adjusted[index] = highest
    return adjusted


def effect_size(differences) -> float | None:
    """Return the mean difference in its own standard deviations (Cohen's d of pairs); None without a deviation."""
    differences = np.asarray(differences, dtype=np.float64)
    spread = differences.std(ddof=1) if len(differences) > 1 else 0.0
    return float(differences.mean() / spread) if spread > 0 else None


@dataclass(frozen=True)
class PairedTest:
    """The result of a test. answer: higher, lower, not distinguishable, or too few seeds to say."""

    difference: float
    p: float
    adjusted: float
    effect: float | None
    seeds: int
    answer: str


def compare(families: list[list[float]], alpha: float = ALPHA) -> list[PairedTest]:
    """Return the comparisons of a family, p-values adjusted by Holm over it.

    Args: for each comparison its differences by seed. With fewer than six seeds no answer is possible at 0.05.
    """
    values = [sign_flip(differences) for differences in families]
    tests = []
    for differences, p, adjusted in zip(families, values, holm(values), strict=True):
        mean = float(np.mean(differences))
        answer = "not distinguishable" if adjusted > alpha else ("higher" if mean > 0 else "lower")
        if len(differences) < FEWEST_SEEDS:
            answer = "too few seeds"
        tests.append(PairedTest(mean, p, adjusted, effect_size(differences), len(differences), answer))
    return tests


def seeds_needed(differences, margin: float = 0.0, alpha: float = ALPHA, most: int = 1000) -> int | None:
    """Return how many seeds separate a mean difference from a margin, if mean and deviation stay as they are.

    The smallest n, six or more, whose t interval of half width t(n) sd / sqrt(n) does not hold the margin; None where
    `most` are not enough, or fewer than two differences are known.
    """
    from scipy.stats import t

    differences = np.asarray(differences, dtype=np.float64)
    if len(differences) < 2:
        return None
    way, spread = abs(differences.mean() - margin), differences.std(ddof=1)
    if way == 0:
        return None
    start = max(FEWEST_SEEDS, ceil((1.96 * spread / way) ** 2 * 0.5))
    return next((n for n in range(start, most + 1) if t.ppf(1 - alpha / 2, n - 1) * spread / sqrt(n) < way), None)
