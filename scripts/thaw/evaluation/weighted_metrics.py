"""Metrics of many resampled test sets at once: each example counts as often as it was drawn.

N examples, D draws, C classes. Weights are whole numbers [D, N]: how often each draw holds each example.
"""

from collections.abc import Callable

import numpy as np

from thaw.evaluation.metrics import NO_TAG, score, spans

Scorer = Callable[[np.ndarray], np.ndarray]


def scorer(task: dict, metric: str, gold, predicted, labels: list[str] | None = None) -> Scorer:
    """Return the function from weights [D, N] to the scores [D] of a run's answers, NaN where one is not defined.

    Args: a whole task; one of its metrics; gold and predicted as `metrics.score` takes them; the target's label names.
    With all weights 1 it gives the metric itself. A metric of one's own is computed anew for every draw.
    """
    counts = _counts(metric, gold, predicted, labels)
    if counts is not None:
        parts, value = counts
        return lambda weights: value(weights @ parts)
    if metric in ("pearson", "spearman"):
        sides = [np.asarray(side, dtype=np.float64) for side in (gold, predicted)]
        return lambda weights: _correlation(*(_side(side, weights, metric == "spearman") for side in sides), weights)
    return lambda weights: np.array([_anew(task, metric, gold, predicted, labels, row) for row in weights])


def _counts(metric: str, gold, predicted, labels):
    """Return what each example adds to some counts, [N, counts], and the score as a function of their sums [D, counts].

    None for a metric that is no function of counts.
    """
    if metric == "span_f1":
        return _spans(gold, predicted, labels), lambda sums: _ratio(2 * sums[:, 0], sums[:, 1])
    if metric == "accuracy":
        return _equal(gold, predicted), lambda sums: _ratio(sums[:, 0], sums[:, 1])
    if metric not in ("f1", "f1_macro", "mcc"):
        return None
    gold, predicted, classes = np.asarray(gold), np.asarray(predicted), len(labels)
    cells = np.zeros((len(gold), classes, classes))
    cells[np.arange(len(gold)), gold, predicted] = 1
    value = {"f1": _f1_of_second, "f1_macro": _f1_macro, "mcc": _mcc}[metric]
    return cells.reshape(len(gold), -1), lambda sums: value(sums.reshape(-1, classes, classes))


def _equal(gold, predicted) -> np.ndarray:
    """Return for each example its equal entries and all its entries, [N, 2]: one for a label, many for tags."""
    sides = zip(map(np.atleast_1d, gold), map(np.atleast_1d, predicted), strict=True)
    return np.array([[(mine == theirs).sum(), len(mine)] for mine, theirs in sides], dtype=np.float64)


def _f1s(table: np.ndarray) -> np.ndarray:
    """Return the F1 of every class, [D, C]; NaN for one that neither side has."""
    hits = table.diagonal(axis1=1, axis2=2)
    return _ratio(2 * hits, table.sum(1) + table.sum(2))


def _f1_of_second(table: np.ndarray) -> np.ndarray:
    return _f1s(table)[:, 1]


def _f1_macro(table: np.ndarray) -> np.ndarray:
    found = _f1s(table)
    return _ratio(np.nansum(found, 1), (~np.isnan(found)).sum(1))


def _mcc(table: np.ndarray) -> np.ndarray:
    """Return Matthews' coefficient for any number of classes (Gorodkin 2004), 0 where a side has one class alone."""
    total, hits = table.sum((1, 2)), table.trace(axis1=1, axis2=2)
    gold, answered = table.sum(2), table.sum(1)
    above = hits * total - (gold * answered).sum(1)
    below = np.sqrt((total**2 - (gold**2).sum(1)) * (total**2 - (answered**2).sum(1)))
    return np.where(below > 0, above / np.where(below > 0, below, 1), 0.0)


def _spans(gold, predicted, labels: list[str]) -> np.ndarray:
    """Return for each sentence the spans that both sides have, and the spans of both sides together: [N, 2]."""
    found = np.zeros((len(gold), 2))
    for place, sides in enumerate(zip(gold, predicted, strict=True)):
        mine, theirs = (spans(["O" if tag == NO_TAG else labels[tag] for tag in tags]) for tags in sides)
        found[place] = len(mine & theirs), len(mine) + len(theirs)
    return found


def _side(values: np.ndarray, weights: np.ndarray, ranked: bool) -> np.ndarray:
    """Return one side of a correlation: values [1, N], or each draw's own ranks [D, N], ties at their mean rank."""
    if not ranked:
        return values[None]
    _, group = np.unique(values, return_inverse=True)
    drawn = np.zeros((len(weights), group.max() + 1))
    for place, of in enumerate(group):
        drawn[:, of] += weights[:, place]
    return (drawn.cumsum(1) - (drawn - 1) / 2)[:, group]


def _correlation(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted linear correlation [D] of two sides [D or 1, N]; NaN where one does not vary."""
    total = weights.sum(1, keepdims=True)
    first, second = (side - (weights * side).sum(1, keepdims=True) / total for side in (first, second))
    both, one, other = ((weights * pair).sum(1) for pair in (first * second, first**2, second**2))
    return _ratio(both, np.sqrt(one * other))


def _anew(task: dict, metric: str, gold, predicted, labels, weights: np.ndarray) -> float:
    """Return a metric of one draw, whose examples are written out as often as they were drawn."""
    rows = np.repeat(np.arange(len(weights)), weights.astype(int))
    sides = ([side[row] for row in rows] for side in (gold, predicted))
    found = score(task | {"metrics": [metric]}, *sides, labels)[metric]
    return np.nan if found is None else found


def _ratio(above, below) -> np.ndarray:
    """Return a quotient, NaN where the divisor is 0."""
    above, below = np.broadcast_arrays(np.asarray(above, float), np.asarray(below, float))
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
