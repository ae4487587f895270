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
DOUBLE = 2**21  # numbers up to which a problem is solved in float64; larger ones take half the time in float32
GAP = {torch.float64: 1e-7, torch.float32: 1e-6}  # estimated distance from the least objective, as a share of it
ROUNDS, STEPS = 50, 40  # at most so many rounds of so many L-BFGS steps
LEAST = 1e-10  # keeps l2 = 0 solvable where features are collinear
LEAST_BIAS = 1e-4  # the bias' share in a round's curvature, which vanishes for a class without vectors


@dataclass(frozen=True)
class Solution:
    """A fitted linear head on raw features, float32, and how it was found."""

    l2: float
    weight: torch.Tensor
    bias: torch.Tensor
    converged: bool
    steps: int  # evaluations of objective and gradient; 1 in closed form
    objective: float
    flops: float

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

    Args: vectors [N, d]; targets [N] class indices; number of classes C, some of which may have no vector. Solved
    from the strongest to the weakest, each from the one before. Two classes have a row each, so that l2 weighs half
    of what it does where a single row stands for both.
    """
    scale = Scale.of(vectors)
    scaled = scale.apply(vectors, torch.float64 if vectors.numel() <= DOUBLE else torch.float32)
    scaled = torch.cat([scaled, scaled.new_ones(len(scaled), 1)], 1)
    rows = scaled.new_zeros(classes, scaled.shape[1])
    solutions = {}
    for l2 in sorted(set(strengths), reverse=True):
        rows, *found = _logistic(scaled, targets, l2, rows)
        solutions[l2] = Solution(l2, *scale.fold(rows[:, :-1], rows[:, -1]), *found)
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
    solutions, flops = [], 2.0 * vectors.numel() * vectors.shape[1] / len(strengths)
    for l2 in strengths:
        factor = torch.linalg.cholesky(2 * covariance + max(l2, LEAST) * _identity(covariance))
        weight = torch.cholesky_solve(2 * moments.unsqueeze(1), factor).T
        explained = 2 * (weight @ moments) - ((weight @ covariance) * weight).sum()
        objective = centred.square().mean() - explained.sum() + l2 / 2 * weight.square().sum()
        solutions.append(Solution(l2, *scale.fold(weight, mean.unsqueeze(0)), True, 1, objective.item(), flops))
    return solutions


def _covariance(scaled: torch.Tensor) -> torch.Tensor:
    """Return the covariance [d, d] of standardised vectors, in float64."""
    return sum(block.double().T @ block.double() for block in scaled.split(BLOCK)) / len(scaled)


def _identity(matrix: torch.Tensor) -> torch.Tensor:
    """Return the identity matrix of another's size, type and device."""
    return torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)


def _logistic(scaled, targets, l2: float, rows):
    """Minimise the objective for one strength; return weight and bias, and how it went, as `Solution` has it.

    Args: scaled [N, d + 1], its last column ones; targets [N]; l2; the start, rows [C, d + 1], bias last. Rounds of
    L-BFGS (strong Wolfe) in variables A = W F, where F F' is a curvature that all classes share, taken anew at the
    start of each round: it leaves the objective as it is, saves most steps, and makes half the squared gradient of A
    an estimate of the distance from the minimum, by which the rounds end.
    """
    penalty = torch.full((scaled.shape[1],), l2, dtype=scaled.dtype, device=scaled.device)
    penalty[-1] = 0
    steps, flops, before = 0, 0.0, float("inf")
    for _ in range(ROUNDS):
        factor, inverse = _whitening(scaled, rows, l2)
        matrix = (rows.double() @ factor).to(scaled.dtype).requires_grad_(True)
        solver = torch.optim.LBFGS(
            [matrix],
            max_iter=STEPS,
            max_eval=2 * STEPS,
            history_size=STEPS,
            tolerance_grad=0,
            tolerance_change=0,
            line_search_fn="strong_wolfe",
        )

        def objective(matrix=matrix, inverse=inverse, solver=solver) -> torch.Tensor:
            solver.zero_grad()
            outer = matrix @ inverse
            loss = functional.cross_entropy(scaled @ outer.T, targets) + (penalty * outer.square()).sum() / 2
            loss.backward()
            return loss

        value = objective().item()
        converged = matrix.grad.double().square().sum().item() / 2 <= GAP[scaled.dtype] * value
        if converged or value >= before:
            break
        before = value
        solver.step(objective)
        rows = (matrix @ inverse).detach()
        steps += solver.state[matrix]["func_evals"]
        flops += 2.0 * scaled.numel() * scaled.shape[1]
    return rows, converged, steps, value, flops + 6.0 * steps * scaled.numel() * len(rows)


def _whitening(scaled, rows, l2: float):
    """Return the Cholesky factor F, float64 [d + 1, d + 1], of the curvature at some rows, and its inverse.

    Each vector counts by p (1 - p) of its least certain class: a bound on the curvature in every class.
    """
    shares = functional.softmax(scaled @ rows.T, dim=1)
    weights = (shares * (1 - shares)).amax(1, keepdim=True)
    pairs = zip(scaled.split(BLOCK), weights.split(BLOCK), strict=True)
    curvature = sum(((block * weight).T @ block).double() for block, weight in pairs) / len(scaled)
    ridge = torch.full_like(curvature[0], max(l2, LEAST))
    ridge[-1] = max(l2, LEAST_BIAS)
    factor = torch.linalg.cholesky(curvature + ridge.diag())
    return factor, torch.linalg.inv(factor).to(scaled.dtype)
