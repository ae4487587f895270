"""A run in one phase: its settings, its log, its best weights, and the rules that end it."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter

import torch

from thaw.adaptation.optimizers import together
from thaw.adaptation.schedules import plateau_factor
from thaw.schema.phases import PhaseConfig


@dataclass
class EpochCost:
    """The cost of a round of one run: tokens, forward operations of the head, sequences by their padded length."""

    tokens: int = 0
    head_flops: float = 0.0
    lengths: Counter[int] = field(default_factory=Counter)


@dataclass
class PhaseLog:
    """The log of a phase: its history, the epoch whose weights were kept, and its cost."""

    history: list[dict] = field(default_factory=list)
    epoch: int = 0
    steps: int = 0
    diverged: bool = False
    stopped: str | None = None  # the rule that ended the phase before its last epoch: patience, gap or score
    tokens: int = 0
    head_flops: float = 0.0  # forward operations of the head
    lengths: Counter[int] = field(default_factory=Counter)  # sequences of a stage's batches, by their padded length
    scores: list[float | None] = field(default_factory=list)  # on validation, of each evaluation

    @property
    def ended(self) -> bool:
        """Whether the phase is over for the run, whatever epochs are left."""
        return self.diverged or self.stopped is not None

    def rows(self, epoch: int) -> list[dict]:
        return self.history[self._begin(epoch) : self._begin(epoch + 1)]

    def mean_loss(self, epoch: int) -> float:
        """Return the mean training loss of an epoch, NaN where it has none."""
        begin, rows = self._begin(epoch), self.rows(epoch)
        steps = [self.history[begin - 1]["step"] if begin else 0, *(row["step"] for row in rows)]
        weighted = [row["loss"] * (after - before) for row, (before, after) in zip(rows, pairwise(steps), strict=True)]
        return sum(weighted) / (steps[-1] - steps[0]) if rows else math.nan

    def _begin(self, epoch: int) -> int:
        """Return where an epoch begins in the history, which is in the order of epochs: a search, not a scan of all."""
        return bisect_left(self.history, epoch, key=itemgetter("epoch"))

    def add(self, spent: EpochCost) -> None:
        self.tokens += spent.tokens
        self.head_flops += spent.head_flops
        self.lengths.update(spent.lengths)


class RunState:
    """One run in a phase, alone or in a batch of runs."""

    def __init__(
        self,
        number: int,
        phase: PhaseConfig,
        seed: int,
        score: Callable[[str], float | None] = lambda split: None,
    ):
        """Start a phase.

        Args: its number in the run, from 1; its settings; the run's seed; `score(split)`, the main metric on
        "validation" or on the scored rows of "train", None where it is not defined.
        A phase that neither stops early nor keeps its best epoch needs no score.
        """
        self.number, self.phase, self.seed, self.score = number, phase, seed, score
        self.phase_log = PhaseLog()
        self.parameters: dict[str, torch.nn.Parameter] = {}
        self.start: dict[str, torch.Tensor] = {}
        self.best, self.stale = -math.inf, 0
        self.kept: tuple[int, dict[str, torch.Tensor]] | None = None  # the best round's number and weights

    def enter(self, parts: dict[str, list], staged: bool) -> None:
        """Enter a stage. Args: named parameters of each component that trains; whether the phase has several stages."""
        self.parameters = {f"{part}/{name}": p for part, named in parts.items() for name, p in named}
        if self.phase.l2_to_start or (self.phase.pick == "best" and staged):
            fresh = {name: p.detach().clone() for name, p in self.parameters.items() if name not in self.start}
            self.start.update(fresh)
        self.phase_log.lengths = Counter()

    @property
    def scores_epochs(self) -> bool:
        """Whether the phase asks for a validation score after each round."""
        phase = self.phase
        return bool(phase.judge or phase.patience or phase.stop or phase.pick == "best" or phase.schedule == "plateau")

    def plateau_factor(self) -> float:
        """Return what a schedule of kind plateau has made of the rate so far; 1 for any other."""
        if self.phase.schedule != "plateau":
            return 1.0
        return plateau_factor(self.phase_log.scores)

    def stream(self, purpose: str, epoch: int) -> tuple[int, str]:
        """Return an epoch's stream of random numbers for a purpose, "order" or "dropout", by seed and name."""
        data_seed = self.phase.order if purpose == "order" else None
        return self.seed if data_seed is None else data_seed, f"{purpose}:{self.number}:{epoch}"

    def log_loss(self, epoch: int, step: int, loss: float, lr_factor: float) -> None:
        """Add a row to the history, and flag a loss that is not finite."""
        rate = self.phase.one_rate * lr_factor
        row = {"phase": self.number, "epoch": epoch, "step": step, "loss": loss, "rate": rate, "validation": None}
        self.phase_log.history.append(row)
        self.phase_log.steps = step
        self.phase_log.diverged = not math.isfinite(loss)

    def after_epoch(self, epoch: int, last: bool, judged: bool = True) -> None:
        """Count a finished round, and score it where the phase asks for it.

        Args: number of the round; whether this is the last stage; whether the round ends where the phase is evaluated.
        In an earlier stage some components have not trained yet, so that no rule ends the phase.
        """
        if self.phase_log.diverged:
            return
        self.phase_log.epoch = epoch
        if self.scores_epochs and judged:
            self._evaluate(last)

    def _evaluate(self, last: bool) -> None:
        """Score validation, keep the weights of the best round so far, and apply the rules that end the phase."""
        phase, row = self.phase, self.phase_log.history[-1]
        validation = row["validation"] = self.score("validation")
        self.phase_log.scores.append(validation)
        value = -math.inf if validation is None else validation
        self.stale += last
        if value > self.best or self.kept is None:
            self.best, self.stale = value, 0
            self.kept = self.phase_log.epoch, self._values() if phase.pick == "best" else {}
        rules = {"patience": phase.patience is not None and self.stale >= phase.patience}
        if phase.stop:
            train = row["train"] = self.score("train")
            apart = 0.0 if train is None or validation is None else abs(train - validation)
            rules["gap"] = apart > phase.stop.gap
        if last:
            self.phase_log.stopped = next((rule for rule, holds in rules.items() if holds), None)

    def snapshot(self) -> None:
        """Keep the weights of a run that has just ended, since other runs of the batch go on.

        The weights of its best epoch are kept instead where the phase asks for them.
        """
        if self.phase_log.ended and (self.phase.pick == "last" or self.kept is None):
            self.kept = self.phase_log.epoch, self._values()

    @torch.no_grad()
    def restore_best(self) -> None:
        """Restore the weights that were kept, if any; a component that trained only later gets its first weights."""
        if self.kept is None or not self.kept[1]:
            return
        self.phase_log.epoch, values = self.kept
        for name, parameter in self.parameters.items():
            parameter.copy_(values[name] if name in values else self.start[name])

    @torch.no_grad()
    def add_l2_sp_gradient(self) -> None:
        """Add the gradient of L2-SP: l2_to_start / 2 times the encoder's squared distance to its start.

        Source: Li et al. 2018.
        """
        if not self.phase.l2_to_start:
            return
        starts: dict[torch.Tensor, torch.Tensor] = {
            p: self.start[n] for n, p in self.parameters.items() if not n.startswith("head/")
        }
        for parameters in together([p for p in starts if p.grad is not None]):
            moved = torch._foreach_sub(parameters, [starts[p] for p in parameters])
            gradients = [p.grad for p in parameters if p.grad is not None]
            torch._foreach_add_(gradients, moved, alpha=self.phase.l2_to_start)
            del moved  # before the next are made

    def _values(self) -> dict[str, torch.Tensor]:
        return {name: p.detach().clone() for name, p in self.parameters.items()}
