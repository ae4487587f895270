"""Domain adaptation without labels of the target: Deep CORAL (Sun and Saenko 2016).

The loss of the task, and the distance of the covariances of what the head's last matrix reads of texts of the source
and of the target. n vectors of width F; B examples of a batch.
"""

from pydantic import Field

from thaw.declarations.objective_kinds import ObjectiveKind
from thaw.declarations.task_types import TEXT_TYPES
from thaw.schema.entry import Id
from thaw.schema.keys import ConfigModel


class CoralConfig(ConfigModel):
    """CORAL (Sun and Saenko 2016): covariances of source and target are brought near each other."""

    to: Id = Field(description="a task among the transfer_sets of each task that the strategy is run on")
    weight: float = Field(1.0, gt=0, description="of the distance in the loss")


def _in_strategy(phase, strategy) -> str:
    if list(phase.train) == ["head"] and not phase.insert:
        return "adapts the encoder; let some of it train, as train: [head, {top: 2}]"
    return ""


def _on_task(task_type: str) -> str:
    return "" if task_type in TEXT_TYPES else "compares vectors of texts"


OBJECTIVES = {
    "coral": ObjectiveKind(
        "thaw.papers.coral:make",
        CoralConfig,
        "domain adaptation to the texts of another task's corpus, without its labels",
        texts="to",
        passes=2.0,  # each batch with as many texts of the other task
        in_strategy=_in_strategy,
        on_task=_on_task,
    )
}


import numpy as np
import torch

from thaw.core.boundaries import cached_layers_read
from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed
from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
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


def make(run, settings: CoralConfig, stage: dict, number: int) -> Coral:
    """Return the objective of a stage. Raises UserError for a head that does not end in one matrix."""
    if run.head.words or not isinstance(run.head, VectorHead):
        raise UserError(f"coral compares texts by a head that ends in one matrix, not by {run.head.entry.kind}")
    other, store = run.inputs.transfer_set(settings.to)
    loader = BatchLoader(store, cached_layers_read([stage]), run.device)
    return Coral(run.gold, loader, other.corpus.size("train"), settings.weight, run.spec["seed"])
