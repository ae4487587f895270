"""Logistic regression of several layers, each for falling strengths, in one descent: batched L-BFGS.

K layers, N vectors, d width, C classes, S strengths, M pairs of a history, P = C (d + 1) parameters of a layer.
Vectors [K, N, d]; point, gradient and direction [K, C, d + 1], bias last, in the vectors' principal directions.

Each layer goes through the strengths at its own pace, from the strongest. The pairs of steps and gradient changes are
those of the loss without penalty, whose part is added where it is used: so they stay valid when the strength is
lowered, and each fit begins with the curvature that earlier ones have estimated. Source of the method: Nocedal and
Wright 2006, chapter 7; of the direction, Byrd, Nocedal and Schnabel 1994, equation 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

PAIRS = 40  # steps that are remembered
STEPS = 2000  # evaluations at most, for a strength
SMALLEST_STEP = 2.0**-20  # step size below which the line search has failed
NOISE = 1e-6  # relative increase of an objective that rounding alone may cause
LEAST = 1e-10  # keeps a strength of 0 solvable
FLAT = 1e-7  # fraction of the largest variance below which a direction is rounding
SMALL = 5e7  # operations of an evaluation below which threads wait for each other longer than they compute
LEAST_BIAS = 1e-4  # the bias' curvature at least, which vanishes for a class without vectors


class LinearLoss:
    """A loss of linear functions of some layers' vectors, without penalty: what points give, and gradients by them."""

    def __init__(self, scaled: torch.Tensor, classes: int, directions: torch.Tensor | None):
        """Keep vectors [K, N, d] float32 and directions [K, d, r], None for the axes."""
        self.scaled, self.directions = scaled, None if directions is None else directions.float()
        layers, self.count, width = scaled.shape
        self.shape = (layers, classes, (width if directions is None else directions.shape[-1]) + 1)
        self.operations = 4 * classes * scaled.numel()  # of an evaluation: logits and gradient

    def logits(self, point: torch.Tensor) -> torch.Tensor:
        """Return the logits [K, C, N] at a point."""
        weight = point[..., :-1].float()
        weight = weight if self.directions is None else weight @ self.directions.mT
        return torch.baddbmm(point[..., -1:].float(), weight, self.scaled.mT)

    def gradient(self, residuals: torch.Tensor) -> torch.Tensor:
        """Return the gradient [K, C, d + 1], float64, of a mean over vectors whose gradients by logits are these."""
        gradient = residuals @ self.scaled
        gradient = gradient if self.directions is None else gradient @ self.directions
        gradient = torch.cat([gradient, residuals.sum(-1, keepdim=True)], -1)
        return gradient.double() / self.count


class MeanCrossEntropy(LinearLoss):
    """The mean cross-entropy of some layers, without penalty, and its gradient."""

    def __init__(
        self,
        scaled: torch.Tensor,
        targets: torch.Tensor,
        classes: int,
        directions: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
    ):
        """Keep targets [N], class indices, weights [N] of the vectors, None for 1, and what `LinearLoss` keeps."""
        super().__init__(scaled, classes, directions)
        self.weights = weights
        self.targets = targets.expand(len(scaled), 1, -1)

    def __call__(self, point: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the losses [K] and their gradients [K, C, d + 1] at a point, float64.

        The probabilities of the wrong classes are summed separately: 1 minus the right class' would round them away.
        """
        logits = self.logits(point)
        logits -= logits.amax(1, keepdim=True)
        target_logits = logits.gather(1, self.targets)
        right = target_logits.exp()
        residuals = logits.exp_().scatter_(1, self.targets, 0.0)
        wrong = residuals.sum(1, keepdim=True)
        losses = (wrong + (right - 1)).log1p() - target_logits
        residuals = residuals.scatter_(1, self.targets, -wrong).div_(wrong + right)
        if self.weights is not None:
            losses, residuals = losses * self.weights, residuals * self.weights
        return losses.mean((1, 2), dtype=torch.float64), self.gradient(residuals)


class SumBinaryCrossEntropy(LinearLoss):
    """The cross-entropy of C labels, each by itself: the mean over vectors, summed over labels, and its gradient.

    So no label changes the solution of another: it is one-vs-rest.
    """

    def __init__(
        self, scaled: torch.Tensor, targets: torch.Tensor, classes: int, directions: torch.Tensor | None = None
    ):
        """Keep targets [N, C] of 0 and 1, and what `LinearLoss` keeps."""
        super().__init__(scaled, classes, directions)
        self.signs = 1.0 - 2.0 * targets.mT.to(scaled.dtype)  # -1 where a vector has the label

    def __call__(self, point: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the losses [K] and their gradients [K, C, d + 1] at a point, float64.

        The loss is softplus of the logit of what a target is not, whose derivative is the probability of that.
        """
        wrong = self.logits(point) * self.signs
        loss = torch.nn.functional.softplus(wrong).sum((1, 2), dtype=torch.float64) / self.count
        return loss, self.gradient(wrong.sigmoid_() * self.signs)


Objective = MeanCrossEntropy | SumBinaryCrossEntropy


@dataclass(frozen=True)
class Minimum:
    """The fits of all layers for one strength: point [K, C, d + 1]; by layer objective, evaluations, convergence."""

    point: torch.Tensor
    value: torch.Tensor
    steps: torch.Tensor
    converged: torch.Tensor


class Curvature:
    """The curvature of each layer's objective, estimated from its last M pairs of a step and a gradient's change.

    S and Y [P, M] have a step and the change of the gradient in each column, oldest first; a, `initial` plus the
    penalty, is diagonal. The inverse is that of compact L-BFGS (Byrd, Nocedal and Schnabel 1994, equation 3.1):

        H = γ/a + [S  γ/a Y] M [S  γ/a Y]ᵀ,  M = [[R⁻ᵀ (D + γ Yᵀ Y/a) R⁻¹, -R⁻ᵀ], [-R⁻¹, 0]]

    with R the upper triangle of SᵀY, D its diagonal, and γ = sᵀy / yᵀ(y/a) of the last pair.
    """

    def __init__(self, initial: torch.Tensor):
        """Start without pairs; the curvature is then `initial` [K, P], without penalty."""
        self.initial = initial
        layers, size = initial.shape
        # There is room for twice as many as are remembered, so that older pairs are moved once in PAIRS steps.
        pairs = initial.new_empty(4, layers, 2 * PAIRS, size, dtype=torch.float32)
        self.steps, self.changes, self.penalised, self.scaled = pairs  # S^T, Y^T without penalty, Y^T, Y^T / a
        self.products = initial.new_empty(2, layers, 2 * PAIRS, 2 * PAIRS)  # S^T Y and Y^T Y/a
        self.first = self.multiplied = self.end = 0  # of the pairs: first remembered, first without products, end
        self.penalty = torch.zeros_like(initial)  # the one in the products

    def add(self, step: torch.Tensor, change: torch.Tensor) -> None:
        """Add a step and the change of the gradient (without penalty), both [K, P]; a pair of zeros changes nothing."""
        if self.end == 2 * PAIRS:
            for pairs in (self.steps, self.changes, self.penalised, self.scaled):
                pairs[:, :PAIRS] = pairs[:, PAIRS:]
            self.products[..., :PAIRS, :PAIRS] = self.products[..., PAIRS:, PAIRS:]
            self.first, self.multiplied, self.end = 0, self.multiplied - PAIRS, PAIRS
        self.steps[:, self.end], self.changes[:, self.end] = step, change
        self.end += 1
        self.first = max(self.first, self.end - PAIRS)

    def solve(self, gradient: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
        """Return the inverse curvature times a gradient [K, P], under a penalty [K, P].

        A pair whose step goes (almost) without curvature is left out: its row and column of R are those of identity.
        """
        inverse = 1 / (self.initial + penalty.clamp(min=LEAST))  # 1/a
        if not self.end:
            return inverse * gradient
        inverse = inverse.float().unsqueeze(1)
        self._multiply(inverse, penalty)
        steps, scaled = self.steps[:, self.first : self.end], self.scaled[:, self.first : self.end]
        sy, yy = self.products[..., self.first : self.end, self.first : self.end]
        diagonal = sy.diagonal(dim1=1, dim2=2)
        valid = diagonal > 1e-6 * yy.diagonal(dim1=1, dim2=2)
        valid_pairs = valid.unsqueeze(1) & valid.unsqueeze(2)
        gamma = torch.where(valid[:, -1], diagonal[:, -1] / yy[:, -1, -1], 1.0)
        gamma = gamma.nan_to_num(1.0)[:, None, None]
        upper = (sy * valid_pairs).triu() + (~valid).double().diag_embed()  # R
        middle = gamma * yy * valid_pairs + (diagonal * valid).diag_embed()  # D + gamma Y^T Y/a
        column, valid = gradient.float().unsqueeze(2), valid.unsqueeze(2)
        lower_part = torch.linalg.solve_triangular(upper, (steps @ column).double() * valid, upper=True)
        upper_part = middle @ lower_part - gamma * (scaled @ column).double() * valid
        upper_part = torch.linalg.solve_triangular(upper.mT, upper_part, upper=False)
        product = gamma.float() * (inverse * column.mT - lower_part.float().mT @ scaled)
        return (product + upper_part.float().mT @ steps).squeeze(1).double()

    def _multiply(self, inverse: torch.Tensor, penalty: torch.Tensor) -> None:
        """Bring the products up to date: of the new pairs alone, unless the penalty is another.

        Args: 1/a [K, 1, P], float32; the penalty [K, P].
        """
        if not torch.equal(penalty, self.penalty):
            self.penalty, self.multiplied = penalty.clone(), self.first
        all_pairs, new = slice(self.first, self.end), slice(self.multiplied, self.end)
        steps = self.steps[:, new]
        self.penalised[:, new] = changes = torch.addcmul(self.changes[:, new], penalty.float().unsqueeze(1), steps)
        self.scaled[:, new] = changes * inverse
        sy, yy = self.products
        sy[:, all_pairs, new] = (self.steps[:, all_pairs] @ changes.mT).double()
        sy[:, new, all_pairs] = (steps @ self.penalised[:, all_pairs].mT).double()
        columns = (self.scaled[:, all_pairs] @ changes.mT).double()
        yy[:, all_pairs, new], yy[:, new, all_pairs] = columns, columns.mT
        self.multiplied = self.end


def minimise(
    objective: Objective,
    variances: torch.Tensor,
    spread: float,
    strengths: Sequence[float],
    gap: float,
) -> list[Minimum]:
    """Return the minimum of each layer for each strength, the strengths falling; of little work in one thread.

    Args: objective; variances [K, d] of the vectors along its directions, times `spread`: the initial curvature; gap,
    the fraction of the objective by which it may still be above its minimum.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if objective.operations < SMALL else threads)
    try:
        descent = Descent(objective, variances, spread, strengths)
        while not descent.finished:
            descent.update_direction()
            descent.check_convergence(gap)
            if not descent.changed:
                descent.step()
    finally:
        torch.set_num_threads(threads)
    return [Minimum(*map(torch.stack, zip(*by_layer, strict=True))) for by_layer in descent.results]


class Descent:
    """The parameters of each layer, flat [K, P], with loss and its gradient; by layer its strength and step size.

    `results` has by strength and layer the fields of a Minimum.
    """

    def __init__(self, objective: Objective, variances: torch.Tensor, spread: float, strengths: Sequence[float]):
        """Begin at weights of 0 with the strongest."""
        self.objective, self.shape = objective, objective.shape
        layers, classes, _ = self.shape
        variances = variances.clamp(min=FLAT * variances.amax())
        initial = torch.cat([variances, variances.new_full((layers, 1), spread)], 1)
        self.curvature = Curvature(initial.repeat(1, classes))
        self.point = torch.zeros_like(self.curvature.initial)
        self.loss, self.loss_gradient = self._loss_at(self.point)
        penalised = torch.ones(self.shape, dtype=torch.float64, device=self.point.device)
        penalised[..., -1] = 0  # the bias is free
        self.penalised = penalised.flatten(1)
        self.strengths = variances.new_tensor([*strengths, strengths[-1]])
        self.strength_index = torch.zeros(layers, dtype=torch.long, device=self.point.device)
        self.steps, self.step_size = torch.zeros_like(self.strength_index), torch.ones_like(self.loss)
        self.results: list[list] = [[None] * layers for _ in strengths]

    @property
    def finished(self) -> bool:
        """Whether every layer has a result for every strength."""
        return bool((self.strength_index == len(self.results)).all())

    def update_direction(self) -> None:
        """Compute each layer's objective, search direction, and decrease: the descent per unit step along it."""
        self.penalty = self.strengths[self.strength_index].unsqueeze(1) * self.penalised
        self.value = self.loss + self._penalties(self.point)
        self.gradient = self.loss_gradient + self.penalty * self.point
        self.direction = -self.curvature.solve(self.gradient, self.penalty)
        self.decrease = -(self.gradient * self.direction).sum(1)

    def check_convergence(self, gap: float) -> None:
        """Record the layers that have converged or whose line search has failed, and lower their strength.

        The distance of an objective from its minimum has two estimates: half the decrease, which is too low, since the
        curvature is remembered in part, and ||gradient||^2 / (2 l2), an upper bound. Their geometric mean is compared
        with the gap: on a layer of MiniLM it was within a factor of three of the true distance, on all layers side by
        side, where fewer of the directions are remembered, up to ten times too low.
        """
        least = torch.where(self.penalised > 0, self.penalty.clamp(min=LEAST), LEAST_BIAS)
        bound = (self.gradient.square() / least).sum(1)
        converged = (self.decrease * bound).clamp(min=0).sqrt() / 2 <= gap * self.value
        ended = converged | (self.step_size < SMALLEST_STEP) | (self.steps >= STEPS)
        ended &= self.strength_index < len(self.results)
        self.changed = bool(ended.any())
        for layer in ended.nonzero().flatten().tolist() if self.changed else ():
            point = self.point[layer].view(self.shape[1:])
            result = (point, self.value[layer], self.steps[layer], converged[layer])
            self.results[self.strength_index[layer]][layer] = result
        self.strength_index, self.steps = self.strength_index + ended.long(), self.steps * ~ended
        self.step_size = torch.where(ended, 1.0, self.step_size)

    def step(self) -> None:
        """Make one step of the line search: a layer whose objective does not decrease enough halves its step size."""
        trial = self.point + self.step_size.unsqueeze(1) * self.direction
        loss, loss_gradient = self._loss_at(trial)
        allowed = self.value - 1e-4 * self.step_size * self.decrease + NOISE * self.value.abs()
        accepted = loss + self._penalties(trial) <= allowed
        moved = accepted.unsqueeze(1)
        self.curvature.add((trial - self.point) * moved, (loss_gradient - self.loss_gradient) * moved)
        self.point = torch.where(moved, trial, self.point)
        self.loss_gradient = torch.where(moved, loss_gradient, self.loss_gradient)
        self.loss = torch.where(accepted, loss, self.loss)
        self.step_size = torch.where(accepted, 1.0, self.step_size / 2)
        self.steps = self.steps + 1

    def _loss_at(self, point: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the losses [K] and their gradients [K, P] at a point [K, P]."""
        loss, gradient = self.objective(point.view(self.shape))
        return loss, gradient.flatten(1)

    def _penalties(self, point: torch.Tensor) -> torch.Tensor:
        """Return the penalties [K] of a point [K, P]."""
        return (self.penalty * point.square()).sum(1) / 2
