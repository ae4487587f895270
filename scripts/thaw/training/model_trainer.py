"""One run in training by itself: batches of its rows go through what lies above the boundary, and the head.

B examples, S sequences, T tokens, W words.
"""

from collections.abc import Callable

import numpy as np
import torch

from thaw.adaptation.optimizers import together
from thaw.core.runtime import derive_seed, seeded
from thaw.evaluation.result_files import Predictions
from thaw.features.store import FeatureStore
from thaw.training.batching import shuffled_batches
from thaw.training.run_state import EpochCost
from thaw.training.task_model import Feed, TaskModel


class ModelTrainer:
    """A model in training, with what it is fed.

    What a loop wants of whatever it trains: see `thaw.training.phase_loop.PhaseTraining`.
    """

    def __init__(self, model: TaskModel, feed: Feed, rows: np.ndarray, targets: Callable, frozen_dropout: bool = False):
        """Keep what trains. Args: `targets(rows, batch)`, those of some rows: [B], or [B, W] for words."""
        self.model, self.feed, self.rows, self.targets = model, feed, rows, targets
        self.frozen_dropout = frozen_dropout

    @property
    def encoder(self):
        """What of the encoder is computed, None where all that the head reads is stored."""
        return self.model.encoder

    def thaw(self, names: list[str]) -> None:
        """Let some components train and no others."""
        for parameter in self.model.head.parameters():
            parameter.requires_grad_("head" in names)
        if self.model.encoder is not None:
            self.model.encoder.thaw(set(names) - {"head"}, self.frozen_dropout)

    def components(self, names: list[str]) -> list[dict[str, list]]:
        """Return the named parameters of some components that train, which may be rows of a matrix."""
        return [self.model.components(names)]

    def drawing(self, streams: list[tuple[int, str]]):
        """Draw an epoch's random numbers from its one stream, within a context."""
        return seeded(*streams[0])

    def batches(self, streams: list[tuple[int, str]], size: int) -> list[np.ndarray]:
        """Return an epoch's batches, each the places of its rows; rows of like length stand together."""
        store = self.feed.store
        self.spent = EpochCost(int(store.lengths("train")[self.rows].sum()))
        self.model.train()
        return shuffled_batches(store.sizes("train")[self.rows], size, derive_seed(*streams[0]))

    def losses(self, places: np.ndarray) -> torch.Tensor:
        """Return the loss of a batch, [1]."""
        rows = self.rows[places]
        batch, stored = self.feed("train", rows)
        self.spent.head_flops += self.model.head.flops(batch.host)
        self.spent.lengths += [batch.mask.shape[1]] * len(batch.mask)
        return self.model.head.loss(self.model(batch, stored), self.targets(rows, batch)).view(1)

    def backward(self, losses: torch.Tensor) -> None:
        """Give all that trains the gradients of the loss."""
        losses.sum().backward()

    def clip(self, largest: float, each: bool) -> None:
        """Shrink gradients whose norm is larger, over all that trains or of each tensor by itself.

        What trained in an earlier phase may still have its last gradient, which is none of this one's.
        """
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        trained = [parameter for parameter in trained if parameter.grad is not None]
        if not each:
            torch.nn.utils.clip_grad_norm_(trained, largest)
            return
        for gradients in together([parameter.grad for parameter in trained]):
            norms = torch.stack(torch._foreach_norm(gradients))
            shares = (largest / (norms + 1e-6)).clamp(max=1.0)  # as clip_grad_norm_ has it
            torch._foreach_mul_(gradients, list(shares.unbind()))

    def answers(
        self, place: int, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None
    ) -> Predictions:
        """Return the answers to some rows of a split; `words` are their word counts, None without words."""
        feed = Feed(store, self.feed.boundaries, self.feed.device)
        return self.model.answers(feed, split, rows, words)
