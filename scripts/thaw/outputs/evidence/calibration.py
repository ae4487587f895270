"""Calibration: whether predictions that a model is sure of are right as often as it says."""

from dataclasses import dataclass

import numpy as np

from thaw.outputs.evidence.task_predictions import PredictedCell, TaskPredictions

BINS = 10


@dataclass(frozen=True)
class Calibration:
    """Expected calibration error, mean confidence and accuracy as fractions; points: (confidence, accuracy) of bins.

    The error is the mean of the seeds' own: of pooled seeds one that is too sure would cancel one that is not sure
    enough. The points are over all seeds.
    """

    error: float
    confidence: float
    accuracy: float
    points: list[tuple[float, float]]


def calibration(data: TaskPredictions, cell: PredictedCell) -> Calibration | None:
    """Return the calibration of a cell's probabilities; None where it has none.

    The confidence is the probability of the predicted label; bins are ten of equal width (Guo et al. 2017).
    """
    if cell.probabilities is None:
        return None
    known, right = cell.values >= 0, (cell.values == data.gold).astype(float)
    confidence = cell.probabilities.max(2)
    errors = []
    for mine, sure, correct in zip(known, confidence, right, strict=True):
        if not mine.any():
            continue
        mean, share, count = _bins(sure[mine], correct[mine])
        errors.append(float(np.abs(mean - share) @ count / count.sum()))
    confidence, right = confidence[known], right[known]
    mean, share, _ = _bins(confidence, right)
    points = list(zip(mean.tolist(), share.tolist(), strict=True))
    return Calibration(float(np.mean(errors)), float(confidence.mean()), float(right.mean()), points)


def _bins(confidence: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of each bin that has predictions their mean confidence, the share that is right, and their number."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    count = np.bincount(bins, minlength=BINS)
    there = np.flatnonzero(count)
    mean, share = (np.bincount(bins, values, BINS)[there] / count[there] for values in (confidence, right))
    return mean, share, count[there]
