"""Intervals by a hierarchical bootstrap over seeds and examples.

S seeds, N examples, G groups of examples, D draws.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thaw.evaluation.weighted_metrics import Scorer
from thaw.statistics.aggregation import least

DRAWS = 1000
AT_ONCE = 2_000_000  # drawn examples that are held in memory
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A number with the interval that holds it; undefined: the share of draws in which it is not defined."""

    value: float
    low: float
    high: float
    undefined: float = 0.0


class Draws:
    """Resampled seeds and examples, the same for all that is compared: pairs stay pairs.

    The test set is one for all seeds, so seeds and examples are drawn across each other: a draw has some of the seeds
    and some of the examples, with replacement. Examples of one group (the documents of entities) are drawn together.
    """

    def __init__(self, seeds: int, groups, number: int = DRAWS, random_seed: int = 0):
        """Args: S; groups [N], the group of each example, or a number N of examples, each a group of its own; D."""
        self.groups = np.arange(groups) if np.isscalar(groups) else np.unique(groups, return_inverse=True)[1]
        self.number, self.random_seed = number, random_seed
        self.seeds = np.random.default_rng(random_seed).multinomial(seeds, np.full(seeds, 1 / seeds), size=number)

    def examples(self) -> Iterator[np.ndarray]:
        """Yield how often each example was drawn, [some draws, N], the same at every call; D draws in all."""
        rng, count = np.random.default_rng((self.random_seed, 1)), int(self.groups.max()) + 1
        some = max(1, AT_ONCE // count)
        for start in range(0, self.number, some):
            size = min(some, self.number - start)
            drawn = rng.integers(0, count, (size, count)) + count * np.arange(size)[:, None]
            yield np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)[:, self.groups]

    def means(self, runs: list[Scorer]) -> np.ndarray:
        """Return the mean over the drawn seeds in every draw, [D]; NaN where none is defined. Args: a scorer a seed."""
        scores = np.concatenate([np.stack([run(weights) for run in runs], axis=1) for weights in self.examples()])
        weights = np.where(np.isnan(scores), 0, self.seeds)
        total, sums = weights.sum(1), (weights * np.nan_to_num(scores)).sum(1)
        return np.divide(sums, total, out=np.full(self.number, np.nan), where=total > 0)


def interval(value: float, draws: np.ndarray, level: float = LEVEL) -> Interval:
    """Return the percentile interval around a value; draws that are NaN are left out and counted."""
    defined = draws[~np.isnan(draws)]
    if not len(defined):
        return Interval(value, np.nan, np.nan, 1.0)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high), 1 - len(defined) / len(draws))


def least_interval(value, by_k: dict[int, np.ndarray], full: np.ndarray, share: float, level: float = LEVEL) -> dict:
    """Return the interval of the least k that reaches a share of full quality.

    Args: the least k of the scores themselves, None where none reaches it; draws of the score by k; draws of the full
    model. Returns value, low, high (None above the largest k that was run), and never: the share of draws in which no k
    reaches it. Draws in which the full model has no score above 0 are left out.
    """
    usable = np.flatnonzero(full > 0)
    least_k = [least({k: draws[d] for k, draws in by_k.items()}, full[d], share) for d in usable]
    beyond = max(by_k) + 1
    filled = np.sort([beyond if k is None else k for k in least_k])
    ends = [filled[min(int(q * len(filled)), len(filled) - 1)] for q in ((1 - level) / 2, (1 + level) / 2)]
    low, high = (None if k == beyond else int(k) for k in ends)
    return {"value": value, "low": low, "high": high, "never": sum(k is None for k in least_k) / len(least_k)}
