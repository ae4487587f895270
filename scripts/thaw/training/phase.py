"""The one loop: epochs of one phase, with validation and early stopping where the phase asks for them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from thaw import settings
from thaw.runtime import progress, seeded, stream
from thaw.strategies.groups import groups
from thaw.strategies.schedules import SCHEDULES, warmup_steps
from thaw.training.batching import shuffled_batches
from thaw.training.model import Feed, Model

NOTES = 10  # rows of the history per epoch


@dataclass
class Task:
    """What a phase trains on: rows of the training split, their targets in a batch, and a score to watch.

    `targets(rows, batch)` gives the targets of a batch of rows; `validate()` the main metric on
    validation, None where it is not defined.
    """

    rows: object
    targets: Callable
    validate: Callable


@dataclass
class Course:
    """How a phase went: its history, the epoch whose weights were kept, and what it took."""

    history: list[dict] = field(default_factory=list)
    epoch: int = 0
    steps: int = 0
    diverged: bool = False
    tokens: int = 0
    vectors: int = 0  # that the head computed: one a text, or one a word with its padding
    lengths: list[int] = field(default_factory=list)  # padded length of each sequence of each batch


class PhaseTraining:
    """One phase in training: the model, its optimizer and the random streams it draws from."""

    def __init__(self, number: int, phase: settings.Phase, model: Model, components: list[str], seed: int):
        """Make the optimizer over the trained components.

        Args: number of the phase in the run, from 1; its settings; the model; names of what trains; the run's seed.
        """
        self.number, self.phase, self.model, self.seed = number, phase, model, seed
        parts = model.components(components)
        self.parameters = [parameter for named in parts.values() for _, parameter in named]
        for parameter in model.head.parameters():
            parameter.requires_grad_("head" in components)
        if model.encoder is not None:
            model.encoder.thaw(set(components) - {"head"}, phase.frozen_dropout)
        self.optimizer = torch.optim.AdamW(groups(parts, phase), fused=True)
        self.course = Course()

    def run(self, task: Task, feed: Feed, watch) -> Course:
        """Train to the last epoch, to the end of patience or to a loss that is not finite; return the course.

        `watch` is a Stopwatch. At the end the model holds the weights of the last epoch or, with pick: best, of the
        epoch with the best validation score (the first of equal ones; undefined counts as the worst).
        """
        phase, course = self.phase, self.course
        best, kept, stale = -math.inf, None, 0
        total = phase.epochs * math.ceil(len(task.rows) / phase.batch_size)
        for epoch in range(1, phase.epochs + 1):
            with watch("train"), seeded(self.seed, f"dropout:{self.number}:{epoch}"):
                self._epoch(epoch, total, task, feed)
            if course.diverged:
                break
            course.epoch = epoch
            if phase.patience is None and phase.pick == "last":
                continue
            with watch("evaluate"):
                found = task.validate()
            course.history[-1]["validation"] = found
            score = -math.inf if found is None else found
            stale = 0 if score > best or kept is None else stale + 1
            if stale == 0:
                best, kept = score, (epoch, [p.detach().clone() for p in self.parameters])
            if phase.patience is not None and stale >= phase.patience:
                break
        if phase.pick == "best" and kept is not None:
            course.epoch = kept[0]
            with torch.no_grad():
                for parameter, value in zip(self.parameters, kept[1], strict=True):
                    parameter.copy_(value)
        return course

    def _epoch(self, epoch: int, total: int, task: Task, feed: Feed) -> None:
        """Go once through the training rows; losses are read, and looked at, ten times an epoch."""
        course, phase = self.course, self.phase
        lengths, sizes = feed.store.lengths("train")[task.rows], feed.store.sizes("train")[task.rows]
        seed = stream(self.seed, f"order:{self.number}:{epoch}")
        batches = shuffled_batches(sizes, phase.batch_size, seed)
        notes = {math.ceil(len(batches) * (i + 1) / NOTES) for i in range(NOTES)}
        self.model.train()
        losses = []
        name = f"phase {self.number}, epoch {epoch} of {phase.epochs}"
        for count, positions in enumerate(progress(batches, name), start=1):
            rows = task.rows[positions]
            batch, stored = feed("train", rows)
            share = SCHEDULES[phase.schedule](course.steps, total, warmup_steps(phase.warmup, total))
            losses.append(self._update(batch, stored, task.targets(rows, batch), share))
            course.steps += 1
            course.tokens += int(lengths[positions].sum())
            course.vectors += batch.first_pieces.numel() if self.model.head.words else len(rows)
            course.lengths += [batch.mask.shape[1]] * len(batch.mask)
            if count in notes:
                loss = torch.stack(losses).mean().item()
                note = {"phase": self.number, "epoch": epoch, "step": course.steps, "loss": loss}
                course.history.append(note | {"rate": phase.rate * share, "validation": None})
                losses.clear()
                if not math.isfinite(loss):
                    course.diverged = True
                    return

    def _update(self, batch, stored, targets, share: float) -> torch.Tensor:
        """Make one update at a share of the peak rates; return the loss, still on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * share
        loss = self.model.head.loss(self.model(batch, stored), targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.phase.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.phase.clip)
        self.optimizer.step()
        return loss.detach()
