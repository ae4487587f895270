"""Linear heads on frozen features, fitted to convergence: a convex problem has one answer, whatever the seed.

N vectors (texts or words), d width, C outputs (classes; 1 for a score). Vectors [N, d], weight [C, d], bias
[C].

The objective is  mean loss + l2/2 * ||W||^2  on features standardised on the training vectors (mean 0,
deviation 1), the bias free; the loss is cross-entropy or squared error. The standardisation is folded into
the weight and bias that are returned, so that the result is a plain linear head on raw features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

BLOCK = 16_384  # vectors that are held in float64 at a time
DOUBLE = 2**25  # numbers up to which a problem is solved in float64: 256 MiB
TOLERANCE = {torch.float64: 1e-6, torch.float32: 3e-5}  # largest entry of the whitened gradient at the end
ITERATIONS = 1000
LEAST = 1e-10  # keeps l2 = 0 solvable where features are collinear


@dataclass(frozen=True)
class Solution:
    """A fitted linear head on raw features, float32, and how it was found."""

    l2: float
    weight: torch.Tensor
    bias: torch.Tensor
    converged: bool
    steps: int  # evaluations of objective and gradient; 1 in closed form
    objective: float

    def logits(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the outputs [N, C] of raw vectors [N, d]."""
        return functional.linear(vectors, self.weight, self.bias)

    def state(self) -> dict[str, torch.Tensor]:
        """Return the tensors under the names that `thaw.heads.linear` gives them."""
        return {"output.weight": self.weight.cpu().contiguous(), "output.bias": self.bias.cpu().contiguous()}


@dataclass(frozen=True)
class Scale:
    """The mean and the deviation of each dimension over the training vectors, both [d] float64."""

    mean: torch.Tensor
    deviation: torch.Tensor

    @classmethod
    def of(cls, vectors: torch.Tensor) -> "Scale":
        """Measure vectors [N, d]; a dimension that does not vary (but for rounding) has deviation 1."""
        mean = sum(block.double().sum(0) for block in vectors.split(BLOCK)) / len(vectors)
        square = sum((block.double() - mean).square().sum(0) for block in vectors.split(BLOCK))
        deviation = (square / len(vectors)).sqrt()
        return cls(mean, torch.where(deviation > 1e-7 * mean.abs(), deviation, torch.ones_like(deviation)))

    def apply(self, vectors: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return standardised vectors, block by block so that float64 never holds them all unasked."""
        blocks = (((block.double() - self.mean) / self.deviation).to(dtype) for block in vectors.split(BLOCK))
        return torch.cat(list(blocks))

    def fold(self, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the float32 weight and bias that do on raw vectors what these do on standardised ones."""
        raw = weight.double() / self.deviation
        return raw.float(), (bias.double() - raw @ self.mean).float()


def fit_classes(
    vectors: torch.Tensor, targets: torch.Tensor, classes: int, strengths: Sequence[float]
) -> list[Solution]:
    """Return multinomial logistic regression for each strength, in the order given.

    Args: vectors [N, d]; targets [N] class indices; number of classes C, some of which may have no vector.
    Solved from the strongest to the weakest, each from the one before, by L-BFGS with strong Wolfe line
    search. The features are whitened for it (variables A with W = A F^-1, F F^T = covariance/4 + l2, after
    the bound on the Hessian of Boehning 1992), which leaves the objective as it is and takes several times
    fewer steps.
    """
    scale = Scale.of(vectors)
    dtype = torch.float64 if vectors.numel() <= DOUBLE else torch.float32
    scaled = scale.apply(vectors, dtype)
    covariance = _covariance(scaled)
    weight = torch.zeros(classes, vectors.shape[1], dtype=dtype, device=vectors.device)
    bias = torch.zeros(classes, dtype=dtype, device=vectors.device)
    solutions = {}
    for l2 in sorted(set(strengths), reverse=True):
        weight, bias, *found = _logistic(scaled, covariance, targets, l2, weight, bias)
        solutions[l2] = Solution(l2, *scale.fold(weight, bias), *found)
    return [solutions[l2] for l2 in strengths]


def fit_scores(vectors: torch.Tensor, targets: torch.Tensor, strengths: Sequence[float]) -> list[Solution]:
    """Return ridge regression for each strength, in the order given: closed form, by Cholesky in float64.

    Args: vectors [N, d]; targets [N] floats. With the mean squared error as loss, the weight solves
    (2 X'X/N + l2) w = 2 X'y/N, and the bias is the mean of the targets.
    """
    scale = Scale.of(vectors)
    scaled = scale.apply(vectors, torch.float64 if vectors.numel() <= DOUBLE else torch.float32)
    covariance, mean = _covariance(scaled), targets.double().mean()
    centred = targets.double() - mean
    pairs = zip(scaled.split(BLOCK), centred.split(BLOCK), strict=True)
    moments = sum(block.double().T @ part for block, part in pairs) / len(vectors)
    solutions = []
    for l2 in strengths:
        factor = torch.linalg.cholesky(2 * covariance + max(l2, LEAST) * _identity(covariance))
        weight = torch.cholesky_solve(2 * moments.unsqueeze(1), factor).T
        explained = 2 * (weight @ moments) - ((weight @ covariance) * weight).sum()
        objective = centred.square().mean() - explained.sum() + l2 / 2 * weight.square().sum()
        solutions.append(Solution(l2, *scale.fold(weight, mean.unsqueeze(0)), True, 1, objective.item()))
    return solutions


def _covariance(scaled: torch.Tensor) -> torch.Tensor:
    """Return the covariance [d, d] of standardised vectors, in float64."""
    return sum(block.double().T @ block.double() for block in scaled.split(BLOCK)) / len(scaled)


def _identity(matrix: torch.Tensor) -> torch.Tensor:
    """Return the identity matrix of another's size, type and device."""
    return torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)


def _logistic(scaled, covariance, targets, l2: float, weight, bias):
    """Minimise the objective for one strength from a start; return weight, bias, converged or not, steps, its value."""
    factor = torch.linalg.cholesky(covariance / 4 + max(l2, LEAST) * _identity(covariance))
    inverse = torch.linalg.inv(factor).to(scaled.dtype)
    white = scaled @ inverse.T
    matrix = (weight.double() @ factor).to(scaled.dtype).requires_grad_(True)
    offset = bias.clone().requires_grad_(True)
    solver = torch.optim.LBFGS(
        [matrix, offset],
        max_iter=ITERATIONS,
        max_eval=2 * ITERATIONS,
        tolerance_grad=TOLERANCE[scaled.dtype],
        tolerance_change=0.0,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def objective() -> torch.Tensor:
        solver.zero_grad()
        loss = functional.cross_entropy(functional.linear(white, matrix, offset), targets)
        loss = loss + l2 / 2 * (matrix @ inverse).square().sum()
        loss.backward()
        return loss

    solver.step(objective)
    value = objective().item()
    largest = max(matrix.grad.abs().max().item(), offset.grad.abs().max().item())
    steps = solver.state[matrix]["func_evals"]
    converged = largest <= TOLERANCE[scaled.dtype]
    return (matrix @ inverse).detach(), offset.detach(), converged, steps, value
