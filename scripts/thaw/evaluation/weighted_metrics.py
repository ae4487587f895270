"""Metrics of many resampled test sets at once: each example counts as often as it was drawn.

N examples, D draws. Weights are whole numbers [D, N]: how often each draw holds each example.
"""

from collections.abc import Callable

import numpy as np

from thaw.evaluation.metrics import METRICS, CountMetric, as_metric_wants, ratio, score, weighted_average_precision

Scorer = Callable[[np.ndarray], np.ndarray]


def scorer(task: dict, metric: str, gold, predicted, labels: list[str] | None = None) -> Scorer:
    """Return the function from weights [D, N] to the scores [D] of a run's predictions, NaN where one is not defined.

    Args: a whole task; one of its metrics; gold and predicted as `metrics.score` takes them; the target's label names.
    With all weights 1 it gives the metric itself. A metric from a plug-in is computed again for every draw.
    """
    counted = METRICS.get(metric)
    if isinstance(counted, CountMetric):
        counts = counted.counts(*as_metric_wants(metric, gold, predicted, labels), len(labels)).astype(float)
        return lambda weights: counted.value(weights @ counts.T)
    if metric in ("pearson", "spearman"):
        sides = [np.asarray(side, dtype=np.float64) for side in (gold, predicted)]
        return lambda weights: _correlation(*(_side(side, weights, metric == "spearman") for side in sides), weights)
    if metric == "mean_average_precision":
        return lambda weights: weighted_average_precision(gold, predicted, weights)
    return lambda weights: np.array([_of_draw(task, metric, gold, predicted, labels, row) for row in weights])


def _side(values: np.ndarray, weights: np.ndarray, ranked: bool) -> np.ndarray:
    """Return one side of a correlation: values [1, N], or each draw's own ranks [D, N], ties at their mean rank."""
    if not ranked:
        return values[None]
    _, group = np.unique(values, return_inverse=True)
    drawn = np.zeros((len(weights), group.max() + 1))
    for example, rank in enumerate(group):
        drawn[:, rank] += weights[:, example]
    return (drawn.cumsum(1) - (drawn - 1) / 2)[:, group]


def _correlation(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted linear correlation [D] of two sides [D or 1, N]; NaN where one does not vary."""
    total = weights.sum(1, keepdims=True)
    first, second = (side - (weights * side).sum(1, keepdims=True) / total for side in (first, second))
    both, one, other = ((weights * pair).sum(1) for pair in (first * second, first**2, second**2))
    return ratio(both, np.sqrt(one * other))


def _of_draw(task: dict, metric: str, gold, predicted, labels, weights: np.ndarray) -> float:
    """Return a metric of one draw, whose examples are written out as often as they were drawn."""
    rows = np.repeat(np.arange(len(weights)), weights.astype(int))
    sides = ([side[row] for row in rows] for side in (gold, predicted))
    value = score(task | {"metrics": [metric]}, *sides, labels)[metric]
    return np.nan if value is None else value
