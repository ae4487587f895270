"""Mutual information in bits, estimated from counts: how often vectors of one cell have one label.

N vectors [N, d], r dimensions after projection, P partitions: each one gives every vector a cell, an id [N] from 0.

EDGE takes the cells of a randomly shifted grid, for several widths (Noshad, Zeng and Hero 2018, arXiv 1801.09125);
k-means takes clusters of vectors. With few vectors to a cell even shuffled labels have mutual information with it: that
is measured too, and subtracted (Vinh, Epps and Bailey 2010, section 4).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BIAS = 0.1  # bits that a grid as wide as a deviation is taken to lose, to each order; only its square over 1/N counts
DEVIATIONS = 1.96  # of a normal distribution, which hold 95 %


@dataclass(frozen=True)
class Estimate:
    """Bits over all partitions: as counted, the same of shuffled labels, adjusted for these, and each partition's.

    `noise` is half the width of the interval around 0 in which 95 % of the shuffled lie once they are adjusted. `swept`
    holds (plain, shuffled, bits) of each partition.
    """

    plain: float
    shuffled: float
    bits: float
    noise: float
    swept: list[tuple[float, float, float]]


def entropy(ids: np.ndarray) -> float:
    """Return the entropy in bits of ids [N] as often as they occur."""
    return _entropy(np.bincount(ids), len(ids))


def shared(first: np.ndarray, second: np.ndarray) -> float:
    """Return the mutual information in bits of the ids [N] of two partitions, as they are counted.

    This is equation (9) of Noshad et al. with g(x) = x log x, since the weight of an edge is Nij N / (Ni Mj).
    """
    joint = first.astype(np.int64) * (second.max() + 1) + second
    return entropy(first) + entropy(second) - _entropy(np.bincount(joint), len(first))


def estimate(
    cells: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    weights: np.ndarray,
    shuffles: int,
    generator: np.random.Generator,
) -> Estimate:
    """Return the weighted mutual information of cells [P][N] and labels [P][N].

    An estimate is adjusted to H (I - E) / (H - E): E is the mean over shuffled labels, H the smaller of both entropies,
    which is the most that could be shared. So it is 0 where nothing is shared, and H where all is.
    """
    orders = [generator.permutation(len(labels[0])) for _ in range(shuffles)]
    pairs = list(zip(cells, labels, strict=True))
    plain = np.array([shared(first, second) for first, second in pairs])
    shuffled = np.array([[shared(first, second[order]) for order in orders] for first, second in pairs])
    most = np.array([min(entropy(first), entropy(second)) for first, second in pairs])
    chance = shuffled.mean(1)
    room = most - chance
    scale = np.divide(most, room, out=np.zeros_like(most), where=room > 1e-9)
    bits = scale * (plain - chance)
    spread = (weights @ (scale[:, None] * (shuffled - chance[:, None]))).std(ddof=1)
    swept = list(zip(plain.tolist(), chance.tolist(), bits.tolist(), strict=True))
    raw, shuffle, net = (float(weights @ values) for values in (plain, chance, bits))
    return Estimate(raw, shuffle, net, DEVIATIONS * float(spread), swept)


def projected(vectors: np.ndarray, dimensions: int, generator: np.random.Generator) -> np.ndarray:
    """Return vectors [N, r] of deviation 1: d of them standardised and, if d > r, on normal random axes.

    These are the hyperplanes of section 3.3, equation (10).
    """
    scaled = standardised(vectors)
    if scaled.shape[1] > dimensions:
        scaled = standardised(scaled @ generator.standard_normal((scaled.shape[1], dimensions)))
    return scaled


def hashed(vectors: np.ndarray, width: float, generator: np.random.Generator) -> np.ndarray:
    """Return the cell of each vector [N, r] in a grid of a width, moved at random: equations (3) and (4).

    Cells are numbered by sorting, so that none collide as they may in equation (5).
    """
    grid = np.floor((vectors + generator.uniform(0, width, vectors.shape[1])) / width).astype(np.int64)
    return np.unique(grid, axis=0, return_inverse=True)[1].reshape(-1)


def edge_weights(widths: Sequence[float], count: int, dimensions: int) -> np.ndarray:
    """Return the weight of each width's estimate, in sum 1, that makes their sum least wrong for N = count.

    Theorem 4.1 has the least squares of weights that cancel every power 1 to d of the width. With few widths these
    weights would be huge, so both are traded off: variance |w|^2 / N against (BIAS sum_t w(t) width(t)^i)^2.
    """
    powers = BIAS * np.power.outer(np.asarray(widths, dtype=float), np.arange(1, dimensions + 1))
    weights = np.linalg.solve(np.eye(len(widths)) / count + powers @ powers.T, np.ones(len(widths)))
    return weights / weights.sum()


def clusters(vectors: np.ndarray, numbers: Sequence[int], components: int, seed: int) -> list[np.ndarray]:
    """Return the cells [P][N] of k-means, for each number of them, on the first principal components of vectors."""
    from sklearn.cluster import KMeans

    scaled = standardised(vectors)
    directions = np.linalg.eigh(scaled.T @ scaled)[1][:, -components:]
    partitions = [KMeans(number, n_init=1, random_state=seed).fit_predict(scaled @ directions) for number in numbers]
    return [cells.astype(np.int64) for cells in partitions]


def standardised(vectors: np.ndarray) -> np.ndarray:
    """Return vectors at mean 0 and deviation 1, float64; a dimension that does not vary is 0."""
    vectors = vectors.astype(np.float64)
    deviation = vectors.std(0)
    return (vectors - vectors.mean(0)) / np.where(deviation > 0, deviation, 1)


def _entropy(counts: np.ndarray, total: int) -> float:
    shares = counts[counts > 0] / total
    return float(-(shares * np.log2(shares)).sum())
