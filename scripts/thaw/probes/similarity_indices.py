"""How alike two sets of vectors of the same tokens are: CKA and SVCCA from sums that add up, and RSA.

N pairs of vectors, d and e their widths.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional

VARIANCE = 0.99  # of which SVCCA keeps the directions (Raghu et al. 2017, section 2)


ZERO = torch.zeros(())


@dataclass
class Products:
    """Sums over pairs of vectors x [d] and y [e], in fp64; batches of any size give the same.

    K and L are the N x N matrices of inner products of the x and of the y; nothing of that size is ever made.
    """

    count: int = 0
    outer: torch.Tensor = ZERO  # of x y', [d, e]
    first: torch.Tensor = ZERO  # of x
    second: torch.Tensor = ZERO  # of y
    diagonals: torch.Tensor = ZERO  # of |x|^2, |y|^2 and their product, [3]
    by_second: torch.Tensor = ZERO  # of |y|^2 x, [d]
    by_first: torch.Tensor = ZERO  # of |x|^2 y, [e]

    def add(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Add a batch of pairs, [n, d] and [n, e]."""
        x, y = x.double(), y.double()
        a, b = x.square().sum(1), y.square().sum(1)
        self.count += len(x)
        self.outer = self.outer + x.T @ y
        self.first, self.second = self.first + x.sum(0), self.second + y.sum(0)
        self.diagonals = self.diagonals + torch.stack([a.sum(), b.sum(), a @ b])
        self.by_second, self.by_first = self.by_second + b @ x, self.by_first + a @ y

    def dependence(self) -> float:
        """Return the unbiased estimate of the Hilbert-Schmidt independence criterion, linear kernels.

        Song et al. 2012, equation 5: of K and L without their diagonals, tr(KL) + 1'K1 1'L1 / ((N - 1)(N - 2)) -
        2 / (N - 2) 1'KL1, over N (N - 3). It does not depend on the origin. Takes four pairs or more.
        """
        n, (a, b, both) = self.count, self.diagonals
        trace = self.outer.square().sum() - both
        sums = (self.first.square().sum() - a) * (self.second.square().sum() - b)
        rows = self.first @ self.outer @ self.second - self.by_second @ self.first - self.by_first @ self.second + both
        return ((trace + sums / ((n - 1) * (n - 2)) - 2 / (n - 2) * rows) / (n * (n - 3))).item()

    def covariance(self) -> torch.Tensor:
        return self.outer / self.count - torch.outer(self.first, self.second) / self.count**2


def cka(both: Products, first: Products, second: Products) -> float | None:
    """Return the debiased linear centred kernel alignment: 1 for equal up to rotation and scale, 0 for unrelated.

    Kornblith et al. 2019, equation 4, with the estimate of Song et al. as Nguyen et al. 2021 have it. Args: products of
    x and y, of x with itself, of y with itself. None where one of them does not vary.
    """
    own = first.dependence(), second.dependence()
    return both.dependence() / (own[0] * own[1]) ** 0.5 if min(own) > 0 else None


def svcca(both: Products, first: Products, second: Products) -> float | None:
    """Return the mean canonical correlation of the directions that hold 99 % of the variance of each side.

    Raghu et al. 2017, section 2. Args as for `cka`. With few pairs it is high for unrelated vectors, too.
    """
    x, y = _whitening(first.covariance()), _whitening(second.covariance())
    if x is None or y is None:
        return None
    correlations = torch.linalg.svdvals(x.T @ both.covariance() @ y)
    return correlations.clamp(max=1).mean().item()


def _whitening(covariance: torch.Tensor) -> torch.Tensor | None:
    """Return [d, k] that makes the k strongest directions uncorrelated with variance 1; None where nothing varies."""
    values, directions = torch.linalg.eigh(covariance)
    values, directions = values.flip(0).clamp(min=0), directions.flip(1)
    if not values[0] > 0:
        return None
    shares = values.cpu().cumsum(0) / values.sum().cpu()  # a GPU has no cumsum that is deterministic
    count = int((shares < VARIANCE).sum()) + 1
    return directions[:, :count] / values[:count].sqrt()


def rsa(x: torch.Tensor, y: torch.Tensor, block: int = 512) -> float | None:
    """Return the correlation of two similarity structures: the cosines of all pairs among x [N, d], and among y [N, e].

    Pearson's, over the N (N - 1) / 2 pairs, as Merchant et al. 2020 (section 5) have it. Memory is that of a block of
    rows. None where all cosines are equal.
    """
    x, y = functional.normalize(x.float(), dim=1), functional.normalize(y.float(), dim=1)
    sums, count = torch.zeros(5, dtype=torch.float64, device="cpu"), 0
    for start in range(0, len(x), block):
        rows = torch.arange(start, min(start + block, len(x)), device=x.device)
        above = torch.arange(start, len(x), device=x.device).unsqueeze(0) > rows.unsqueeze(1)
        a, b = ((side[rows] @ side[start:].T)[above].double() for side in (x, y))
        sums += torch.stack([a.sum(), b.sum(), a @ a, b @ b, a @ b]).cpu()
        count += len(a)
    a, b, aa, bb, ab = (sums / max(count, 1)).tolist()
    scale = (aa - a * a) * (bb - b * b)
    return (ab - a * b) / scale**0.5 if scale > 1e-18 else None
