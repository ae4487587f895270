"""How many seeds and test rows would separate a mean from a margin, if mean and deviations stay as they are."""

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from thaw.declarations.decision import ALPHA, FEWEST_OF_INTERVAL, FEWEST_SEEDS

MOST_SEEDS = 100  # beyond these it is the test set that is too small


@dataclass(frozen=True)
class Spread:
    """What an interval of a mean is made of: variance of one seed, variance by the test rows, and how many of both.

    by_seed: of one seed's score, NaN with one seed; by_rows: of the mean of all seeds, which more seeds do not lessen.
    """

    by_seed: float
    by_rows: float
    seeds: int
    rows: int

    @property
    def error(self) -> float:
        """The standard error of the mean; with fewer than three seeds that of the test rows alone."""
        return sqrt(self.by_rows + (self.by_seed / self.seeds if self.seeds >= FEWEST_OF_INTERVAL else 0.0))


@dataclass(frozen=True)
class Needed:
    """How many seeds more, and how many test rows in all; rows is None where those that are there are enough."""

    seeds: int
    rows: int | None


def needed(distance: float, spread: Spread, tests: int = 1, reach: float = 0.0) -> Needed | None:
    """Return the least with which an interval's half width sqrt(t(n)^2 by_seed / n + z^2 by_rows) is below a distance.

    Seeds alone where 100 or fewer do; else the rows as well, with seeds enough that theirs is at most half of the
    squared distance. One seed more, and six, in any case. None with one seed, or where the distance is 0. A sign-flip
    test of so few seeds may ask for more. Args: tests, how many share the error of a test over seeds; reach, how
    many standard errors t and z are at least, as those of intervals of a family.
    """
    from scipy.stats import t

    if distance == 0 or spread.by_seed != spread.by_seed:
        return None
    level = 1 - ALPHA / tests / 2
    numbers = np.arange(max(FEWEST_SEEDS, spread.seeds + 1), 100 * MOST_SEEDS)
    by_seed = np.maximum(t.ppf(level, numbers - 1), reach) ** 2 * spread.by_seed / numbers
    by_rows = max(NormalDist().inv_cdf(level), reach) ** 2 * spread.by_rows
    alone = (by_seed + by_rows < distance**2)[numbers <= MOST_SEEDS]
    if alone.any():
        return Needed(int(numbers[alone.argmax()]) - spread.seeds, None)
    half = by_seed <= distance**2 / 2
    if not half.any():
        return None
    rows = ceil(spread.rows * by_rows / (distance**2 - by_seed[half.argmax()]))
    return Needed(int(numbers[half.argmax()]) - spread.seeds, rows if rows > spread.rows else None)
