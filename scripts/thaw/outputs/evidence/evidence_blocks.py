"""The parts of a section of the page of examples: what is known of a task's predictions, ready to be printed."""

from pathlib import Path

import numpy as np

from thaw.evaluation.example_slices import in_order
from thaw.outputs import wording
from thaw.outputs.evidence import disagreements, label_errors
from thaw.outputs.evidence.line_charts import Line, chart
from thaw.outputs.evidence.run_histories import learning_curve
from thaw.outputs.evidence.task_predictions import PredictedCell, TaskPredictions

FIFTHS = ("lowest fifth", "second fifth", "third fifth", "fourth fifth", "highest fifth")


def blocks(data: TaskPredictions, cells: list[PredictedCell], looks: list[dict], results: Path, most: int) -> dict:
    """Return the parts by name.

    Args: the examples of the section and what its runs predict; name, strategy, colour and opacity of each cell; the
    results folder; how many examples are shown.
    """
    parts = {"errors": None, "spans": None, "scores": None}
    if data.task["type"] == "spans":
        parts["spans"] = _spans(data, cells)
    elif data.is_score:
        parts["scores"] = _by_gold(data, cells)
    else:
        parts["errors"] = _labels(data, cells)
    return parts | {
        "curves": _curves(data, cells, looks, results),
        "calibration": _calibration(data, cells, looks),
        "slices": _slices(data, cells),
        "unit": "mean distance to gold" if data.is_score else "words right, %" if data.is_tagged else "right, %",
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


def _percent(score: label_errors.LabelScore) -> tuple[str, str, str]:
    """Return F1, precision and recall in print, x 100."""
    return tuple(wording.number(100 * value, 0) for value in (score.f1, score.precision, score.recall))


def _matrix(matrix: np.ndarray) -> list[list[tuple[int, int]]]:
    """Return the counts of a confusion matrix with their share of the row in per cent."""
    share = 100 * matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    return [
        [(int(count), round(part)) for count, part in zip(*both, strict=True)]
        for both in zip(matrix, share, strict=True)
    ]


def _spans(data: TaskPredictions, cells: list[PredictedCell]) -> dict:
    """Return scores by type of span and how many spans are of each kind of error."""
    errors = [label_errors.span_errors(data, cell) for cell in cells]
    types = sorted({name for one in errors for name in one.types})
    undefined = label_errors.LabelScore(float("nan"), float("nan"), float("nan"))
    lines = [{"label": name, "scores": [_percent(one.types.get(name, undefined)) for one in errors]} for name in types]
    kinds = [
        {"kind": kind, "about": about, "counts": [one.kinds[kind] for one in errors]}
        for kind, about in label_errors.KINDS.items()
    ]
    return {"lines": lines, "kinds": kinds}


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


def _curves(data: TaskPredictions, cells: list[PredictedCell], looks: list[dict], results: Path) -> list:
    """Return the charts of loss and of scores against updates; none where no run has a history of epochs."""
    metric = data.task["metrics"][0]
    loss, scores = [], []
    for cell, look in zip(cells, looks, strict=True):
        for seed, folder in zip(cell.seeds, cell.folders, strict=True):
            curve = learning_curve(results / folder, metric)
            if curve is None:
                continue
            name, colour, opacity = f"{cell.name}, seed {seed}", look["colour"], look["opacity"]
            loss.append(Line(name, colour, curve.loss, opacity))
            scores.append(Line(name, colour, curve.validation, opacity))
            if curve.training:
                scores.append(Line(f"{name}, on train", colour, curve.training, opacity, broken=True))
    up = f"{wording.metric_name({}, metric)} × 100, validation"
    charts = [chart(loss, "updates", "training loss"), chart(scores, "updates", up)]
    return [one for one in charts if one]


def _calibration(data: TaskPredictions, cells: list[PredictedCell], looks: list[dict]) -> dict | None:
    """Return the chart and the lines of calibration; None where no run has probabilities."""
    calibrations = [label_errors.calibration(data, cell) for cell in cells]
    if not any(calibrations):
        return None
    lines = [
        Line(cell.name, look["colour"], one.points, look["opacity"])
        for cell, look, one in zip(cells, looks, calibrations, strict=True)
        if one
    ]
    shown = [
        {"look": look, "values": [wording.number(100 * value) for value in (one.error, one.confidence, one.accuracy)]}
        for look, one in zip(looks, calibrations, strict=True)
        if one
    ]
    return {"chart": chart(lines, "confidence", "share right", square=True), "lines": shown}


def _slices(data: TaskPredictions, cells: list[PredictedCell]) -> list[dict]:
    """Return by slice how many examples it has and the mean credit of each cell."""
    credits, lines = np.stack([data.credits(cell) for cell in cells]), []
    scored = ~np.isnan(credits).all(0)
    for of, names in data.slices.items():
        for name in in_order(names[scored].tolist()):
            mine = scored & (names == name)
            means = np.nanmean(credits[:, mine], axis=1) * (-1 if data.is_score else 100)
            text = [wording.number(float(mean), 2 if data.is_score else 1) for mean in means]
            lines.append({"of": of, "name": name, "count": int(mine.sum()), "means": text})
    return lines
