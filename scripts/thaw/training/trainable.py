"""What the training loop asks of whatever it trains, and what a run asks of it afterwards.

M runs that train together, n examples of a batch.
"""

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import torch

from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import Predictions
from thaw.features.store import FeatureStore
from thaw.training.run_state import EpochCost

Stream = tuple[int, str]  # seed and name of a stream of random numbers


class Trainable(Protocol):
    """One model, or the heads of several runs: it makes the batches of an epoch, and of each losses and gradients."""

    spent: EpochCost  # of the current round, for one run

    def thaw(self, names: list[str]) -> None:
        """Let some components train and no others."""

    def components(self, names: list[str]) -> list[dict[str, list[tuple[str, torch.nn.Parameter]]]]:
        """Return the named parameters of some components, for each run."""

    def drawing(self, streams: list[Stream]) -> AbstractContextManager:
        """Draw a round's random numbers from each run's stream, within a context."""

    def batches(self, streams: list[Stream], size: int) -> list:
        """Return an epoch's batches in the order that each run's stream gives."""

    def begin(self, batches: list) -> None:
        """Begin a round: the cost of its batches is counted from here."""

    def at_step(self, step: int, steps: int) -> None:
        """Note how many updates of the phase were made, of how many planned."""

    def losses(self, batch: Any) -> torch.Tensor:
        """Return the loss [M] of each run on a batch."""

    def backward(self, losses: torch.Tensor) -> None:
        """Give all that trains the gradients of the losses."""

    def clip(self, largest: float, each: bool) -> None:
        """Clip gradients by their norm over all that trains of a run, or of each tensor by itself."""


class Evaluator(Protocol):
    """What gives the predictions of a run; every trainable of a run is one."""

    encoder: Encoder | None  # None where all that the head reads is stored

    def components(self, names: list[str]) -> list[dict[str, list[tuple[str, torch.nn.Parameter]]]]:
        """Return the named parameters of some components, for each run."""

    def predict(
        self, index: int, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None
    ) -> Predictions:
        """Return a run's predictions for some rows of a split. Args: index of the run; word counts, None for texts."""
