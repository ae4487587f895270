"""Domain adaptation without labels of the target: Deep CORAL (Sun and Saenko 2016).

The loss of the task, and the distance of the covariances of what the head's last matrix reads of texts of the source
and of the target. n vectors of width F; B examples of a batch.
"""

import numpy as np
import torch

from thaw.core.runtime import derive_seed
from thaw.features.batch import Batch
from thaw.training.objectives import Supervised
from thaw.training.task_model import BatchLoader, TaskModel, read_states


def covariance(vectors: torch.Tensor) -> torch.Tensor:
    """Return the covariance [F, F] of vectors [n, F], with n - 1 (equations 2 and 3)."""
    centred = vectors - vectors.mean(0)
    return centred.T @ centred / max(1, len(vectors) - 1)


def coral(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the squared distance of both covariances over 4 F^2, a scalar (equation 1)."""
    return (covariance(source) - covariance(target)).square().sum() / (4 * source.shape[1] ** 2)


class Coral(Supervised):
    """The task's loss plus `weight` times CORAL against as many training texts of the target, drawn for each batch.

    For heads on texts that end in one matrix.
    """

    on_vectors = False

    def __init__(self, gold, loader: BatchLoader, rows: int, weight: float, seed: int):
        """Keep targets of the task; the loader of the other corpus, the number of its training rows; weight; seed."""
        super().__init__(gold)
        self.loader, self.count, self.weight, self.seed = loader, rows, weight, seed

    def loss(self, model: TaskModel, rows, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the mean loss of a batch, a scalar. Args: model; rows of train; their batch; states by boundary."""
        other = self.loader("train", self.drawn(rows))
        self.read = [other[0].mask.shape[1]] * len(other[0].mask)
        with torch.autocast(batch.mask.device.type, torch.bfloat16, enabled=model.precision == "bf16"):
            ours, theirs = self._vectors(model, batch, stored), self._vectors(model, *other)
            logits = model.head.logits(ours)
        loss = model.head.loss(logits, self.targets(model.head, rows, batch))
        return loss + self.weight * coral(ours.float(), theirs.float())

    def drawn(self, rows) -> np.ndarray:
        """Return as many rows of the target as these of the source, ascending: the same ones for the same rows."""
        numbers = np.asarray(rows, dtype=np.int64)
        random = np.random.default_rng(derive_seed(self.seed, f"coral:{numbers.tobytes().hex()}"))
        return np.sort(random.choice(self.count, min(len(numbers), self.count), replace=False))

    @staticmethod
    def _vectors(model: TaskModel, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        return model.head.vectors(read_states(model.encoder, model.head, batch, stored), batch)
