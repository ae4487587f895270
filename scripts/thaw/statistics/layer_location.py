"""At which layers an encoder solves a task, as a number: centre of gravity, expected layer, and how sharp both are.

Tenney, Das and Pavlick 2019, sections 3.1 and 3.2. Layers count from 0, the embeddings, to L.
"""

from collections.abc import Sequence

import numpy as np


def centre_of_gravity(weights: Sequence[float]) -> float:
    """Return the mean layer under the weights of a mix [L + 1], which add up to 1 (equation 2)."""
    return float(np.arange(len(weights)) @ np.asarray(weights))


def deltas(scores: Sequence[float], negative: str = "keep") -> np.ndarray:
    """Return what each layer adds to the score of a mix of those below it, [L] (equation 3).

    Args: scores of mixes of the layers 0 to l, [L + 1]; what becomes of a layer that takes away from the score. keep:
    its difference is negative; zero: it is 0; running_max: a score counts as the best so far.
    """
    scores = np.asarray(scores, dtype=float)
    if negative == "running_max":
        scores = np.maximum.accumulate(scores)
    differences = np.diff(scores)
    return np.maximum(differences, 0) if negative == "zero" else differences


def expected_layer(scores: Sequence[float], negative: str = "keep") -> float | None:
    """Return the mean layer under the differences of scores (equation 4); None where they do not add up to more than 0.

    The published code keeps negative differences here, though not in the divergence
    (https://github.com/nyu-mll/jiant, probing/analysis_bertlayer_ACL_camera_ready.ipynb).
    """
    differences = deltas(scores, negative)
    return float(np.arange(1, len(scores)) @ differences / differences.sum()) if differences.sum() > 0 else None


def divergence(shares: Sequence[float]) -> float | None:
    """Return the bits between shares and equal ones: 0 where all are equal, log2 of their number where one has all.

    They need not add up to 1. Negative ones count as 0, as in the published code; None where nothing is left.
    """
    distribution = np.maximum(np.asarray(shares, dtype=float), 0)
    if not distribution.sum() > 0:
        return None
    distribution = distribution / distribution.sum()
    positive = distribution[distribution > 0]
    return float(positive @ np.log2(positive * len(distribution)))
