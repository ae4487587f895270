"""Intervals of means over seeds: a bootstrap over groups of examples, and Student's t over seeds.

S seeds, N examples, G groups of examples, D draws.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2, sqrt
from zlib import crc32

import numpy as np

from thaw.evaluation.weighted_metrics import Scorer
from thaw.statistics.aggregation import FEWEST_OF_INTERVAL, least_lasting

DRAWS = 1000
AT_ONCE = 2_000_000  # drawn examples that are held in memory
LEVEL = 0.95
TINY = 1e-9  # a point at 0 would be at an infinite quantile


@dataclass(frozen=True)
class Interval:
    """A number with the ends of the interval that holds it."""

    value: float
    low: float
    high: float


class RowDraws:
    """Resampled examples, the same for all that is compared: pairs stay pairs.

    Examples of one group (the sentences of a document, pairs that share a sentence) are drawn together.
    """

    def __init__(self, groups: int | np.ndarray, number: int = DRAWS, random_seed: int = 0):
        """Args: groups [N], the group of each example, or a number N of examples, each a group of its own; D."""
        self.groups = np.arange(groups) if isinstance(groups, int) else np.unique(groups, return_inverse=True)[1]
        self.number, self.random_seed = number, random_seed

    def drawn(self) -> Iterator[np.ndarray]:
        """Yield how often each group was drawn, [some draws, G], the same at every call; D draws in all."""
        if self.number * (int(self.groups.max()) + 1) <= AT_ONCE:
            yield self._held.astype(float)
        else:
            yield from self._batches()

    @functools.cached_property
    def _held(self) -> np.ndarray:
        """All draws, [D, G], where they are few: each run asks for them again."""
        return np.concatenate(list(self._batches())).astype(np.uint8)

    def _batches(self) -> Iterator[np.ndarray]:
        rng, count = np.random.default_rng((self.random_seed, 1)), int(self.groups.max()) + 1
        some = max(1, AT_ONCE // count)
        for start in range(0, self.number, some):
            size = min(some, self.number - start)
            drawn = rng.integers(0, count, (size, count)) + count * np.arange(size)[:, None]
            yield np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count).astype(float)

    def examples(self) -> Iterator[np.ndarray]:
        """Yield how often each example was drawn, [some draws, N], as `drawn`."""
        yield from (drawn[:, self.groups] for drawn in self.drawn())

    def scores(self, runs: list[Scorer]) -> np.ndarray:
        """Return what each run scores on each draw of the examples, [S, D]; NaN where that is not defined.

        Runs whose scores follow from sums over examples share one product of matrices.
        """
        if any(run.counts is None for run in runs):
            return np.concatenate([np.stack([run(weights) for run in runs]) for weights in self.examples()], axis=1)
        counts = [run.by_group(self.groups) for run in runs]
        together, ends = np.concatenate(counts, axis=1), np.cumsum([part.shape[1] for part in counts])[:-1]
        some, scores = max(1, AT_ONCE // together.shape[1]), []
        for drawn in self.drawn():
            for start in range(0, len(drawn), some):
                sums = np.split(drawn[start : start + some] @ together, ends, axis=1)
                scores.append(np.stack([run.value(part) for run, part in zip(runs, sums, strict=True)]))
        return np.concatenate(scores, axis=1)


class PartDraws(RowDraws):
    """Resampled examples of a part of a set, whose other parts are resampled too.

    How often a group is drawn depends on its name alone (a Poisson number with mean 1): parts that share groups share
    their draws, and parts that share none are independent.
    """

    def __init__(self, groups: np.ndarray, number: int = DRAWS, random_seed: int = 0):
        """Args: groups [N], the name of each example's group, the same in every part; D."""
        super().__init__(groups, number, random_seed)
        self.names = np.unique(groups)

    def drawn(self) -> Iterator[np.ndarray]:
        """Yield how often each group was drawn, as `RowDraws.drawn`; a draw of N examples has about N."""
        some = max(1, AT_ONCE // len(self.groups))
        yield from (self._all[start : start + some].astype(float) for start in range(0, self.number, some))

    @functools.cached_property
    def _all(self) -> np.ndarray:
        """How often each group is drawn, [D, G]: a stream of random numbers for each takes long to begin."""
        streams = (np.random.default_rng((self.random_seed, 2, crc32(str(name).encode()))) for name in self.names)
        return np.stack([stream.poisson(1.0, self.number).astype(np.uint8) for stream in streams], axis=1)


@dataclass(frozen=True)
class Spread:
    """What an interval of a mean is made of: variance of one seed, variance by the rows, and how many of both.

    by_seed: of one seed's score, NaN with one seed; by_rows: of the mean of all seeds, which more seeds do not lessen.
    """

    by_seed: float
    by_rows: float
    seeds: int
    rows: int

    @property
    def error(self) -> float:
        """The standard error of the mean; with fewer than three seeds that of the rows alone."""
        return sqrt(self.by_rows + (self.by_seed / self.seeds if self.seeds >= FEWEST_OF_INTERVAL else 0.0))


@dataclass(frozen=True)
class Resampled:
    """A mean over seeds, its draws [D], and the variances that they are made of."""

    value: float
    draws: np.ndarray
    spread: Spread

    @functools.cached_property
    def ci(self) -> Interval:
        """The 95 % CI of a score, or of a difference of scores, in points.

        Where no drawn example changes it, as where all are right, it is as wide as examples that were not seen allow.
        """
        ci = interval(self.value, self.draws)
        if self.spread.error != 0:
            return ci
        away = 100 * unseen_share(self.spread.rows, (1 + LEVEL) / 2)
        low, high = max(-100.0, ci.low - away), min(100.0, ci.high + away)  # R2 may be below -100
        return Interval(ci.value, min(ci.low, low), max(ci.high, high))


def unseen_share(rows: int, level: float) -> float:
    """Return the share of all examples that may differ, with that confidence no more, where none of some rows does.

    The rows are independent; at 0.95 it is 3 in n, nearly (Hanley and Lippman-Hand 1983).
    """
    return 1 - (1 - level) ** (1 / rows)


def resampled(scores: np.ndarray, by_row: np.ndarray, rows: int, paired: bool = False) -> Resampled:
    """Return a mean over seeds with its draws: seeds and examples are crossed, since one test set serves all seeds.

    What seeds add is drawn from t with S - 1 degrees of freedom (a multiplier for each seed, the same for all means of
    S seeds), for a bootstrap of few seeds is too narrow; with fewer than three seeds the draws are of the examples
    alone. What differs by seed and example at once is in the variance between seeds and in that of the resampled
    mean (Owen 2007): in paired differences, of which it is the larger part, it is taken out of the latter.

    Args: scores [S] on all examples; by_row [S, D], on resampled ones; the number of examples; paired, whether the
    scores are differences.
    """
    seeds, value = len(scores), float(np.mean(scores))
    away = by_row - np.asarray(scores)[:, None]
    defined = ~np.isnan(away)
    count = defined.sum(0)
    of_mean = np.divide(np.where(defined, away, 0).sum(0), count, out=np.full(away.shape[1], np.nan), where=count > 0)
    by_rows = float(np.nanvar(of_mean)) if count.any() else np.nan
    by_seed = float(np.var(scores, ddof=1)) if seeds > 1 else np.nan
    if seeds < FEWEST_OF_INTERVAL:
        return Resampled(value, value + of_mean, Spread(by_seed, by_rows, seeds, rows))
    if paired and by_rows > 0:
        both = (float(np.nanmean(np.nanvar(away, axis=1))) - by_rows) / (seeds - 1)
        left = max(0.0, by_rows - max(0.0, both))
        of_mean, by_rows = of_mean * np.sqrt(left / by_rows), left
    draws = value + of_mean + _multipliers(seeds, away.shape[1]) @ scores
    return Resampled(value, draws, Spread(by_seed, by_rows, seeds, rows))


@functools.cache
def _multipliers(seeds: int, number: int) -> np.ndarray:
    """Return by how much each seed counts for more than its share, [D, S]: times scores this is t, times s / sqrt(S).

    Directions at right angles to the mean, times the root of F with (S - 1, S - 1) degrees of freedom: the squared
    length of S - 1 normal numbers over a chi squared is F, and normal numbers over that chi are t. Both are taken
    from points that fill their space evenly (Sobol, scrambled), in a random order: with independent ones the end of an
    interval depends twice as much on which seed is which.
    """
    from scipy.linalg import helmert
    from scipy.stats import f, norm, qmc

    rng, free = np.random.default_rng((seeds, number)), seeds - 1
    points = qmc.Sobol(seeds, rng=rng).random_base2(ceil(log2(number)))[:number]
    within = norm.ppf(points[:, :free].clip(TINY, 1 - TINY))
    within /= np.linalg.norm(within, axis=1, keepdims=True)
    lengths = np.sqrt(f.ppf((points[:, free].argsort().argsort() + 0.5) / number, free, free) / seeds)
    return rng.permutation((within * lengths[:, None]) @ helmert(seeds))


def interval(value: float, draws: np.ndarray) -> Interval:
    """Return the 95 % percentile interval around a value; draws that are NaN are left out."""
    defined = draws[~np.isnan(draws)]
    if not len(defined):
        return Interval(value, np.nan, np.nan)
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))


def least_interval(by_k: dict[int, np.ndarray], full: np.ndarray, share: float) -> tuple[int | None, int | None]:
    """Return the ends of the 95 % CI of the least k from which on every k reaches a share of full quality.

    Args: draws of the score by k; draws of the full model. An end is None above the largest k that was run. Draws in
    which the full model has no score above 0 are left out.
    """
    usable = np.flatnonzero(full > 0)
    least_k = [least_lasting({k: draws[d] for k, draws in by_k.items()}, full[d], share) for d in usable]
    beyond = max(by_k) + 1
    filled = np.sort([beyond if k is None else k for k in least_k])
    low, high = (filled[min(int(q * len(filled)), len(filled) - 1)] for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return None if low == beyond else int(low), None if high == beyond else int(high)
