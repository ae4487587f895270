"""Where in an encoder a task is solved: expected layer, centre of gravity, and how far from even (Tenney et al. 2019).

L layers; scores and weights are lists of L + 1 numbers, the embeddings first.
"""

import numpy as np


def gains(scores) -> np.ndarray:
    """Return [L]: what each layer adds to the score of a mix of all layers up to the one below it (equation 3)."""
    return np.diff(np.asarray(scores, dtype=np.float64))


def expected_layer(scores, negative: bool = True) -> float | None:
    """Return the mean layer at which an example is solved first (equation 4); None where nothing is gained in sum.

    Args: negative: gains below 0 count as they are, as in the published code; else as 0.
    """
    found = gains(scores) if negative else gains(scores).clip(0)
    total = found.sum()
    return float((np.arange(1, len(found) + 1) * found).sum() / total) if total > 0 else None


def centre_of_gravity(weights) -> float:
    """Return the mean layer under the weights of a scalar mix, counted from the embeddings as 0 (equation 2)."""
    weights = np.asarray(weights, dtype=np.float64)
    return float((np.arange(len(weights)) * weights).sum() / weights.sum())


def from_even(shares) -> float:
    """Return in bits how far shares of layers are from even: their divergence (Kullback and Leibler) from uniform.

    Of weights it is K(s). Of gains it is K(delta): those below 0 count as 0.
    """
    shares = np.asarray(shares, dtype=np.float64).clip(0)
    shares = shares / shares.sum()
    present = shares[shares > 0]
    return float((present * np.log2(present * len(shares))).sum())
