"""Errors by label: confusion matrices, precision, recall and F1, of spans by type."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from thaw.evaluation.metrics import ratio, spans
from thaw.outputs.evidence.task_predictions import PredictedCell, TaskPredictions

MATRIX_LABELS = 6  # up to so many labels a confusion matrix is shown; of more the most frequent confusions
CONFUSIONS = 15


@dataclass(frozen=True)
class LabelScore:
    """Precision, recall and F1 of a label as fractions, NaN where one is not defined."""

    precision: float
    recall: float
    f1: float


def confusion(data: TaskPredictions, cell: PredictedCell) -> np.ndarray:
    """Return how often each label was predicted for each, over all seeds: [C, C], gold by row."""
    size, known = len(data.labels), cell.values >= 0
    gold = np.broadcast_to(data.gold, cell.values.shape)[known]
    return np.bincount(gold * size + cell.values[known], minlength=size * size).reshape(size, size)


def label_scores(matrix: np.ndarray) -> list[LabelScore]:
    """Return the scores of each label from a confusion matrix [C, C]."""
    right = matrix.diagonal()
    return _scores(right, matrix.sum(0), matrix.sum(1))


def frequent_confusions(matrices: list[np.ndarray]) -> list[tuple[int, int]]:
    """Return the pairs (gold, predicted) of different labels that are confused most often over all matrices."""
    total = np.sum(matrices, axis=0)
    off = total * (1 - np.eye(len(total), dtype=total.dtype))
    order = np.argsort(-off, axis=None, kind="stable")[:CONFUSIONS]
    pairs = [divmod(int(place), len(off)) for place in order]
    return [pair for pair in pairs if off[pair]]


def span_scores(data: TaskPredictions, cell: PredictedCell) -> dict[str, LabelScore]:
    """Return the scores of each type of span, over all seeds. Tags mark spans in IOB2, see `metrics.spans`."""
    right: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    gold: Counter[str] = Counter()
    bounds = np.searchsorted(data.example, np.arange(len(data.frame) + 1))
    names = np.array([*data.labels, "O"])  # -1, a sentence that was not scored, is the last
    all_gold = [spans(names[data.gold[a:b]]) for a, b in zip(bounds, bounds[1:], strict=False)]
    for values in cell.values:
        for n, (a, b) in enumerate(zip(bounds, bounds[1:], strict=False)):
            if a == b or values[a] < 0:
                continue
            same = np.array_equal(values[a:b], data.gold[a:b])
            mine, theirs = all_gold[n], all_gold[n] if same else spans(names[values[a:b]])
            for side, counts in ((mine, gold), (theirs, predicted), (mine & theirs, right)):
                counts.update(name for name, *_ in side)
    types = sorted(gold | predicted)
    of_types = (np.array([counts[name] for name in types]) for counts in (right, predicted, gold))
    return dict(zip(types, _scores(*of_types), strict=True))


def _scores(right, predicted, gold) -> list[LabelScore]:
    parts = (ratio(right, predicted), ratio(right, gold), ratio(2 * right, predicted + gold))
    return [LabelScore(*map(float, three)) for three in zip(*parts, strict=True)]
