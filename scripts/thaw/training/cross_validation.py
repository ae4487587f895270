"""Cross-validation of a head on frozen features: on few rows its settings are chosen by rows that no fit has seen.

R rows, those of train and then those of validation, with N vectors (one a row, or one a word that has a token); C
outputs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from thaw.data.carving import FEW_ROWS, folds
from thaw.data.corpus import joint_groups
from thaw.declarations.task_types import WORD_TYPES
from thaw.evaluation.metrics import score
from thaw.evaluation.result_files import Predictions
from thaw.schema.corpora import SubsetConfig
from thaw.schema.phases import PhaseConfig
from thaw.training.context import TaskContext
from thaw.training.head_candidates import HeadCandidate, candidates
from thaw.training.head_vectors import Vectors


@dataclass(frozen=True)
class CrossValidated:
    """What cross-validation says of the head that it chose: nothing where validation chose.

    `record` is what metrics.json has of it; `predictions`, by split, are those of the fits that did not see the row.
    """

    record: dict = field(default_factory=dict)
    predictions: dict[str, Predictions] = field(default_factory=dict)


class Folds:
    """The training and validation rows of a run, in folds of whole groups. A fit leaves one fold out."""

    def __init__(self, context: TaskContext, number: int, draw: int, named: Callable):
        """Draw the folds, at most as many as there are groups; where the target is a label each has its share of each.

        Args: task and corpus; the number of folds that is wanted; draw of the subset; named(outputs [N, C], vectors,
        rows), their predictions.
        """
        self.context, self.rows, self.draw, self.named = context, context.joint_rows, draw, named
        self.gold = context.joint_gold
        self.groups = np.unique(joint_groups(context.corpus, self.rows), return_inverse=True)[1]
        stratified = context.corpus.card["targets"][context.task["target"]] == "label"
        self.classes = self.gold if stratified else np.zeros(len(self.groups), dtype=np.int64)
        self.number = min(number, int(self.groups.max()) + 1)
        self.fold = folds(self.groups, self.classes, self.number, draw)

    @classmethod
    def of(cls, context: TaskContext, subset: dict, phase: PhaseConfig, named: Callable) -> "Folds | None":
        """Return the folds of a run, None where validation chooses. Args: subset of its spec; its phase; see above.

        Validation chooses without `folds`, with many rows, with a single group, where it is a test split too, and for
        words, of which few rows have thousands: their folds take minutes.
        """
        if not phase.folds or context.validation in context.task["test"] or context.task["type"] in WORD_TYPES:
            return None
        if sum(map(len, context.joint_rows.values())) >= FEW_ROWS:
            return None
        made = cls(context, phase.folds, SubsetConfig.model_validate(subset).draw, named)
        return made if made.number > 1 else None

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
        outputs, fits = [], []
        device = layers[0].values.device
        targets = torch.as_tensor(layers[0].gold(self.gold), device=device)
        for fold in range(self.number):
            seen, left_out = map(layers[0].positions, (self.fitted(fold, half), np.flatnonzero(self.fold == fold)))
            # no candidate is judged within a fold
            tried = candidates([one.values[seen] for one in layers], targets[seen], classes, phase, lambda *_: None)
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
