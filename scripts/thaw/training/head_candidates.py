"""The heads that are tried when one is fitted to convergence: by strength, layer, fraction of features.

Validation chooses, or on few rows cross-validation, by rows that no fit has seen. K layers, R rows, those of train and
then those of validation, with N vectors (one a row, or one a word that has a token), d features of a layer, C classes
(0 for a score).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from thaw.data.carving import folds
from thaw.data.corpus import joint_folds
from thaw.evaluation.metrics import score
from thaw.evaluation.result_files import Predictions
from thaw.heads.convex import CHOICE_GAP, GAP, Solution, fit_classes, fit_scores
from thaw.schema.corpora import SubsetConfig
from thaw.schema.layers import LayersConfig, OneLayerConfig
from thaw.schema.phases import SELECTIONS, PhaseConfig
from thaw.training.context import TaskContext
from thaw.training.head_vectors import Vectors


@dataclass(frozen=True)
class HeadCandidate:
    """A fitted head: its solution, the position of its layer among those that are read, and which features it reads.

    `fraction` and `features`, their indices, are None where nothing was selected.
    """

    solution: Solution
    position: int = 0
    fraction: float | None = None
    features: torch.Tensor | None = None

    def converged(self, vectors: torch.Tensor, targets: torch.Tensor, classes: int, balanced: bool) -> "HeadCandidate":
        """Return the same head fitted to GAP. Args: as of `candidates`, of its layer alone."""
        if not classes:
            return self  # scores are solved in closed form
        read = vectors if self.features is None else vectors[:, self.features]
        ((solution,),) = _fit(read.unsqueeze(0), targets, classes, [self.solution.l2], balanced, GAP)
        if self.features is not None:
            solution = solution.among(self.features, vectors.shape[1])
        return replace(self, solution=solution)


def candidates(
    layers: list[torch.Tensor],
    targets: torch.Tensor,
    classes: int,
    phase: PhaseConfig,
    score: Callable,
    balanced: bool = False,
) -> list[HeadCandidate]:
    """Return the heads of each layer, of each fraction of its features, and for each strength, fitted to CHOICE_GAP.

    Args: training vectors of each layer, K x [N, d]; targets [N]; C; the phase; score(position, solution), the main
    metric on validation, None where it is not defined; whether rare classes weigh more.
    """
    if phase.select is None:
        solutions = _fit(torch.stack(layers), targets, classes, phase.l2, balanced)
        return [HeadCandidate(one, position) for position, ones in enumerate(solutions) for one in ones]
    found, select = [], phase.select
    for position, vectors in enumerate(layers):

        def fit(features: torch.Tensor, vectors=vectors) -> list[Solution]:
            (solutions,) = _fit(vectors[:, features].unsqueeze(0), targets, classes, phase.l2, balanced)
            return [solution.among(features, vectors.shape[1]) for solution in solutions]

        def best(features: torch.Tensor, position=position, fit=fit) -> Solution:
            solutions = fit(features)
            return solutions[best_strength([score(position, solution) for solution in solutions], phase.l2)]

        kept, relevance = SELECTIONS[select.by].load()(vectors, targets, classes, select, best)
        for fraction in select.fractions:
            features = kept[most_relevant(relevance, fraction)]
            found += [HeadCandidate(solution, position, fraction, features) for solution in fit(features)]
    return found


def _fit(
    vectors: torch.Tensor,
    targets: torch.Tensor,
    classes: int,
    strengths: list[float],
    balanced: bool,
    gap: float = CHOICE_GAP,
) -> list[list[Solution]]:
    """Return the solutions of vectors [K, N, d] by layer and strength."""
    if classes:
        return fit_classes(vectors, targets, classes, strengths, gap, balanced)
    return fit_scores(vectors, targets, strengths)


def most_relevant(relevance: torch.Tensor, fraction: float) -> torch.Tensor:
    """Return the indices, rising, of a fraction of the features, at least one; of equals the first ones."""
    count = max(1, round(fraction * len(relevance)))
    return relevance.argsort(descending=True, stable=True)[:count].sort().values


def choose(tried: list[HeadCandidate], scores: list[float | None], layers: LayersConfig) -> int:
    """Return the index of the candidate with the best validation score.

    Args: candidates that were tried; their scores; what the head reads: with `layer: lowest` only the lowest layer
    counts whose best score is within the margin. Of equals the lowest layer is taken, then the fewest features, then
    the strongest penalty.
    """
    scored = [-np.inf if score is None else score for score in scores]
    allowed = list(range(len(tried)))
    if isinstance(layers, OneLayerConfig) and layers.layer == "lowest":
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


@dataclass(frozen=True)
class CrossValidated:
    """What cross-validation says of the head that it chose: nothing where validation chose.

    `record` is what metrics.json has of it; `predictions`, by split, are those of the fits that did not see the row.
    """

    record: dict = field(default_factory=dict)
    predictions: dict[str, Predictions] = field(default_factory=dict)


class Folds:
    """The training and validation rows of a run, in folds of whole groups. A fit leaves one fold out."""

    def __init__(self, context: TaskContext, drawn: tuple, draw: int, named: Callable):
        """Args: the task; what `joint_folds` drew; the draw; predictions named(outputs [N, C], vectors, rows)."""
        self.context, self.rows, self.draw, self.named = context, context.joint_rows, draw, named
        self.gold = context.joint_gold
        self.groups, self.classes, self.fold = drawn
        self.number = int(self.fold.max()) + 1

    @classmethod
    def of(cls, context: TaskContext, subset: dict, phase: PhaseConfig, named: Callable) -> "Folds | None":
        """Return the folds of a run, None where validation chooses. Args: subset of its spec; its phase; see above."""
        draw = SubsetConfig.model_validate(subset).draw
        drawn = (
            joint_folds(context.corpus, context.task, context.joint_rows, phase.folds, draw) if phase.folds else None
        )
        return cls(context, drawn, draw, named) if drawn else None

    def fitted(self, fold: int, half: bool = False) -> np.ndarray:
        """Return the rows, ascending, that are fitted where a fold is left out; or half of them, in whole groups."""
        rows = np.flatnonzero(self.fold != fold)
        if not half:
            return rows
        groups = np.unique(self.groups[rows], return_inverse=True)[1]
        return rows[folds(groups, self.classes[rows], 2, self.draw) == 0]

    def outputs(
        self, layers: list[Vectors], classes: int, phase: PhaseConfig, half: bool = False
    ) -> tuple[list[torch.Tensor], list[HeadCandidate]]:
        """Return by candidate the outputs [N, C] for all vectors by the fit that left their fold out, and all fits.

        Args: vectors of all rows, for each layer; number of classes, 0 for a score; the phase; whether a fit sees half
        of its rows.
        """
        outputs: list[torch.Tensor] = []
        fits: list[HeadCandidate] = []
        device = layers[0].values.device
        targets = torch.as_tensor(layers[0].gold(self.gold), device=device)
        for fold in range(self.number):
            seen, left_out = map(layers[0].positions, (self.fitted(fold, half), np.flatnonzero(self.fold == fold)))
            # no candidate is judged within a fold
            values, balanced = [one.values[seen] for one in layers], self.context.balanced
            tried = candidates(values, targets[seen], classes, phase, lambda *_: None, balanced)
            outputs = outputs or [torch.empty(len(targets), len(one.solution.bias), device=device) for one in tried]
            for of_all, one in zip(outputs, tried, strict=True):
                of_all[left_out] = one.solution.logits(layers[one.position].values[left_out])
            fits += tried
        return outputs, fits

    def scores(self, vectors: Vectors, outputs: torch.Tensor, metrics: list[str]) -> dict[str, float | None]:
        """Return metrics over all rows together. Args: their vectors; outputs [N, C] for these."""
        values = self.named(outputs, vectors, np.arange(len(self.fold))).values
        return score(self.context.task | {"metrics": metrics}, self.gold, values, self.context.labels)

    def record(self, vectors: Vectors, outputs: torch.Tensor, half: torch.Tensor) -> CrossValidated:
        """Return what is recorded of the chosen head.

        Args: vectors; outputs [N, C] for them; outputs of fits on half of the rows.
        """
        of_all, of_half = (
            {
                "fitted": round(np.mean([len(self.fitted(fold, few)) for fold in range(self.number)])),
                "scores": self.scores(vectors, given, self.context.task["metrics"]),
            }
            for few, given in ((False, outputs), (True, half))
        )
        first, predictions = 0, {}
        for split, rows in self.rows.items():
            places = np.arange(first, first := first + len(rows))
            predictions[split] = self.named(outputs[vectors.positions(places)], vectors.of(places), rows)
        return CrossValidated({"number": self.number, "rows": first, **of_all, "half": of_half}, predictions)
