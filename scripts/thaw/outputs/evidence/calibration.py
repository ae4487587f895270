"""Calibration: whether predictions that a model is sure of are right as often as it says."""

from dataclasses import dataclass

import numpy as np

from thaw.outputs.evidence.task_predictions import PredictedCell, TaskPredictions

BINS = 10


@dataclass(frozen=True)
class Calibration:
    """Expected calibration error, mean confidence and accuracy as fractions; points: (confidence, accuracy) of bins."""

    error: float
    confidence: float
    accuracy: float
    points: list[tuple[float, float]]


def calibration(data: TaskPredictions, cell: PredictedCell) -> Calibration | None:
    """Return the calibration of a cell's probabilities over all seeds; None where it has none.

    The confidence is the probability of the predicted label; bins are ten of equal width (Guo et al. 2017).
    """
    if cell.probabilities is None:
        return None
    known = cell.values >= 0
    confidence = cell.probabilities.max(2)[known]
    right = (cell.values == data.gold)[known].astype(float)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    count = np.bincount(bins, minlength=BINS)
    there = np.flatnonzero(count)
    mean = np.bincount(bins, confidence, BINS)[there] / count[there]
    share = np.bincount(bins, right, BINS)[there] / count[there]
    error = float(np.abs(mean - share) @ count[there] / len(right))
    points = list(zip(mean.tolist(), share.tolist(), strict=True))
    return Calibration(error, float(confidence.mean()), float(right.mean()), points)
