"""A teacher with dropout: its logits are others in each update, so that they are computed with the student's batch.

B rows of a batch, W words of the longest, C outputs, n rows.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from thaw.compute_cost.flops import encoder_flops
from thaw.core.runtime import seeded
from thaw.features.batch import Batch
from thaw.features.row_sets import batches
from thaw.training.run_inputs import Inputs
from thaw.training.task_model import BatchLoader
from thaw.training.taught import Teacher


class LiveTeacher:
    """A finished run in training mode, as a student asks it; its random numbers are of streams of their own."""

    def __init__(self, inputs: Inputs, metrics: Path, expected: str, seed: int):
        """Load the run. Args: what the student reads; the run's metrics.json; its digest; the student's seed.

        Raises UserError as `Teacher` does.
        """
        self.teacher, self.seed = Teacher(inputs, metrics, expected), seed
        self.teacher.model.requires_grad_(False)
        self.stream = ""

    def at_step(self, number: int, step: int) -> None:
        """Note which update comes next. Args: number of the phase; updates that were made in it."""
        self.stream = f"teacher_dropout:{number}:{step}"

    def logits_of(self, rows: np.ndarray, batch: Batch) -> torch.Tensor:
        """Return the logits of a batch with this update's dropout: [B, C], scores [B], or of words [B, W, C]."""
        model = self.teacher.model.to(batch.mask.device).train()
        with torch.no_grad(), seeded(self.seed, self.stream):
            return model(batch, {}).float()

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores [n] of some rows of train without dropout."""
        store, scores = self.teacher.context.store, np.zeros(len(rows), dtype=np.float32)
        model, loader = self.teacher.model.eval(), BatchLoader(store, [], torch.device("cpu"))
        with torch.no_grad():
            for places in batches(store.sizes("train")[rows]):
                batch, stored = loader("train", rows[places])
                scores[places] = model(batch, stored).float().numpy()
        return scores

    def check_rows(self, rows: np.ndarray, store) -> None:
        """Accept all rows: it reads any, and logits alone are compared."""

    def flops(self, lengths: Iterable[int]) -> float:
        """Return the operations of a pass over sequences of these lengths, without the head's."""
        return encoder_flops(self.teacher.context.shape_below(self.teacher.model.head), lengths)
