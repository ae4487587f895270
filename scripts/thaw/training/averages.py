"""Averaged weights: encoders and heads of several runs as one model, in which nothing is trained.

The mean over runs is a soup (Wortsman et al. 2022). WiSE-FT is a point between two ends, as a frozen encoder's run and
a tuned one, with a share chosen on validation (Wortsman et al. 2022).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from thaw.core.errors import UserError
from thaw.evaluation.result_files import Predictions
from thaw.features.store import FeatureStore
from thaw.training.run_inputs import Inputs
from thaw.training.task_model import BatchLoader
from thaw.training.taught import Teacher

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
Tensors = dict[str, torch.Tensor]


def mean(models: Sequence[Tensors], shares: Sequence[float]) -> Tensors:
    """Return the weighted mean of each tensor, summed in float64: what is equal in all stays so to the bit."""
    summed = {}
    for name, tensor in models[0].items():
        terms = (share * one[name].double() for share, one in zip(shares, models, strict=True))
        start = torch.zeros_like(tensor, dtype=torch.float64)
        summed[name] = sum(terms, start).to(tensor.dtype) if tensor.is_floating_point() else tensor
    return summed


class Averaged:
    """A model with weights that several runs left, which reads text in fp32.

    Args: what the runs have read; of each end the runs of which it is the mean, metrics.json and digest.
    """

    def __init__(self, inputs: Inputs, ends: list[list[tuple[Path, str]]]):
        """Load the runs. Raises UserError where the models of two have other tensors."""
        teachers = {run: Teacher(inputs, *run) for runs in ends for run in runs}
        (first, of_first), *others = teachers.items()
        shapes = {name: tensor.shape for name, tensor in of_first.model.state_dict().items()}
        for (file, _), teacher in others:
            if shapes != {name: tensor.shape for name, tensor in teacher.model.state_dict().items()}:
                raise UserError(f"{file.parent}: its model has other tensors than that of {first[0].parent}")
        models = [[teachers[run].model.state_dict() for run in runs] for runs in ends]
        self.ends = [mean(of_end, [1 / len(of_end)] * len(of_end)) for of_end in models]
        self.context, self.model = of_first.context, of_first.model.to(inputs.device)
        self.put([1 / len(ends)] * len(ends))

    def put(self, shares: Sequence[float]) -> None:
        """Give the model the weighted mean of the ends."""
        self.model.load_state_dict(mean(self.ends, shares))

    def choose(self) -> float:
        """Put in the share of the second end that scores best on validation, of equal ones the largest; return it."""
        split, scores = self.context.validation, {}
        for share in SHARES:
            self.put([1 - share, share])
            score = self.context.main_score(self.predict_rows(split), split)
            scores[share] = -np.inf if score is None else score
        best = max(SHARES, key=lambda share: (scores[share], share))
        self.put([1 - best, best])
        return best

    def predict_rows(self, split: str) -> Predictions:
        """Return the predictions for the scored rows of a split."""
        rows, context = self.context.rows[split], self.context
        return self.predict(context.corpus, context.store, split, rows, context.word_counts(split, rows))

    def predict(self, corpus, store: FeatureStore, split: str, rows: np.ndarray, words) -> Predictions:
        """Return the predictions for some rows; see `TaskContext.transfer_predictions`."""
        return self.model.predict(BatchLoader(store, [], self.context.device), split, rows, words)
