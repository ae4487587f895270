"""Metrics of many resampled test sets at once: each example counts as often as it was drawn.

N examples, D draws. Weights are whole numbers [D, N]: how often each draw holds each example.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from thaw.evaluation.answers import BestThreshold
from thaw.evaluation.metrics import (
    METRICS,
    CountMetric,
    as_metric_wants,
    ratio,
    score,
    varies,
    weighted_average_precision,
)

CANCELLED = 1e-12  # a variance that is less than this share of its terms is what rounding left of 0


@dataclass(frozen=True)
class Scorer:
    """A run's score as a function of weights.

    Args: value, from sums [D, K] of counts over the drawn examples to scores [D], or from the weights [D, N]
    themselves; counts, what each example adds to each sum, [K, N], None for a score that does not follow from sums.
    """

    value: Callable[[np.ndarray], np.ndarray]
    counts: np.ndarray | None = None

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """Return the scores [D], NaN where one is not defined."""
        return self.value(weights if self.counts is None else weights @ self.counts.T)

    def by_group(self, groups: np.ndarray) -> np.ndarray:
        """Return the counts of whole groups, [G, K]. Args: the group [N] of each example, numbered without gaps."""
        assert self.counts is not None, "scores by weights have no counts"
        return np.stack([np.bincount(groups, count) for count in self.counts], axis=1)


def scorer(task: dict, metric: str, gold, predicted, labels: Sequence[str] = ()) -> Scorer:
    """Return the scores of a run's predictions as a function of weights.

    Args: a whole task; one of its metrics; gold and predicted as `metrics.score` takes them; the target's label names.
    With all weights 1 it gives the metric itself. A metric from a plug-in is computed again for every draw.
    """
    counted = METRICS.get(metric)
    if isinstance(counted, CountMetric):
        counts = counted.counts(*as_metric_wants(metric, gold, predicted, labels), len(labels)).astype(float)
        return Scorer(counted.value, counts)
    if isinstance(counted, BestThreshold):
        return Scorer(counted.weighted(gold, predicted))
    if metric == "pearson":
        return Scorer(_pearson, _moments(gold, predicted))
    if metric == "spearman":
        one, other = (np.asarray(side, dtype=np.float64) for side in (gold, predicted))
        return Scorer(lambda weights: _correlation(_ranks(one, weights), _ranks(other, weights), weights))
    if metric == "r2":
        return Scorer(_r2, _errors(gold, predicted))
    if metric == "mean_average_precision":
        return Scorer(lambda weights: weighted_average_precision(gold, predicted, weights))
    return Scorer(lambda weights: np.array([_of_draw(task, metric, gold, predicted, labels, row) for row in weights]))


def _moments(gold, predicted) -> np.ndarray:
    """Return what Pearson's correlation is made of, [6, N]: 1, both sides, their squares and their product.

    The sides are less their means, so that little cancels; one that does not vary is 0.
    """
    sides = [np.asarray(side, dtype=np.float64) for side in (gold, predicted)]
    one, other = (side - side.mean() if varies(side) else np.zeros(len(side)) for side in sides)
    return np.stack([np.ones(len(one)), one, other, one**2, other**2, one * other])


def _pearson(sums: np.ndarray) -> np.ndarray:
    """Return Pearson's correlation [D] from sums [D, 6] of `_moments`; NaN where one side does not vary."""
    total, one, other, one_squared, other_squared, both = sums.T
    spreads = _deviations(total, one, one_squared) * _deviations(total, other, other_squared)
    return ratio(both - ratio(one * other, total), np.sqrt(spreads))


def _errors(gold, predicted) -> np.ndarray:
    """Return what R² is made of, [4, N]: 1, gold less its mean, its square, and the squared error."""
    gold, predicted = (np.asarray(side, dtype=np.float64) for side in (gold, predicted))
    away = gold - gold.mean() if varies(gold) else np.zeros(len(gold))
    return np.stack([np.ones(len(gold)), away, away**2, (gold - predicted) ** 2])


def _r2(sums: np.ndarray) -> np.ndarray:
    """Return R² [D] from sums [D, 4] of `_errors`; NaN where gold does not vary."""
    total, away, squared, errors = sums.T
    return 1 - ratio(errors, _deviations(total, away, squared))


def _deviations(total: np.ndarray, one: np.ndarray, squared: np.ndarray) -> np.ndarray:
    """Return the squared deviations from the mean, summed, 0 for what rounding left: from the sums of 1, x and x²."""
    spread = squared - ratio(one**2, total)
    return np.where(spread > CANCELLED * squared, spread, 0.0)


def _ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return each draw's own ranks of values [N], ties at their mean rank, [D, N]."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    drawn = np.add.reduceat(weights[:, order], np.searchsorted(group[order], np.arange(group.max() + 1)), axis=1)
    return (drawn.cumsum(1) - (drawn - 1) / 2)[:, group]


def _correlation(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted linear correlation [D] of two sides [D, N]; NaN where one does not vary."""
    total = weights.sum(1, keepdims=True)
    first, second = (side - (weights * side).sum(1, keepdims=True) / total for side in (first, second))
    both, one, other = ((weights * pair).sum(1) for pair in (first * second, first**2, second**2))
    return ratio(both, np.sqrt(one * other))


def _of_draw(task: dict, metric: str, gold, predicted, labels, weights: np.ndarray) -> float:
    """Return a metric of one draw, whose examples are written out as often as they were drawn."""
    rows = np.repeat(np.arange(len(weights)), weights.astype(int))
    mine, theirs = ([side[row] for row in rows] for side in (gold, predicted))
    value = score(task | {"metrics": [metric]}, mine, theirs, labels)[metric]
    return np.nan if value is None else value
