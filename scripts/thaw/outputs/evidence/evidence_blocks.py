"""The parts of a section of the page of examples: what is known of a task's predictions, ready to be printed."""

import numpy as np

from thaw.outputs.evidence import disagreements, label_errors
from thaw.outputs.evidence.task_predictions import PredictedCell, TaskPredictions
from thaw.words import wording

FIFTHS = ("lowest fifth", "second fifth", "third fifth", "fourth fifth", "highest fifth")


def blocks(data: TaskPredictions, cells: list[PredictedCell], most: int) -> dict:
    """Return the parts by name. Args: the examples; what runs predict for them; how many examples are shown."""
    parts: dict[str, dict | list | None] = {"errors": None, "spans": None, "scores": None}
    if data.task["type"] == "spans":
        parts["spans"] = _spans(data, cells)
    elif data.is_score:
        parts["scores"] = _by_gold(data, cells)
    else:
        parts["errors"] = _labels(data, cells)
    return parts | {
        "marked": not data.is_score,  # the credit of a score is a distance: it is neither right nor wrong
        "differing": disagreements.differing(data, cells, most) if len(cells) > 1 else [],
        "always_wrong": disagreements.always_wrong(data, cells),
    }


def _labels(data: TaskPredictions, cells: list[PredictedCell]) -> dict:
    """Return scores by label, and confusion matrices or the most frequent confusions."""
    matrices = [label_errors.confusion(data, cell) for cell in cells]
    scores = [label_errors.label_scores(matrix) for matrix in matrices]
    gold = np.bincount(data.gold, minlength=len(data.labels))
    lines = [
        {"label": label, "gold": int(gold[i]), "scores": [_percent(of[i]) for of in scores]}
        for i, label in enumerate(data.labels)
        if gold[i] or any(matrix[:, i].any() for matrix in matrices)
    ]
    few = len(data.labels) <= label_errors.MATRIX_LABELS
    pairs = [] if few else label_errors.frequent_confusions(matrices)
    confusions = [
        {"gold": data.labels[a], "as": data.labels[b], "counts": [int(matrix[a, b]) for matrix in matrices]}
        for a, b in pairs
    ]
    shown = [_matrix(matrix) for matrix in matrices] if few else []
    return {"lines": lines, "matrices": shown, "labels": data.labels, "confusions": confusions}


def _percent(score: label_errors.LabelScore) -> list[str]:
    """Return F1, precision and recall in print, x 100."""
    return [wording.number(100 * value, 0) for value in (score.f1, score.precision, score.recall)]


def _matrix(matrix: np.ndarray) -> list[list[tuple[int, int]]]:
    """Return the counts of a confusion matrix with their share of the row in per cent."""
    share = 100 * matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    return [
        [(int(count), round(part)) for count, part in zip(*both, strict=True)]
        for both in zip(matrix, share, strict=True)
    ]


def _spans(data: TaskPredictions, cells: list[PredictedCell]) -> list[dict]:
    """Return scores by type of span."""
    scores = [label_errors.span_scores(data, cell) for cell in cells]
    undefined = label_errors.LabelScore(float("nan"), float("nan"), float("nan"))
    types = sorted({name for one in scores for name in one})
    return [{"label": name, "scores": [_percent(one.get(name, undefined)) for one in scores]} for name in types]


def _by_gold(data: TaskPredictions, cells: list[PredictedCell]) -> list[dict]:
    """Return by fifth of the gold score the mean distance and the mean error, which shows a bias."""
    bounds = np.quantile(data.gold, [0.2, 0.4, 0.6, 0.8])
    fifth = np.searchsorted(bounds, data.gold, side="left")
    lines = []
    for i, name in enumerate(FIFTHS):
        mine = fifth == i
        if not mine.any():
            continue
        errors = [cell.values[:, mine] - data.gold[mine] for cell in cells]
        shown = [
            (wording.number(float(np.nanmean(np.abs(error))), 2), wording.number(float(np.nanmean(error)), 2))
            for error in errors
        ]
        low, high = data.gold[mine].min(), data.gold[mine].max()
        lines.append({"name": name, "range": f"{low:.2f} to {high:.2f}", "count": int(mine.sum()), "errors": shown})
    return lines
