"""The one loop: rounds of one phase, with validation and early stopping where the phase asks for them.

A round is an epoch, or a share of the updates that the phase has (`thaw.adaptation.stages`).
"""

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import torch

from thaw.adaptation.optimizers import groups, optimizer
from thaw.adaptation.schedules import lr_factor
from thaw.adaptation.stages import lengths, rounds
from thaw.core.runtime import progress
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import Predictions
from thaw.features.store import FeatureStore
from thaw.schema.phases import PhaseConfig
from thaw.training.run_state import EpochCost, RunState

Stream = tuple[int, str]  # seed and name of a stream of random numbers


class Trainable(Protocol):
    """One model, or the heads of several runs: it makes the batches of an epoch, and of each losses and gradients.

    It gives the predictions of its runs too.
    """

    spent: EpochCost  # of the current round, for one run

    @property
    def encoder(self) -> Encoder | None:
        """The encoder, None where all that the head reads is stored."""

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

    def clip(self, largest: float) -> None:
        """Clip gradients by their norm over all that trains of a run."""

    def predict(
        self, index: int, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None
    ) -> Predictions:
        """Return a run's predictions for some rows of a split. Args: index of the run; word counts, None for texts."""


LOGGED = 10  # rows of the history per round


class PhaseTraining:
    """One phase in training: of one run, or of a batch of runs that differ in seed and learning rates alone.

    A phase is entered and run stage by stage. Each stage may bring another trainable, with more layers above the
    boundary that it starts from. The optimizer keeps its state of a tensor by the tensor's name.
    """

    optimizer: torch.optim.Optimizer  # of the stage that was entered

    def __init__(self, states: list[RunState], stages: list[dict], rows: int):
        """Start a phase. Args: the state of each run; the stages with their lengths; the number of training rows."""
        self.states, phase = states, states[0].phase
        self.per_epoch = math.ceil(rows / phase.batch_size)
        self.rounds = rounds(phase, stages, self.per_epoch)
        self.lengths = lengths(self.rounds)
        self.stage, self.epoch, self.steps = -1, 0, 0  # `epoch` counts rounds

    def enter(self, trainable: Trainable, components: list[str], layers: int, kept: list[int] | None = None) -> None:
        """Enter the next stage: make the optimizer over what trains now, and hand it the state of the one before.

        Args: what trains; names of its components that train; the number of layers below the head; those that
        are kept, None for all.
        """
        self.trainable = trainable
        before = [{name: self.optimizer.state[p] for name, p in state.parameters.items()} for state in self.states]
        trainable.thaw(components)
        parts = trainable.components(components)
        for state, named in zip(self.states, parts, strict=True):
            state.enter(named, len(self.rounds) > 1)
        self.phases = list({state.phase.model_dump_json(): state.phase for state in self.states}.values())
        param_groups = [group for phase in self.phases for group in self._groups(phase, parts, layers, kept)]
        self.optimizer = optimizer(self.phases[0].optimizer, param_groups, self.phases[0].betas)
        for state, moments in zip(self.states, before, strict=True):
            self.optimizer.state.update({p: moments[name] for name, p in state.parameters.items() if name in moments})
        self.stage += 1

    def _groups(self, phase: PhaseConfig, parts: list[dict], layers: int, kept: list[int] | None) -> list[dict]:
        merged: dict[str, Iterable] = {}
        for state, by_component in zip(self.states, parts, strict=True):
            if state.phase == phase:
                for name, named in by_component.items():
                    merged[name] = [*merged.get(name, ()), *named]
        return [group | {"settings": self.phases.index(phase)} for group in groups(merged, phase, layers, kept)]

    @property
    def scored(self) -> bool:
        """Whether the current round ends with a validation score."""
        return self.states[0].scores_epochs and sum(self.rounds, [])[self.epoch - 1].judged

    @property
    def place(self) -> str:
        """Where the current round ends, as the log says it."""
        parts = sum(self.rounds, [])
        if self.states[0].phase.updates is None:
            return f"epoch {self.epoch} of {len(parts)}"
        return f"update {sum(part.updates for part in parts[: self.epoch])} of {sum(self.lengths)}"

    def run(self, watch, after_epoch: Callable[[], None] = lambda: None) -> bool:
        """Train a stage to its last round, or to the phase's end by a rule or a loss that is not finite.

        Returns whether another stage follows. Args: a Stopwatch; a callback after each round. In a batch of runs, one
        that ends before the others keeps its weights of that round, though it is computed until all have ended. When
        the phase is over, each run gets the weights of its last round or, with pick: best, those of its round with the
        best validation score: the first of several with the same score, where an undefined score is the worst.
        """
        last, done = self.stage == len(self.rounds) - 1, sum(map(len, self.rounds[: self.stage]))
        for part in self.rounds[self.stage][self.epoch - done :]:
            if self._over():
                break
            self.epoch += 1
            going = [state for state in self.states if not state.phase_log.ended]
            with (
                watch("train"),
                self.trainable.drawing([state.stream("dropout", self.epoch) for state in self.states]),
            ):
                self._round(going, part.updates)
            with watch("evaluate"):
                for state in going:
                    state.after_epoch(self.epoch, last, part.judged)
            after_epoch()
            if self._over():
                break
            for state in going:
                state.snapshot()
        over = last or self._over()
        for state in self.states if over else []:
            state.restore_best()
        return not over

    def _over(self) -> bool:
        return all(state.phase_log.ended for state in self.states)

    def _round(self, going: list[RunState], updates: int) -> None:
        """Make the updates of a round; losses and the optimizer's learning rates are logged ten times."""
        losses, decay = [], self.states[0].plateau_factor()  # a plateau is of one run alone
        batches = self._batches(updates)
        self.trainable.begin(batches)
        logged = {math.ceil(len(batches) * (i + 1) / LOGGED) for i in range(LOGGED)}
        ends = "" if self.states[0].phase.updates is None else "up to "
        name = f"phase {self.states[0].number}, {ends}{self.place}"
        for count, batch in enumerate(progress(batches, name), start=1):
            factors = [lr_factor(phase, self.lengths, self.stage, self.steps, self.per_epoch) for phase in self.phases]
            factors = [factor * decay for factor in factors]
            self.trainable.at_step(self.steps, sum(self.lengths))
            losses.append(self._update(batch, factors))
            self.steps += 1
            if count in logged:
                self._log(losses)
                losses.clear()
                if self._over():
                    break
        for state in going:
            state.phase_log.add(self.trainable.spent)

    def _batches(self, count: int) -> list:
        """Return the next batches, of one epoch or of several, each of which has an order of its own."""
        batches: list = []
        while len(batches) < count:
            epoch, first = divmod(self.steps + len(batches), self.per_epoch)
            orders = [state.stream("order", epoch + 1) for state in self.states]
            every = self.trainable.batches(orders, self.states[0].phase.batch_size)
            batches += every[first : first + count - len(batches)]
        return batches

    def _log(self, losses: list[torch.Tensor]) -> None:
        """Log the mean of some losses [M], and the factor of the learning rates, for each run that goes on."""
        factor = {group["settings"]: group["lr"] / group["peak"] for group in self.optimizer.param_groups}
        columns = zip(*torch.stack(losses).tolist(), strict=True)
        for state, column in zip(self.states, columns, strict=True):
            if not state.phase_log.ended:
                mean = sum(column) / len(column)
                state.log_loss(self.epoch, self.steps, mean, factor[self.phases.index(state.phase)])

    def _update(self, batch: Any, factors: list[float]) -> torch.Tensor:
        """Make one update at a factor of the peak rates of each settings; return the losses [M], on their device."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factors[group["settings"]]
        losses = self.trainable.losses(batch)
        self.optimizer.zero_grad(set_to_none=True)
        self.trainable.backward(losses)
        for state in self.states:
            state.add_l2_sp_gradient()
        phase = self.phases[0]  # a search changes rates and the like, but not how gradients are clipped
        if phase.clip is not None:
            self.trainable.clip(phase.clip)
        self.optimizer.step()
        return losses.detach()
