"""LogME of each layer: how near the task is to what the encoder knows already (You et al. 2021).

How probable labels are under all linear models of some vectors [N, d], of C classes (You, Liu, Wang and Long 2021).
Measured on the training rows that a seed leaves for fitting, standardised; it has no split that is scored.
"""

import math

import numpy as np

from thaw.core.errors import UserError
from thaw.probes.information_estimates import standardised
from thaw.probes.reading import Reading

STEPS = 100
CLOSE = 1e-5  # change of the ratio alpha / beta, as a share of it, at which it has converged


def log_evidence(vectors: np.ndarray, targets: np.ndarray) -> float:
    """Return the logarithm of the maximum evidence for each vector, in nats: equation (2) of the paper over N.

    Args: vectors [N, d]; targets [N], scores as floats or classes as integers, whose evidence is the mean over classes
    of each class against the others, or [N, C] of 0 and 1, whose evidence is the mean over labels that some have. All
    are centred, so that the bias is free: N - 1 dimensions are left.
    Higher is better; values of one task and N can be compared, others can not.
    """
    vectors = vectors.astype(np.float64)
    vectors = vectors - vectors.mean(0)
    directions, values, _ = np.linalg.svd(vectors, full_matrices=False)
    if np.issubdtype(targets.dtype, np.integer):
        columns = [(targets == label).astype(np.float64) for label in np.unique(targets)]
    elif targets.ndim == 2:
        columns = [column for column in targets.astype(np.float64).T if np.ptp(column)]
    else:
        columns = [targets.astype(np.float64)]
    columns = [column - column.mean() for column in columns]
    shape = len(vectors) - 1, vectors.shape[1]
    return float(np.mean([_evidence(directions.T @ column, values**2, column @ column, *shape) for column in columns]))


def _evidence(moments: np.ndarray, variances: np.ndarray, square: float, count: int, width: int) -> float:
    """Return the largest evidence of one target by its fixed point, section 4.2, over N.

    Args: moments, the target on each direction; variances of the directions, unscaled; the target's squared length.
    """
    if not variances.any():  # all vectors are the same: what is left is the target's own variance
        return (math.log(count / max(square, 1e-12) / (2 * math.pi)) - 1) / 2
    alpha = beta = 1.0
    outside = square - moments @ moments  # of the target's square, what no model of these vectors explains
    for _ in range(STEPS):
        shrunk = alpha + beta * variances
        effective = (beta * variances / shrunk).sum()
        weights = ((beta * np.sqrt(variances) * moments / shrunk) ** 2).sum()
        residual = ((alpha * moments / shrunk) ** 2).sum() + outside
        before, alpha, beta = alpha / beta, effective / max(weights, 1e-12), (count - effective) / max(residual, 1e-12)
        if abs(alpha / beta - before) <= CLOSE * before:
            break
    shrunk = alpha + beta * variances
    weights = ((beta * np.sqrt(variances) * moments / shrunk) ** 2).sum()
    residual = ((alpha * moments / shrunk) ** 2).sum() + outside
    volume = np.log(shrunk).sum() + (width - len(variances)) * math.log(alpha)
    evidence = count * math.log(beta) + width * math.log(alpha) - count * math.log(2 * math.pi)
    return (evidence - beta * residual - alpha * weights - volume) / (2 * count)


def logme(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer, and for each layer its evidence on train, in nats a vector.

    Raises UserError for fewer than two vectors.
    """
    fitted, _ = reading.divided(seed)
    targets = fitted.targets()
    if len(targets) < 2:
        raise UserError(f"task {reading.task['id']}: LogME needs two vectors to fit: take a larger subset")
    targets = targets.astype(np.int64) if reading.labels and targets.ndim == 1 else targets.astype(np.float64)
    rows, layer_scores = [], []
    for number, vectors in zip(reading.numbers, fitted.layers, strict=True):
        states = standardised(vectors.values.cpu().numpy())
        values = {"logme": log_evidence(states, targets)}
        rows.append({"layer": number, "seed": seed, "vectors": len(targets)} | values)
        layer_scores.append({"layer": number, "seed": seed, "scores": {"train": values}})
    return rows, layer_scores
