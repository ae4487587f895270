"""One model in training: batches of its rows go through the layers above the boundary and the head."""

from typing import Any

import numpy as np
import torch

from thaw.core.runtime import derive_seed, seeded
from thaw.encoders.masked_model import MaskedModel
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import Predictions
from thaw.features.store import FeatureStore
from thaw.training.objectives import Objective
from thaw.training.run_state import EpochCost
from thaw.training.task_model import BatchLoader, TaskModel

POOL = 50  # batches whose rows are sorted among themselves: little padding, and still a random order


def shuffled_batches(lengths: np.ndarray, size: int, seed: int, by_length: bool = True) -> list[np.ndarray]:
    """Return one epoch's batches: positions into `lengths` [N], each once, `size` a batch but for the last.

    Rows are shuffled and cut into batches. With by_length they are sorted by length before, within pools of 50
    batches, so that the rows of a batch have similar lengths, and the batches are shuffled.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    if not by_length:
        return [order[start : start + size] for start in range(0, len(order), size)]
    batches = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [batches[i] for i in random.permutation(len(batches))]


class ModelTrainer:
    """A model in training (see `thaw.training.phase_loop`)."""

    def __init__(
        self,
        model: TaskModel | MaskedModel,
        loader: BatchLoader,
        rows: np.ndarray,
        objective: Objective,
        frozen_dropout: bool = False,
        clip_over_all: bool = False,
        by_length: bool = True,
    ):
        """Keep model and data.

        Args: loader of the model; rows of train; objective; whether frozen layers drop out; whether frozen parameters
        have gradients too, which no optimizer sees but which count in the norm that is clipped; whether the rows of a
        batch have similar lengths.
        """
        self.model: Any = model  # a MaskedModel predicts nothing
        self.loader, self.rows, self.objective = loader, rows, objective
        self.frozen_dropout, self.clip_over_all, self.by_length = frozen_dropout, clip_over_all, by_length

    @property
    def encoder(self) -> Encoder | None:
        return self.model.encoder

    def thaw(self, names: list[str]) -> None:
        for parameter in self.model.head.parameters():
            parameter.requires_grad_("head" in names)
        if self.model.encoder is not None:
            self.model.encoder.thaw(set(names) - {"head"}, self.frozen_dropout)
        if self.clip_over_all:
            self.model.requires_grad_(True)

    def components(self, names: list[str]) -> list[dict[str, list]]:
        """Return the named parameters of some components, which may be rows of a matrix."""
        return [self.model.components(names)]

    def drawing(self, streams: list[tuple[int, str]]):
        return seeded(*streams[0])

    def batches(self, streams: list[tuple[int, str]], size: int) -> list[np.ndarray]:
        """Return an epoch's batches, each the positions of its rows."""
        lengths = self.loader.store.sizes("train")[self.rows]
        return shuffled_batches(lengths, size, derive_seed(*streams[0]), by_length=self.by_length)

    def begin(self, batches: list[np.ndarray]) -> None:
        """Begin a round of some batches: count their tokens, and let modules drop out."""
        rows = self.rows[np.concatenate(batches)]
        self.spent = EpochCost(int(self.loader.store.lengths("train")[rows].sum()))
        self.model.train()

    def at_step(self, step: int, steps: int) -> None:
        self.objective.at_step(step, steps)

    def losses(self, positions: np.ndarray) -> torch.Tensor:
        """Return the loss of a batch, [1]."""
        rows = self.rows[positions]
        batch, stored = self.loader("train", rows)
        self.spent.head_flops += self.model.head_flops(batch.host)
        self.spent.lengths[batch.mask.shape[1]] += len(batch.mask)
        return self.objective.loss(self.model, rows, batch, stored).view(1)

    def backward(self, losses: torch.Tensor) -> None:
        """Give all that trains the gradients of the loss; it has none where a batch read frozen modules alone."""
        if self.clip_over_all:
            self.model.zero_grad()  # the optimizer clears those of its own parameters alone
        if losses.requires_grad:
            losses.sum().backward()

    def clip(self, largest: float) -> None:
        """Clip gradients by their norm over all that trains.

        A tensor of an earlier phase may still have its last gradient: it does not count.
        """
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        torch.nn.utils.clip_grad_norm_([parameter for parameter in trained if parameter.grad is not None], largest)

    def predict(
        self, index: int, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None
    ) -> Predictions:
        loader = BatchLoader(store, self.loader.boundaries, self.loader.device)
        return self.model.predict(loader, split, rows, words)
