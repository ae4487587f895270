"""The one loop: epochs of one phase, with validation and early stopping where the phase asks for them."""

import math
from collections.abc import Callable
from typing import Any

import torch

from thaw.adaptation.optimizers import optimizer
from thaw.adaptation.param_groups import groups
from thaw.adaptation.schedules import lr_factor
from thaw.core.runtime import progress
from thaw.schema.phases import PhaseConfig
from thaw.training.run_state import RunState
from thaw.training.trainable import Trainable

LOGGED = 10  # rows of the history per epoch


class PhaseTraining:
    """One phase in training: of one run, or of a batch of runs that differ in seed and learning rates alone.

    A phase is entered and run stage by stage. Each stage may bring another trainable, with more layers above the
    boundary that it starts from. The optimizer keeps its state of a tensor by the tensor's name.
    """

    def __init__(self, members: list[RunState], epochs: list[int]):
        """Start a phase. Args: the state of each run; the epochs of each stage."""
        self.members, self.epochs = members, epochs
        self.stage, self.epoch, self.steps = -1, 0, 0
        self.optimizer = None

    def enter(self, trainable: Trainable, components: list[str], layers: int) -> None:
        """Enter the next stage: make the optimizer over what trains now, and hand it the state of the one before.

        Args: what trains; names of its components that train; the number of layers below the head.
        """
        self.trainable = trainable
        before = [{name: self.optimizer.state[p] for name, p in member.parameters.items()} for member in self.members]
        trainable.thaw(components)
        parts = trainable.components(components)
        for member, named in zip(self.members, parts, strict=True):
            member.enter(named, len(self.epochs) > 1)
        self.phases = list({member.phase.model_dump_json(): member.phase for member in self.members}.values())
        param_groups = [group for phase in self.phases for group in self._groups(phase, parts, layers)]
        self.optimizer = optimizer(self.phases[0].optimizer, param_groups)
        for member, states in zip(self.members, before, strict=True):
            self.optimizer.state.update({p: states[name] for name, p in member.parameters.items() if name in states})
        self.stage += 1

    def _groups(self, phase: PhaseConfig, parts: list[dict], layers: int) -> list[dict]:
        """Return the parameter groups of the members with these settings, each with the index of the settings."""
        merged: dict[str, list] = {}
        for member, by_component in zip(self.members, parts, strict=True):
            if member.phase == phase:
                for name, named in by_component.items():
                    merged.setdefault(name, []).extend(named)
        return [group | {"settings": self.phases.index(phase)} for group in groups(merged, phase, layers)]

    def run(self, watch, after_epoch: Callable[[], None] = lambda: None) -> bool:
        """Train a stage to its last epoch, or to the phase's end by a rule or a loss that is not finite.

        Returns whether a further stage follows. Args: a Stopwatch; a callback after each epoch. A member that ends
        while others go on is computed on, and its weights of then are kept. At the end of the phase all have the
        weights of their last epoch or, with pick: best, of the epoch with the best validation score (the first of equal
        ones; undefined counts as the worst).
        """
        last = self.stage == len(self.epochs) - 1
        while self.epoch < sum(self.epochs[: self.stage + 1]) and not self._over():
            self.epoch += 1
            going = [member for member in self.members if not member.phase_log.ended]
            with (
                watch("train"),
                self.trainable.drawing([member.stream("dropout", self.epoch) for member in self.members]),
            ):
                self._epoch(going)
            with watch("evaluate"):
                for member in going:
                    member.after_epoch(self.epoch, last)
            after_epoch()
            if self._over():
                break
            for member in going:
                member.snapshot()
        over = last or self._over()
        for member in self.members if over else []:
            member.restore_best()
        return not over

    def _over(self) -> bool:
        return all(member.phase_log.ended for member in self.members)

    def _epoch(self, going: list[RunState]) -> None:
        """Go once through the training rows; losses and the optimizer's learning rates are logged ten times."""
        first, losses = self.members[0], []
        orders = [member.stream("order", self.epoch) for member in self.members]
        batches = self.trainable.batches(orders, first.phase.batch_size)
        logged = {math.ceil(len(batches) * (i + 1) / LOGGED) for i in range(LOGGED)}
        name = f"phase {first.number}, epoch {self.epoch} of {sum(self.epochs)}"
        for count, batch in enumerate(progress(batches, name), start=1):
            factors = [lr_factor(phase, self.epochs, self.stage, self.steps, len(batches)) for phase in self.phases]
            losses.append(self._update(batch, factors))
            self.steps += 1
            if count in logged:
                factor = {group["settings"]: group["lr"] / group["peak"] for group in self.optimizer.param_groups}
                columns = zip(*torch.stack(losses).tolist(), strict=True)
                for member, column in zip(self.members, columns, strict=True):
                    if not member.phase_log.ended:
                        mean = sum(column) / len(column)
                        member.log_loss(self.epoch, self.steps, mean, factor[self.phases.index(member.phase)])
                losses.clear()
                if self._over():
                    break
        for member in going:
            member.after_updates(self.trainable.spent)

    def _update(self, batch: Any, factors: list[float]) -> torch.Tensor:
        """Make one update at a factor of the peak rates of each settings; return the losses [M], on their device."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factors[group["settings"]]
        losses = self.trainable.losses(batch)
        self.optimizer.zero_grad(set_to_none=True)
        self.trainable.backward(losses)
        for member in self.members:
            member.add_l2_sp_gradient()
            member.log_gradients()
        phase = self.phases[0]  # a search changes rates and the like, but not how gradients are clipped
        if phase.clip is not None:
            self.trainable.clip(phase.clip, phase.clip_each)
        self.optimizer.step()
        return losses.detach()
