"""The one loop: epochs of one phase, with validation and early stopping where the phase asks for them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from thaw import settings
from thaw.runtime import progress, seeded, stream
from thaw.strategies.groups import groups
from thaw.strategies.optimizers import optimizer
from thaw.strategies.schedules import share
from thaw.training.batching import shuffled_batches
from thaw.training.model import Feed, Model

NOTES = 10  # rows of the history per epoch


@dataclass
class Task:
    """What a phase trains on: rows of the training split, their targets in a batch, and a score to watch.

    `targets(rows, batch)` gives the targets of a batch of rows; `score(split)` the main metric on "validation" or on
    the scored rows of "train", None where it is not defined.
    """

    rows: object
    targets: Callable
    score: Callable


@dataclass
class Course:
    """How a phase went: its history, the epoch whose weights were kept, and what it took."""

    history: list[dict] = field(default_factory=list)
    epoch: int = 0
    steps: int = 0
    diverged: bool = False
    stopped: str | None = None  # by which rule it ended before its last epoch: patience, gap or score
    tokens: int = 0
    head_flops: float = 0.0  # forward operations of the head
    lengths: list[int] = field(default_factory=list)  # padded length of each sequence of a stage's batches


class PhaseTraining:
    """One phase in training: the model, its optimizer and the random streams it draws from.

    A phase is entered and run stage by stage; each stage may bring another model, with more layers above the boundary
    that it starts from. What the optimizer knows of a tensor goes on under the tensor's name.
    """

    def __init__(self, number: int, phase: settings.Phase, epochs: list[int], seed: int):
        """Begin a phase. Args: its number in the run, from 1; its settings; epochs of each stage; the run's seed."""
        self.number, self.phase, self.epochs, self.seed = number, phase, epochs, seed
        self.stage, self.epoch = -1, 0
        self.course = Course()
        self.parameters: dict[str, torch.nn.Parameter] = {}
        self.optimizer = None
        self.start: dict[str, torch.Tensor] = {}
        self.best, self.kept, self.stale = -math.inf, None, 0

    def enter(self, model: Model, components: list[str], layers: int) -> None:
        """Go on to the next stage: make the optimizer over what trains now, with what it knew of what trained before.

        Args: the model; names of what trains; the number of layers below the head.
        """
        self.model = model
        for parameter in model.head.parameters():
            parameter.requires_grad_("head" in components)
        if model.encoder is not None:
            model.encoder.thaw(set(components) - {"head"}, self.phase.frozen_dropout)
        parts = model.components(components)  # after thaw, which may give rows of a matrix parameters of their own
        before = {name: self.optimizer.state[p] for name, p in self.parameters.items()}
        self.parameters = {f"{part}/{name}": p for part, named in parts.items() for name, p in named}
        self.optimizer = optimizer(self.phase.optimizer, groups(parts, self.phase, layers))
        self.optimizer.state.update({p: before[name] for name, p in self.parameters.items() if name in before})
        if self.phase.l2_to_start or (self.phase.pick == "best" and len(self.epochs) > 1):
            fresh = {name: p.detach().clone() for name, p in self.parameters.items() if name not in self.start}
            self.start.update(fresh)
        self.stage += 1
        self.course.lengths = []

    def run(self, task: Task, feed: Feed, watch) -> bool:
        """Train a stage to its last epoch, or to the phase's end by a rule or a loss that is not finite.

        Returns whether there are further stages to go on with. `watch` is a Stopwatch. Rules that end a phase are
        looked at in its last stage alone: before it not all that should has trained. At the end of the phase the model
        holds the weights of the last epoch or, with pick: best, of the epoch with the best validation score (the first
        of equal ones; undefined counts as the worst).
        """
        phase, last = self.phase, self.stage == len(self.epochs) - 1
        for _ in range(self.epochs[self.stage]):
            self.epoch += 1
            with watch("train"), seeded(self.seed, f"dropout:{self.number}:{self.epoch}"):
                self._epoch(task, feed)
            if self.course.diverged:
                break
            self.course.epoch = self.epoch
            if phase.patience or phase.stop or phase.pick == "best":
                with watch("evaluate"):
                    self._evaluate(task, last)
            if self.course.stopped:
                break
        over = last or self.course.diverged
        if over and phase.pick == "best" and self.kept is not None:
            self._go_back()
        return not over

    @torch.no_grad()
    def _go_back(self) -> None:
        """Give the model the weights of the best epoch; what trained only after it gets those that it began with."""
        self.course.epoch, values = self.kept
        for name, parameter in self.parameters.items():
            parameter.copy_(values[name] if name in values else self.start[name])

    def _evaluate(self, task: Task, last: bool) -> None:
        """Score validation, keep the weights where they are the best so far, and find out whether a rule ends it."""
        phase, note = self.phase, self.course.history[-1]
        found = note["validation"] = task.score("validation")
        value = -math.inf if found is None else found
        self.stale += last
        if value > self.best or self.kept is None:
            self.best, self.stale = value, 0
            wanted = self.parameters if phase.pick == "best" else {}
            self.kept = self.epoch, {name: p.detach().clone() for name, p in wanted.items()}
        rules = {"patience": phase.patience is not None and self.stale >= phase.patience}
        if phase.stop and phase.stop.gap is not None:
            note["train"] = task.score("train")
            rules["gap"] = None not in (found, note["train"]) and abs(note["train"] - found) > phase.stop.gap
        if phase.stop and phase.stop.score is not None:
            rules["score"] = value >= phase.stop.score
        if last:
            self.course.stopped = next((rule for rule, holds in rules.items() if holds), None)

    def _epoch(self, task: Task, feed: Feed) -> None:
        """Go once through the training rows; losses are read, and looked at, ten times an epoch."""
        course, phase, epoch = self.course, self.phase, self.epoch
        lengths, sizes = feed.store.lengths("train")[task.rows], feed.store.sizes("train")[task.rows]
        seed = stream(self.seed, f"order:{self.number}:{epoch}")
        batches = shuffled_batches(sizes, phase.batch_size, seed)
        notes = {math.ceil(len(batches) * (i + 1) / NOTES) for i in range(NOTES)}
        self.model.train()
        losses, top = [], (phase.layer_rates or [phase.rate])[0]
        name = f"phase {self.number}, epoch {epoch} of {sum(self.epochs)}"
        for count, positions in enumerate(progress(batches, name), start=1):
            rows = task.rows[positions]
            batch, stored = feed("train", rows)
            now = share(phase, self.epochs, self.stage, course.steps, len(batches))
            losses.append(self._update(batch, stored, task.targets(rows, batch), now))
            course.steps += 1
            course.tokens += int(lengths[positions].sum())
            course.head_flops += self.model.head.flops(batch)
            course.lengths += [batch.mask.shape[1]] * len(batch.mask)
            if count in notes:
                loss = torch.stack(losses).mean().item()
                note = {"phase": self.number, "epoch": epoch, "step": course.steps, "loss": loss}
                course.history.append(note | {"rate": top * now, "validation": None})
                losses.clear()
                if not math.isfinite(loss):
                    course.diverged = True
                    return

    def _update(self, batch, stored, targets, now: float) -> torch.Tensor:
        """Make one update at a share of the peak rates; return the task's loss, still on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * now
        loss = self.model.head.loss(self.model(batch, stored), targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.phase.l2_to_start:
            self._pull_to_start()
        if self.phase.clip is not None:
            parameters = list(self.parameters.values())
            for clipped in [[p] for p in parameters] if self.phase.clip_each else [parameters]:
                torch.nn.utils.clip_grad_norm_(clipped, self.phase.clip)
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def _pull_to_start(self) -> None:
        """Add the gradient of l2_to_start / 2 times the encoder's squared distance to its start (Li et al. 2018)."""
        for name, parameter in self.parameters.items():
            if not name.startswith("head/") and parameter.grad is not None:
                parameter.grad.add_(parameter - self.start[name], alpha=self.phase.l2_to_start)
