"""The heads that validation chooses from when one is fitted to convergence: by strength, layer, fraction of features.

K layers, N vectors, d features of a layer, C classes (0 for a score).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from thaw.heads.convex import Scale, Solution, fit_classes, fit_scores
from thaw.heads.feature_selection import cluster_representatives, group_lasso, most_relevant
from thaw.schema.layers import LayersConfig
from thaw.schema.phases import PhaseConfig


@dataclass(frozen=True)
class HeadCandidate:
    """A fitted head: its solution, the position of its layer among those that are read, and which features it reads.

    `fraction` and `features`, their number, are None where nothing was selected.
    """

    solution: Solution
    position: int = 0
    fraction: float | None = None
    features: int | None = None


def candidates(
    layers: list[torch.Tensor], targets: torch.Tensor, classes: int, phase: PhaseConfig, score: Callable
) -> list[HeadCandidate]:
    """Return the heads of each layer, of each fraction of its features, and for each strength.

    Args: training vectors of each layer, K x [N, d]; targets [N]; C; the phase; score(position, solution), the main
    metric on validation, None where it is not defined.
    """
    if phase.select is None:
        solutions = _fit(torch.stack(layers), targets, classes, phase.l2)
        return [HeadCandidate(one, position) for position, ones in enumerate(solutions) for one in ones]
    return [
        candidate
        for position, vectors in enumerate(layers)
        for candidate in _selected(position, vectors, targets, classes, phase, score)
    ]


def _fit(vectors: torch.Tensor, targets: torch.Tensor, classes: int, strengths: list[float]) -> list[list[Solution]]:
    """Return the solutions of vectors [K, N, d] by layer and strength."""
    if classes:
        return fit_classes(vectors, targets, classes, strengths)
    return fit_scores(vectors, targets, strengths)


def _selected(
    position: int, vectors: torch.Tensor, targets: torch.Tensor, classes: int, phase: PhaseConfig, score: Callable
) -> list[HeadCandidate]:
    """Return the heads of a layer on each fraction of its features; those that are left out have weights of 0."""
    select, width = phase.select, vectors.shape[1]

    def fit(features: torch.Tensor) -> list[Solution]:
        (solutions,) = _fit(vectors[:, features].unsqueeze(0), targets, classes, phase.l2)
        return [solution.among(features, width) for solution in solutions]

    if select.by == "group_lasso":
        kept = torch.arange(width, device=vectors.device)
        relevance = group_lasso(vectors, targets, classes, select.penalty).relevance
    else:
        kept = cluster_representatives(vectors, select.correlation)
        solutions = fit(kept)
        best = best_strength([score(position, solution) for solution in solutions], phase.l2)
        deviations = Scale.of(vectors).deviation[kept]
        relevance = (solutions[best].weight[:, kept] * deviations).norm(dim=0)
    fitted = []
    for fraction in select.fractions:
        features = kept[most_relevant(relevance, fraction)]
        fitted += [HeadCandidate(solution, position, fraction, len(features)) for solution in fit(features)]
    return fitted


def choose(tried: list[HeadCandidate], scores: list[float | None], layers: LayersConfig) -> int:
    """Return the index of the candidate with the best validation score.

    Args: candidates that were tried; their scores; what the head reads: with `layer: lowest` only the lowest layer
    counts whose best score is within the margin. Of equals the lowest layer is taken, then the fewest features, then
    the strongest penalty.
    """
    scored = [-np.inf if score is None else score for score in scores]
    allowed = range(len(tried))
    if layers.searched and layers.layer == "lowest":
        least = max(scored) - layers.margin
        lowest = min(one.position for one, score in zip(tried, scored, strict=True) if score >= least)
        allowed = [i for i in allowed if tried[i].position == lowest]
    return max(
        allowed,
        key=lambda i: (scored[i], -tried[i].position, -(tried[i].fraction or 0), tried[i].solution.l2),
    )


def best_strength(scores: list[float | None], strengths: list[float]) -> int:
    """Return the index of the best score; of equals the one of the strongest penalty."""
    ranks = [(-np.inf if value is None else value, l2) for value, l2 in zip(scores, strengths, strict=True)]
    return ranks.index(max(ranks))
