"""The one loop: epochs of one phase, with validation and early stopping where the phase asks for them."""

import math
from collections.abc import Callable

import torch

from thaw.adaptation.optimizers import optimizer
from thaw.adaptation.param_groups import groups
from thaw.adaptation.schedules import lr_factor
from thaw.core.runtime import progress
from thaw.schema.phases import PhaseConfig
from thaw.training.run_state import RunState

NOTES = 10  # rows of the history per epoch


class PhaseTraining:
    """One phase in training: of one run, or of several side by side that differ in seed and rates alone.

    A phase is entered and run stage by stage; each stage may bring another model, with more layers above the boundary
    that it starts from. What the optimizer knows of a tensor goes on under the tensor's name. What trains is a `Single`
    or a `Stack`: it makes the batches of an epoch, and of each the members' losses and gradients.
    """

    def __init__(self, members: list[RunState], epochs: list[int]):
        """Begin a phase. Args: its members; the epochs of each stage."""
        self.members, self.epochs = members, epochs
        self.stage, self.epoch, self.steps = -1, 0, 0
        self.optimizer = None

    def enter(self, trainee, components: list[str], layers: int) -> None:
        """Go on to the next stage: make the optimizer over what trains now, with what it knew of what trained before.

        Args: a Single or a Stack; names of what trains; the number of layers below the head.
        """
        self.trainee = trainee
        before = [{name: self.optimizer.state[p] for name, p in member.parameters.items()} for member in self.members]
        trainee.thaw(components)
        parts = trainee.components(components)
        for member, own in zip(self.members, parts, strict=True):
            member.enter(own, len(self.epochs) > 1)
        self.phases = list({member.phase.model_dump_json(): member.phase for member in self.members}.values())
        made = [group for phase in self.phases for group in self._groups(phase, parts, layers)]
        self.optimizer = optimizer(self.phases[0].optimizer, made)
        for member, known in zip(self.members, before, strict=True):
            self.optimizer.state.update({p: known[name] for name, p in member.parameters.items() if name in known})
        self.stage += 1

    def _groups(self, phase: PhaseConfig, parts: list[dict], layers: int) -> list[dict]:
        """Return the parameter groups of the members of equal settings, each with the number of these."""
        together: dict[str, list] = {}
        for member, own in zip(self.members, parts, strict=True):
            if member.phase == phase:
                for name, named in own.items():
                    together.setdefault(name, []).extend(named)
        return [group | {"number": self.phases.index(phase)} for group in groups(together, phase, layers)]

    def run(self, scores: list, watch, after: Callable[[], None] = lambda: None) -> bool:
        """Train a stage to its last epoch, or to the phase's end by a rule or a loss that is not finite.

        Returns whether there are further stages to go on with. Args: for each member what scores it (see `Member`); a
        Stopwatch; what to do after each epoch. A member that ends while others go on is computed on, and its weights of
        then are held. At the end of the phase all have the weights of their last epoch or, with pick: best, of the
        epoch with the best validation score (the first of equal ones; undefined counts as the worst).
        """
        last = self.stage == len(self.epochs) - 1
        while self.epoch < sum(self.epochs[: self.stage + 1]) and not self._over():
            self.epoch += 1
            going = [place for place, member in enumerate(self.members) if not member.course.ended]
            with (
                watch("train"),
                self.trainee.drawing([member.stream("dropout", self.epoch) for member in self.members]),
            ):
                self._epoch([self.members[place] for place in going])
            with watch("evaluate"):
                for place in going:
                    self.members[place].after_epoch(self.epoch, scores[place], last)
            after()
            if self._over():
                break
            for place in going:
                self.members[place].hold()
        over = last or self._over()
        for member in self.members if over else []:
            member.go_back()
        return not over

    def _over(self) -> bool:
        """Tell whether the phase is over for all members."""
        return all(member.course.ended for member in self.members)

    def _epoch(self, going: list[RunState]) -> None:
        """Go once through the training rows; losses and the optimizer's own rates are read ten times an epoch."""
        first, losses = self.members[0], []
        orders = [member.stream("order", self.epoch) for member in self.members]
        batches = self.trainee.batches(orders, first.phase.batch_size)
        notes = {math.ceil(len(batches) * (i + 1) / NOTES) for i in range(NOTES)}
        name = f"phase {first.number}, epoch {self.epoch} of {sum(self.epochs)}"
        for count, places in enumerate(progress(batches, name), start=1):
            shares = [lr_factor(phase, self.epochs, self.stage, self.steps, len(batches)) for phase in self.phases]
            losses.append(self._update(places, shares))
            self.steps += 1
            if count in notes:
                stood = {group["number"]: group["lr"] / group["peak"] for group in self.optimizer.param_groups}
                columns = zip(*torch.stack(losses).tolist(), strict=True)
                for member, column in zip(self.members, columns, strict=True):
                    if not member.course.ended:
                        now = stood[self.phases.index(member.phase)]
                        member.note(self.epoch, self.steps, sum(column) / len(column), now)
                losses.clear()
                if self._over():
                    break
        for member in going:
            member.after_updates(self.trainee.spent)

    def _update(self, places, shares: list[float]) -> torch.Tensor:
        """Make one update at a share of the peak rates of each settings; return the losses [M], still on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * shares[group["number"]]
        losses = self.trainee.losses(places)
        self.optimizer.zero_grad(set_to_none=True)
        self.trainee.backward(losses)
        for member in self.members:
            member.pull_to_start()
            member.measure()
        phase = self.phases[0]  # a search changes rates and the like, but not how gradients are clipped
        if phase.clip is not None:
            self.trainee.clip(phase.clip, phase.clip_each)
        self.optimizer.step()
        return losses.detach()
