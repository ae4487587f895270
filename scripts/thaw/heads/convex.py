"""Linear heads on frozen features, fitted to convergence: a convex problem has one solution, whatever the seed.

K layers, each with problems of its own; N vectors (texts or words), d width, C outputs (classes; 1 for a score), S
strengths. Vectors [K, N, d]; of one layer and strength weight [C, d], bias [C]. One layer is a batch of one.

The objective is  mean loss + l2/2 * ||W||^2  on features standardised on the training vectors (mean 0, deviation 1),
the bias free; the loss is cross-entropy or squared error, for sets of labels the sum of each label's binary
cross-entropy. For classes the products of vectors are computed in float32 and sums over them in float64, for scores all
is float64. The standardisation is folded into the weight and bias that are returned, so that the result is a plain
linear head on raw features.

scikit-learn's LogisticRegression on standardised features has the same solution for C = 1 / (N l2), or 2 / (N l2) with
two classes, for which it has a single row; Ridge for alpha = N l2 / 2. For sets of labels each row is its
LogisticRegression of that label against the rest, C = 1 / (N l2).

Of more features than vectors the same solution is computed from the vectors' Gram matrix. Of many features and more
vectors, as of words in all layers, classes are fitted less closely (WIDE_GAP).

For the principal directions, X [..., N, d] = U S V' with singular values S, directions V [..., d, r] and U [..., N, r];
r is the smaller of N and d. Covariance X'X / N [d, d] and Gram matrix X X' / N [N, N] have the same variances S^2 / N.
No weight of a linear head with an L2 penalty leaves the space of the vectors: r directions have the whole solution.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch.nn import functional

from thaw.heads.base import balanced_weights
from thaw.heads.descent import MeanCrossEntropy, Objective, SumBinaryCrossEntropy, minimise

GAP = 1e-6  # distance from the least objective, as a share of it, at which a fit has converged
CHOICE_GAP = 1e-4  # the same where penalties are compared: a third of the evaluations; 93 of 96 probes choose the same
WIDE_GAP = 1e-3  # at least, of more than WIDE features and as many vectors: GAP needs fifteen times the evaluations
LEAST = 1e-10  # keeps l2 = 0 solvable where features are collinear
CACHE = 2**24  # bytes of vectors up to which a CPU solves layers at once; more of them only push each other out
BLOCK = 16_384  # vectors whose products are added up in float32
WIDE = 2048  # features above which the Gram matrix is taken where it is smaller; results of fewer keep their bits
FLAT = 1e-12  # share of the largest variance below which a direction of the Gram matrix is rounding


@dataclass(frozen=True)
class Solution:
    """A fitted linear head on raw features, float32, with its penalty and convergence."""

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

    def among(self, features: torch.Tensor, width: int) -> "Solution":
        """Return the same head on d features of which it was fitted on some, by index; the others have weights of 0."""
        weight = self.weight.new_zeros(len(self.weight), width)
        weight[:, features] = self.weight
        return replace(self, weight=weight)

    def state(self) -> dict[str, torch.Tensor]:
        """Return the tensors under the names that `thaw.heads.linear` gives them."""
        return {"output.weight": self.weight.cpu().contiguous(), "output.bias": self.bias.cpu().contiguous()}


@dataclass(frozen=True)
class Scale:
    """The mean and the deviation of each dimension over the training vectors, both [..., d] float64.

    A dimension that does not vary has an infinite deviation: it is 0 once standardised, and its weight is 0.
    """

    mean: torch.Tensor
    deviation: torch.Tensor

    @classmethod
    def of(cls, vectors: torch.Tensor) -> "Scale":
        """Measure vectors [..., N, d]; what varies by no more than rounding does not vary."""
        blocks, count = vectors.split(BLOCK, -2), vectors.shape[-2]
        mean = sum(block.double().sum(-2) for block in blocks) / count
        square = sum((block.double() - mean.unsqueeze(-2)).square_().sum(-2) for block in blocks)
        deviation = (square / count).sqrt()
        return cls(mean, deviation.masked_fill(deviation <= 1e-7 * mean.abs(), torch.inf))

    def apply(self, vectors: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return (vectors - self.mean.to(dtype).unsqueeze(-2)).div_(self.deviation.to(dtype).unsqueeze(-2))

    def fold(self, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the float32 weight [..., C, d] and bias that do on raw vectors what these do on standardised ones."""
        raw = weight / self.deviation.unsqueeze(-2)
        return raw.float(), (bias - (raw * self.mean.unsqueeze(-2)).sum(-1)).float()


def is_wide(vectors: torch.Tensor) -> bool:
    """Tell whether vectors [..., N, d] are solved by way of their Gram matrix."""
    count, width = vectors.shape[-2:]
    return count < width and width > WIDE


@dataclass(frozen=True)
class Covariance:
    """Directions [K, d, r] and their variances [K, r], rising; `read` are the vectors [K, N, d] as they are."""

    read: torch.Tensor
    directions: torch.Tensor
    variances: torch.Tensor

    @classmethod
    def of(cls, scaled: torch.Tensor) -> "Covariance":
        """Decompose vectors; products are added up in float32 within a block, in float64 over blocks."""
        covariance = sum((block.mT @ block).double() for block in scaled.split(BLOCK, -2)) / scaled.shape[-2]
        variances, directions = torch.linalg.eigh(covariance)
        rank = min(scaled.shape[-2:])
        return cls(scaled, directions[..., -rank:], variances[:, -rank:])

    def weight(self, weight: torch.Tensor) -> torch.Tensor:
        """Return a weight [K, C, r] of the directions as one of the features, [K, C, d]."""
        return weight @ self.directions.mT


@dataclass(frozen=True)
class Gram:
    """Vectors X [..., N, d] with the eigenvectors U [..., N, N] of their Gram matrix, and variances [..., N], rising.

    `read` are the vectors in their principal directions, U S [..., N, N] float32; V = X' U / S is never made.
    """

    scaled: torch.Tensor
    vectors: torch.Tensor
    variances: torch.Tensor
    directions = None

    @classmethod
    def of(cls, scaled: torch.Tensor) -> "Gram":
        """Decompose vectors; products are added up in float64, some features at a time."""
        blocks = (block.double() for block in scaled.split(WIDE, -1))
        variances, vectors = torch.linalg.eigh(sum(block @ block.mT for block in blocks) / scaled.shape[-2])
        return cls(scaled, vectors, variances.where(variances > FLAT * variances[..., -1:], 0.0))

    @property
    def lengths(self) -> torch.Tensor:
        """The singular values S [..., N]."""
        return (self.variances * self.scaled.shape[-2]).sqrt()

    @property
    def read(self) -> torch.Tensor:
        """The vectors in their principal directions."""
        return (self.vectors * self.lengths.unsqueeze(-2)).float()

    def moments(self, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean product of each direction with some targets [N], [..., N]."""
        return targets @ self.vectors * self.lengths / len(targets)

    def weight(self, weight: torch.Tensor) -> torch.Tensor:
        """Return a weight [..., C, N] of the directions as one of the features, [..., C, d] float64."""
        lengths = self.lengths.unsqueeze(-2)
        by_vector = (weight / lengths).where(lengths > 0, 0.0) @ self.vectors.mT
        return torch.cat([by_vector @ block.double() for block in self.scaled.split(WIDE, -1)], -1)


def fit_classes(
    vectors: torch.Tensor,
    targets: torch.Tensor,
    classes: int,
    strengths: Sequence[float],
    gap: float = GAP,
    balanced: bool = False,
) -> list[list[Solution]]:
    """Return logistic regression for each layer and strength, both in the order given.

    It is multinomial, or one for each label of a set. Two classes have a row each, so that l2 weighs half of what it
    does with a single row for both. Layers are solved in groups that fit the cache.

    Args: vectors [K, N, d]; targets [N] class indices, or [N, C] of 0 and 1; number of classes C, some of which may
    have no vector; gap, the estimated distance from the least objective, as a share of it, that is allowed (of wide
    vectors WIDE_GAP or more); balanced, whether class indices are weighted by how rare they are (`balanced_weights`).
    """
    if vectors.shape[-1] > WIDE and not is_wide(vectors):
        gap = max(gap, WIDE_GAP)
    fitting = CACHE // (4 * vectors[0].numel()) if vectors.device.type == "cpu" else len(vectors)
    at_once = max(1, fitting)
    parts = [_classes(layers, targets, classes, strengths, gap, balanced) for layers in vectors.split(at_once)]
    return [solutions for part in parts for solutions in part]


def _classes(vectors, targets, classes: int, strengths, gap: float, balanced: bool) -> list[list[Solution]]:
    layers, count, width = vectors.shape
    scale = Scale.of(vectors)
    scaled = scale.apply(vectors)
    principal = (Gram if is_wide(vectors) else Covariance).of(scaled)
    arguments, outcomes = (principal.read, targets, classes, principal.directions), classes
    if targets.ndim == 1:
        weights = balanced_weights(targets, classes)[targets] if balanced else None
        objective: Objective = MeanCrossEntropy(*arguments, weights)
    else:
        objective, outcomes = SumBinaryCrossEntropy(*arguments), 2
    spread = 1 / outcomes - 1 / outcomes**2  # p (1 - p) where every outcome is as likely
    ordered = sorted(set(strengths), reverse=True)
    by_penalty = {}
    for l2, fit in zip(ordered, minimise(objective, spread * principal.variances, spread, ordered, gap), strict=True):
        weights, biases = scale.fold(principal.weight(fit.point[..., :-1]), fit.point[..., -1])
        flops = 2.0 * count * principal.read.shape[-1] * (width / len(ordered) + 2 * classes * fit.steps.double())
        parts = (weights, biases, fit.converged.tolist(), fit.steps.tolist(), fit.value.tolist(), flops.tolist())
        by_penalty[l2] = [Solution(l2, *part) for part in zip(*parts, strict=True)]
    return [[by_penalty[l2][layer] for l2 in strengths] for layer in range(layers)]


def fit_scores(vectors: torch.Tensor, targets: torch.Tensor, strengths: Sequence[float]) -> list[list[Solution]]:
    """Return ridge regression for each layer and strength, both in the order given, in closed form.

    Args: vectors [K, N, d]; targets [N] floats. With the mean squared error as loss, the weight solves
    (2 X'X/N + l2) w = 2 X'y/N, and the bias is the mean of the targets: one eigendecomposition serves all strengths.
    """
    mean = targets.double().mean()
    centred = targets.double() - mean
    return [_scores(layer, centred, mean, strengths) for layer in vectors]


def _scores(vectors, centred, mean, strengths) -> list[Solution]:
    """Return the solutions of one layer [N, d]; centred targets [N] and their mean, float64."""
    scale = Scale.of(vectors)
    variances, moments, weight = _scores_directions(vectors, scale, centred)
    flops, solutions = 2.0 * vectors.numel() * len(variances) / len(strengths), []
    for l2 in strengths:
        scores = 2 * moments / (2 * variances + max(l2, LEAST))
        explained = (2 * scores * moments - (variances + l2 / 2) * scores.square()).sum()
        objective = centred.square().mean() - explained
        folded = scale.fold(weight(scores).unsqueeze(0), mean.unsqueeze(0))
        solutions.append(Solution(l2, *folded, True, 1, objective.item(), flops))
    return solutions


def _scores_directions(vectors, scale: Scale, centred) -> tuple[torch.Tensor, torch.Tensor, Callable]:
    if is_wide(vectors):
        gram = Gram.of(scale.apply(vectors, torch.float64))
        return gram.variances, gram.moments(centred), lambda scores: gram.weight(scores.unsqueeze(0)).squeeze(0)
    covariance: torch.Tensor | float = 0.0
    moments: torch.Tensor | float = 0.0
    for block, part in zip(vectors.split(BLOCK), centred.split(BLOCK), strict=True):
        scaled = scale.apply(block, torch.float64)
        covariance, moments = covariance + scaled.T @ scaled / len(vectors), moments + scaled.T @ part / len(vectors)
    variances, directions = torch.linalg.eigh(covariance)
    return variances, moments @ directions, lambda scores: directions @ scores
