"""Logistic regression of several layers, each for falling strengths, in one descent: batched L-BFGS.

K layers, N vectors, d width, C classes, S strengths, M pairs of a history, P = C (d + 1) numbers of a layer's place.
Vectors [K, N, d]; place, gradient and direction [K, C, d + 1], bias last, in the vectors' principal directions.

Each layer walks down its own strengths. Penalty and its gradient are added to those of the loss when they are needed,
so that a lowered strength leaves the pairs of steps and gradients true, and each fit begins with all that the one
before it learnt of the curvature. Source of the method: Nocedal and Wright 2006, chapter 7; of the direction, Byrd,
Nocedal and Schnabel 1994, equation 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

PAIRS = 40  # steps that are remembered
STEPS = 2000  # evaluations at most, for a strength
SHORTEST = 2.0**-20  # share of a step below which there is no way down
NOISE = 1e-6  # share by which rounding may raise an objective
LEAST = 1e-10  # keeps a strength of 0 solvable
FLAT = 1e-7  # share of the largest variance below which a direction is rounding
LEAST_BIAS = 1e-4  # the bias' curvature at least, which vanishes for a class without vectors


class MeanCrossEntropy:
    """The mean cross-entropy of some layers, without penalty, and its gradient."""

    def __init__(
        self, scaled: torch.Tensor, targets: torch.Tensor, classes: int, directions: torch.Tensor | None = None
    ):
        """Keep vectors [K, N, d] float32, targets [N] class indices and directions [K, d, r], None for the axes."""
        self.scaled, self.directions = scaled, None if directions is None else directions.float()
        layers, self.count, width = scaled.shape
        self.targets = targets.expand(layers, 1, -1)
        self.shape = (layers, classes, (width if directions is None else directions.shape[-1]) + 1)

    def __call__(self, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the losses [K] and their gradients [K, C, d + 1] at a place, float64.

        What the wrong classes of a vector take is added up by itself: near 1 float32 does not distinguish small shares.
        """
        weight = place[..., :-1].float()
        weight = weight if self.directions is None else weight @ self.directions.mT
        logits = torch.baddbmm(place[..., -1:].float(), weight, self.scaled.mT)  # [K, C, N]
        logits -= logits.amax(1, keepdim=True)
        target_logits = logits.gather(1, self.targets)
        right = target_logits.exp()
        shares = logits.exp_().scatter_(1, self.targets, 0.0)
        wrong = shares.sum(1, keepdim=True)
        loss = ((wrong + (right - 1)).log1p() - target_logits).mean((1, 2), dtype=torch.float64)
        shares.scatter_(1, self.targets, -wrong).div_(wrong + right)
        slope = shares @ self.scaled
        slope = slope if self.directions is None else slope @ self.directions
        gradient = torch.cat([slope, shares.sum(-1, keepdim=True)], -1)
        return loss, gradient.double() / self.count


@dataclass(frozen=True)
class End:
    """Where the layers came to for one strength: place [K, C, d + 1]; and by layer objective, evaluations, success."""

    place: torch.Tensor
    value: torch.Tensor
    steps: torch.Tensor
    converged: torch.Tensor


class Curvature:
    """The curvature of each layer's objective, estimated from its last M pairs of a step and a gradient's change.

    S and Y [P, M] have a step and the change of the gradient in each column, oldest first; a, at first `start` plus the
    penalty, is diagonal. The inverse is that of compact L-BFGS (Byrd, Nocedal and Schnabel 1994, equation 3.1):

        H = γ/a + [S  γ/a Y] M [S  γ/a Y]ᵀ,  M = [[R⁻ᵀ (D + γ Yᵀ Y/a) R⁻¹, -R⁻ᵀ], [-R⁻¹, 0]]

    with R the upper triangle of SᵀY, D its diagonal, and γ = sᵀy / yᵀ(y/a) of the last pair.
    """

    def __init__(self, start: torch.Tensor):
        """Start without pairs; the curvature is then `start` [K, P], without penalty."""
        self.start = start
        self.steps = self.changes = start.new_zeros(len(start), 0, start.shape[1], dtype=torch.float32)  # [K, M, P]

    def add(self, step: torch.Tensor, change: torch.Tensor) -> None:
        """Add a step and the change of the gradient (without penalty), both [K, P]; a pair of zeros changes nothing."""
        self.steps = torch.cat([self.steps, step.float().unsqueeze(1)], 1)[:, -PAIRS:]
        self.changes = torch.cat([self.changes, change.float().unsqueeze(1)], 1)[:, -PAIRS:]

    def solve(self, gradient: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
        """Return the inverse curvature times a gradient [K, P], under a penalty [K, P].

        A pair whose step goes (almost) without curvature is left out: its row and column of R are those of identity.
        """
        inverse = 1 / (self.start + penalty.clamp(min=LEAST))  # 1/a
        if not self.steps.shape[1]:
            return inverse * gradient
        steps, inverse = self.steps, inverse.float().unsqueeze(1)  # S^T
        changes = torch.addcmul(self.changes, penalty.float().unsqueeze(1), steps)  # Y^T
        scaled = changes * inverse  # Y^T / a
        sy, yy = (steps @ changes.mT).double(), (scaled @ changes.mT).double()  # S^T Y and Y^T Y/a, [K, M, M]
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


def descend(
    objective: MeanCrossEntropy, variances: torch.Tensor, spread: float, strengths: Sequence[float], gap: float
) -> list[End]:
    """Return where the layers come to for each strength, the strengths falling.

    Args: objective; variances [K, d] of the vectors along its directions, times `spread`: the curvature at the start;
    gap, the share of the objective by which it may still fall.
    """
    descent = Descent(objective, variances, spread, strengths)
    while not descent.finished:
        descent.look()
        descent.end(gap)
        if not descent.changed:
            descent.step()
    return [End(*map(torch.stack, zip(*ends, strict=True))) for ends in descent.ends]


class Descent:
    """The weights of each layer, flat [K, P], their loss and slope; strength, and the share of a step that is taken.

    `ends` has by strength and layer what an End holds.
    """

    def __init__(self, objective: MeanCrossEntropy, variances: torch.Tensor, spread: float, strengths: Sequence[float]):
        """Begin at weights of 0 with the strongest."""
        self.objective, self.shape = objective, objective.shape
        layers, classes, _ = self.shape
        variances = variances.clamp(min=FLAT * variances.amax())
        start = torch.cat([variances, variances.new_full((layers, 1), spread)], 1)
        self.curvature = Curvature(start.repeat(1, classes))
        self.place = torch.zeros_like(self.curvature.start)
        self.loss, self.slope = self._at(self.place)
        weighs = torch.ones(self.shape, dtype=torch.float64, device=self.place.device)
        weighs[..., -1] = 0  # the bias is free
        self.weighs = weighs.flatten(1)
        self.strengths = variances.new_tensor([*strengths, strengths[-1]])
        self.level = torch.zeros(layers, dtype=torch.long, device=self.place.device)
        self.steps, self.share = torch.zeros_like(self.level), torch.ones_like(self.loss)
        self.ends: list[list] = [[None] * layers for _ in strengths]

    @property
    def finished(self) -> bool:
        """Whether every layer has come to an end for every strength."""
        return bool((self.level == len(self.ends)).all())

    def look(self) -> None:
        """Find out where down is for each layer, and how steep."""
        self.penalty = self.strengths[self.level].unsqueeze(1) * self.weighs
        self.value = self.loss + self._penalties(self.place)
        self.gradient = self.slope + self.penalty * self.place
        self.direction = -self.curvature.solve(self.gradient, self.penalty)
        self.fall = -(self.gradient * self.direction).sum(1)

    def end(self, gap: float) -> None:
        """Note the layers that have converged or cannot go on, and lower their strength.

        How far an objective may still fall is between the estimate of the remembered curvature, which is too low,
        and ||gradient||^2 / (2 l2), which no fall exceeds. Their geometric mean is taken: on layers of MiniLM it was
        within a factor of three of the truth.
        """
        least = torch.where(self.weighs > 0, self.penalty.clamp(min=LEAST), LEAST_BIAS)
        bound = (self.gradient.square() / least).sum(1)
        converged = (self.fall * bound).clamp(min=0).sqrt() / 2 <= gap * self.value
        ended = (converged | (self.share < SHORTEST) | (self.steps >= STEPS)) & (self.level < len(self.ends))
        self.changed = bool(ended.any())
        for layer in ended.nonzero().flatten().tolist() if self.changed else ():
            place = self.place[layer].view(self.shape[1:])
            self.ends[self.level[layer]][layer] = (place, self.value[layer], self.steps[layer], converged[layer])
        self.level, self.steps = self.level + ended.long(), self.steps * ~ended
        self.share = torch.where(ended, 1.0, self.share)

    def step(self) -> None:
        """Try a step down; a layer that it leads up stays where it is and tries half of it next."""
        tried = self.place + self.share.unsqueeze(1) * self.direction
        loss, slope = self._at(tried)
        allowed = self.value - 1e-4 * self.share * self.fall + NOISE * self.value.abs()
        better = loss + self._penalties(tried) <= allowed
        moved = better.unsqueeze(1)
        self.curvature.add((tried - self.place) * moved, (slope - self.slope) * moved)
        self.place, self.slope = torch.where(moved, tried, self.place), torch.where(moved, slope, self.slope)
        self.loss, self.share = torch.where(better, loss, self.loss), torch.where(better, 1.0, self.share / 2)
        self.steps = self.steps + 1

    def _at(self, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the losses [K] and their gradients [K, P] at a place [K, P]."""
        loss, slope = self.objective(place.view(self.shape))
        return loss, slope.flatten(1)

    def _penalties(self, place: torch.Tensor) -> torch.Tensor:
        """Return the penalties [K] of a place [K, P]."""
        return (self.penalty * place.square()).sum(1) / 2
