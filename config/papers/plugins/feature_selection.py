"""Which features of frozen layers a linear head is fitted on: by group lasso, or one of each cluster of neurons.

N vectors, d features, C outputs (classes; 1 for a score), A features of the active set. Vectors [N, d]; features are
standardised on them as in `thaw.heads.convex`; weights [C, d] have a column for each feature.

Head2Toe (Evci et al. 2022) fits a linear head under a group lasso, mean loss + penalty * sum over features of
||column||, takes the norm of a feature's column as its relevance, keeps a fraction and fits a new head to them. Dalvi
et al. 2020 cluster neurons by their correlation, keep one of each cluster, and of these the most useful ones.
"""

from thaw.schema.phases import SelectionKind

SELECTIONS = {
    "group_lasso": SelectionKind("thaw.papers.feature_selection:by_group_lasso", {"penalty"}),
    "clusters": SelectionKind("thaw.papers.feature_selection:by_clusters", {"correlation"}),
}


import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from thaw.heads.convex import Scale

GAP = 1e-3  # duality gap, as a share of the loss without features, at which a group lasso has converged
STEPS = 5000  # proximal steps at most, for one penalty and active set
CHECKED = 20  # steps after which the gap is computed
AT_ONCE = 12_288  # features that are clustered at once: their correlations take 1 GiB
ADDED = 64  # features that join an active set at once, at least
FALL = 0.5  # each penalty of the path, as a share of the one before


@dataclass(frozen=True)
class GroupLasso:
    """A fitted group lasso on standardised features: weight [C, d], bias [C] and relevance [d], float64; penalty; gap.

    `gap` is how much the objective can still fall at most, as a share of the loss without features.
    """

    weight: torch.Tensor
    bias: torch.Tensor
    relevance: torch.Tensor
    penalty: float
    gap: float


def group_lasso(vectors: torch.Tensor, targets: torch.Tensor, classes: int, share: float) -> GroupLasso:
    """Return the group lasso of classes (softmax, mean cross-entropy), sets of labels or scores (mean squared error).

    Args: vectors [N, d]; targets [N], class indices or, for `classes` 0, floats, or [N, C] of 0 and 1, whose loss is
    the sum of each label's binary cross-entropy; share, the penalty as a share of the least one under which no feature
    has a weight. Penalties fall from there, and each is solved on its active set by accelerated proximal gradient (Beck
    and Teboulle 2009, with the restarts of O'Donoghue and Candes 2015).

    The relevance of a feature is the norm of its weights plus that of the loss' gradient by them: the penalty where
    there are weights, and where there are none less, the farther it is from having some. So all features are ranked.
    """
    scaled = Scale.of(vectors).apply(vectors)
    loss = _Scores(targets) if not classes else _LabelSets(targets) if targets.ndim > 1 else _Classes(targets, classes)
    weight = scaled.new_zeros(len(loss.start), scaled.shape[1], dtype=torch.float64)
    bias, gap = loss.start, 0.0
    gradients = _gradients(scaled, loss.residuals(bias.expand(-1, len(targets))))
    penalty = highest = gradients.max().item()
    count = max(1, math.ceil(math.log(share) / math.log(FALL))) if highest > 0 else 0
    for number in range(1, count + 1):
        penalty, active, missing = highest * share ** (number / count), weight.any(0), None
        while missing is None or len(missing):
            active[_missing(gradients, penalty, active)] = True
            places = active.nonzero().squeeze(1)
            part = scaled[:, places].double()
            weight[:, places], bias, gap = _solve(part, loss, weight[:, places], bias, penalty)
            gradients = _gradients(scaled, loss.residuals(weight[:, places] @ part.mT + bias))
            missing = _missing(gradients, (1 + GAP) * penalty, active)
    relevance = weight.norm(dim=0) + gradients.clamp(max=penalty)
    return GroupLasso(weight, bias.squeeze(1), relevance, penalty, gap)


class _Loss:
    """A loss of logits [C, N], or scores [1, N]: its value, its gradient by them, and the dual value of residuals.

    The dual value is a bound: no weights that the residuals allow have a lower objective. `start` is the bias [C, 1]
    without features; `curvature` that of a vector's loss, at most.
    """

    curvature: float
    start: torch.Tensor

    def value(self, logits: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def residuals(self, logits: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def bound(self, residuals: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class _Classes(_Loss):
    """The mean cross-entropy of logits [C, N]."""

    curvature = 0.5

    def __init__(self, targets: torch.Tensor, classes: int):
        self.targets = targets
        self.wanted = functional.one_hot(targets, classes).double().mT
        self.start = self.wanted.mean(1, keepdim=True).clamp(min=1e-6).log()

    def value(self, logits: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits.mT, self.targets)

    def residuals(self, logits: torch.Tensor) -> torch.Tensor:
        return (logits.softmax(0) - self.wanted) / len(self.targets)

    def bound(self, residuals: torch.Tensor) -> torch.Tensor:
        probabilities = (self.wanted + len(self.targets) * residuals).clamp(min=0)
        return torch.special.entr(probabilities).sum(0).mean()


class _LabelSets(_Loss):
    """The cross-entropy of logits [C, N] of labels, each by itself: the mean over vectors, summed over labels."""

    curvature = 0.25

    def __init__(self, targets: torch.Tensor):
        self.wanted = targets.double().mT
        shares = self.wanted.mean(1, keepdim=True).clamp(1e-6, 1 - 1e-6)
        self.start = shares.logit()

    def value(self, logits: torch.Tensor) -> torch.Tensor:
        each = functional.binary_cross_entropy_with_logits(logits, self.wanted, reduction="none")
        return each.sum(0).mean()

    def residuals(self, logits: torch.Tensor) -> torch.Tensor:
        return (logits.sigmoid() - self.wanted) / logits.shape[1]

    def bound(self, residuals: torch.Tensor) -> torch.Tensor:
        shares = (self.wanted + residuals.shape[1] * residuals).clamp(0, 1)
        return (torch.special.entr(shares) + torch.special.entr(1 - shares)).sum(0).mean()


class _Scores(_Loss):
    """The mean squared error of scores [1, N]."""

    curvature = 2.0

    def __init__(self, targets: torch.Tensor):
        self.targets = targets.double().unsqueeze(0)
        self.start = self.targets.mean(1, keepdim=True)

    def value(self, logits: torch.Tensor) -> torch.Tensor:
        return (logits - self.targets).square().mean()

    def residuals(self, logits: torch.Tensor) -> torch.Tensor:
        return 2 * (logits - self.targets) / logits.numel()

    def bound(self, residuals: torch.Tensor) -> torch.Tensor:
        each = residuals.numel() * residuals
        return -(each.square() / 4 + each * self.targets).mean()


def _missing(gradients: torch.Tensor, penalty: float, active: torch.Tensor) -> torch.Tensor:
    steep = gradients.masked_fill(active, 0.0)
    count = min(int((steep > penalty).sum()), max(ADDED, int(active.sum())))
    return steep.topk(count).indices


def _gradients(scaled: torch.Tensor, residuals: torch.Tensor) -> torch.Tensor:
    return (residuals.to(scaled.dtype) @ scaled).double().norm(dim=0)


def _solve(part: torch.Tensor, loss, weight: torch.Tensor, bias: torch.Tensor, penalty: float):
    """Return weight [C, A], bias [C, 1] and gap of the features [N, A] of an active set, from a start.

    The bias is the weight of a further, constant feature without penalty, as long as the first singular vector is.
    """
    count, width = part.shape
    gram = part @ part.mT if count < width else part.mT @ part
    largest = torch.linalg.eigvalsh(gram)[-1].clamp(min=1e-12)
    constant = (largest / count).sqrt()
    features = torch.cat([part, constant.expand(count, 1)], 1)
    step = count / (loss.curvature * largest)
    point = ahead = torch.cat([weight, bias / constant], 1)
    without, momentum, gap = loss.value(loss.start.expand(-1, count)), 1.0, math.inf
    for taken in range(1, STEPS + 1):
        moved = ahead - step * (loss.residuals(ahead @ features.mT) @ features)
        norms = moved[:, :-1].norm(dim=0)
        moved[:, :-1] *= (1 - step * penalty / norms.clamp(min=1e-300)).clamp(min=0)
        change, following = moved - point, (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        if ((ahead - moved) * change).sum() > 0:
            ahead, momentum = moved, 1.0
        else:
            ahead, momentum = moved + (momentum - 1) / following * change, following
        point = moved
        if taken % CHECKED == 0:
            gap = _gap(features, loss, point, penalty) / without
            if gap <= GAP:
                break
    return point[:, :-1], point[:, -1:] * constant, float(gap)


def _gap(features: torch.Tensor, loss, point: torch.Tensor, penalty: float) -> torch.Tensor:
    """Return the duality gap of weights [C, A + 1]: what the objective can still fall is less."""
    logits, weight = point @ features.mT, point[:, :-1]
    residuals = loss.residuals(logits)
    residuals = residuals - residuals.mean(1, keepdim=True)  # those of the best bias, which is soon reached
    steepest = (residuals @ features[:, :-1]).norm(dim=0).max()
    bound = loss.bound(residuals * (penalty / steepest).clamp(max=1))
    return loss.value(logits) + penalty * weight.norm(dim=0).sum() - bound


def cluster_representatives(vectors: torch.Tensor, correlation: float) -> torch.Tensor:
    """Return the indices, rising, of one feature of each cluster: the one that correlates most with the others of it.

    Args: vectors [N, d]; correlation, how much features of a cluster correlate on average, in absolute value, at least:
    average linkage on 1 - |correlation|, cut there (`1 - correlation` is the threshold of Dalvi et al. 2020, who draw
    one feature at random). Features that do not vary are left out, unless there are no others. Of more than AT_ONCE
    features consecutive parts are clustered first, then the representatives of them all if they are few enough.
    """
    everything = torch.arange(vectors.shape[1], device=vectors.device)
    parts = [part[_representatives(vectors[:, part], correlation)] for part in everything.split(AT_ONCE)]
    kept = torch.cat(parts)
    if len(parts) == 1 or len(kept) > AT_ONCE:
        return kept
    return kept[_representatives(vectors[:, kept], correlation)]


def _representatives(vectors: torch.Tensor, correlation: float) -> torch.Tensor:
    """Return the same of features whose correlations are computed at once."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    scale = Scale.of(vectors)
    varies = scale.deviation.isfinite().nonzero().squeeze(1)
    if len(varies) < 2:
        return varies if len(varies) else varies.new_zeros(1)
    scaled = scale.apply(vectors)[:, varies]
    alike = (scaled.mT @ scaled / len(scaled)).abs_().clamp_(max=1).fill_diagonal_(1).cpu().numpy()
    distances = squareform(1 - alike, checks=False)
    clusters = fcluster(linkage(distances, "average"), 1 - correlation, "distance")
    members = np.split(np.argsort(clusters, kind="stable"), np.cumsum(np.bincount(clusters)[1:])[:-1])
    central = [each[alike[np.ix_(each, each)].sum(1).argmax()] for each in members]
    return varies[torch.as_tensor(np.sort(central), device=varies.device)]


def by_group_lasso(vectors: torch.Tensor, targets: torch.Tensor, classes: int, settings, fitted: Callable):
    """Return all features and their relevance."""
    features = torch.arange(vectors.shape[1], device=vectors.device)
    return features, group_lasso(vectors, targets, classes, settings.penalty).relevance


def by_clusters(vectors: torch.Tensor, targets: torch.Tensor, classes: int, settings, fitted: Callable):
    """Return one feature of each cluster, and their relevance: the weights of the head on them, by deviation."""
    kept = cluster_representatives(vectors, settings.correlation)
    return kept, (fitted(kept).weight[:, kept] * Scale.of(vectors).deviation[kept]).norm(dim=0)
