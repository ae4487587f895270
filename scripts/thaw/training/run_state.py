"""A run's way through one phase: its settings, what is noted of it, and the rules by which it ends."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from thaw.adaptation.optimizers import together
from thaw.schema.phases import PhaseConfig
from thaw.training.gradient_log import Gradients


@dataclass
class EpochCost:
    """What an epoch took of one run: tokens, forward operations of the head, padded length of each sequence."""

    tokens: int = 0
    head_flops: float = 0.0
    lengths: list[int] = field(default_factory=list)


@dataclass
class PhaseLog:
    """How a phase went: its history, the epoch whose weights were kept, and what it took."""

    history: list[dict] = field(default_factory=list)
    epoch: int = 0
    steps: int = 0
    diverged: bool = False
    stopped: str | None = None  # by which rule it ended before its last epoch: patience, gap or score
    tokens: int = 0
    head_flops: float = 0.0  # forward operations of the head
    lengths: list[int] = field(default_factory=list)  # padded length of each sequence of a stage's batches

    @property
    def ended(self) -> bool:
        """Whether the phase is over for it, whatever epochs are left."""
        return self.diverged or self.stopped is not None

    def add(self, spent: EpochCost) -> None:
        """Add what an epoch took."""
        self.tokens += spent.tokens
        self.head_flops += spent.head_flops
        self.lengths += spent.lengths


class RunState:
    """One run in a phase, alone or beside others."""

    def __init__(self, number: int, phase: PhaseConfig, seed: int, gradients: bool = False):
        """Begin a phase.

        Args: its number in the run, from 1; its settings; the run's seed; whether norms of gradients are noted.
        """
        self.number, self.phase, self.seed = number, phase, seed
        self.gradients = Gradients() if gradients else None
        self.course = PhaseLog()
        self.parameters: dict[str, torch.nn.Parameter] = {}
        self.start: dict[str, torch.Tensor] = {}
        self.best, self.kept, self.stale = -math.inf, None, 0

    def enter(self, parts: dict[str, list], staged: bool) -> None:
        """Go on to a stage. Args: named parameters of each component that trains; whether the phase has several."""
        self.parameters = {f"{part}/{name}": p for part, named in parts.items() for name, p in named}
        if self.phase.l2_to_start or (self.phase.pick == "best" and staged):
            fresh = {name: p.detach().clone() for name, p in self.parameters.items() if name not in self.start}
            self.start.update(fresh)
        self.course.lengths = []

    def stream(self, purpose: str, epoch: int) -> tuple[int, str]:
        """Return an epoch's stream of random numbers for a purpose, "order" or "dropout", by seed and name."""
        own = self.phase.order if purpose == "order" else None
        return self.seed if own is None else own, f"{purpose}:{self.number}:{epoch}"

    def note(self, epoch: int, step: int, loss: float, share: float) -> None:
        """Add a row to the history, and see whether the loss is still finite."""
        rate = (self.phase.layer_rates or [self.phase.rate])[0] * share
        row = {"phase": self.number, "epoch": epoch, "step": step, "loss": loss, "rate": rate, "validation": None}
        self.course.history.append(row)
        self.course.steps = step
        self.course.diverged = not math.isfinite(loss)

    def after_epoch(self, epoch: int, score: Callable, last: bool) -> None:
        """Count an epoch that is over, and where the phase asks for it, judge it.

        Args: `score(split)`, the main metric on "validation" or on the scored rows of "train", None where it is not
        defined; whether this is the phase's last stage: before it not all that should has trained, and no rule ends it.
        """
        if self.course.diverged:
            return
        self.course.epoch = epoch
        if self.phase.patience or self.phase.stop or self.phase.pick == "best":
            self._judge(score, last)

    def _judge(self, score: Callable, last: bool) -> None:
        """Score validation, keep the weights where they are the best so far, and find out whether a rule ends it."""
        phase, note = self.phase, self.course.history[-1]
        found = note["validation"] = score("validation")
        value = -math.inf if found is None else found
        self.stale += last
        if value > self.best or self.kept is None:
            self.best, self.stale = value, 0
            self.kept = self.course.epoch, self._values() if phase.pick == "best" else {}
        rules = {"patience": phase.patience is not None and self.stale >= phase.patience}
        if phase.stop and phase.stop.gap is not None:
            note["train"] = score("train")
            rules["gap"] = None not in (found, note["train"]) and abs(note["train"] - found) > phase.stop.gap
        if phase.stop and phase.stop.score is not None:
            rules["score"] = value >= phase.stop.score
        if last:
            self.course.stopped = next((rule for rule, holds in rules.items() if holds), None)

    def hold(self) -> None:
        """Keep the weights of a run that has just ended, since others beside it go on; a better epoch's are kept."""
        if self.course.ended and (self.phase.pick == "last" or self.kept is None):
            self.kept = self.course.epoch, self._values()

    @torch.no_grad()
    def go_back(self) -> None:
        """Return to the weights that were kept, if any; what trained only later gets those that it began with."""
        if self.kept is None or not self.kept[1]:
            return
        self.course.epoch, values = self.kept
        for name, parameter in self.parameters.items():
            parameter.copy_(values[name] if name in values else self.start[name])

    @torch.no_grad()
    def pull_to_start(self) -> None:
        """Add the gradient of l2_to_start / 2 times the encoder's squared distance to its start (Li et al. 2018)."""
        if not self.phase.l2_to_start:
            return
        starts = {p: self.start[n] for n, p in self.parameters.items() if not n.startswith("head/")}
        for parameters in together([p for p in starts if p.grad is not None]):
            moved = torch._foreach_sub(parameters, [starts[p] for p in parameters])
            torch._foreach_add_([p.grad for p in parameters], moved, alpha=self.phase.l2_to_start)
            del moved  # before the next are made

    def measure(self) -> None:
        """Measure the gradients of an update, where that was asked for."""
        if self.gradients:
            self.gradients.add(self.parameters)

    def after_updates(self, spent: EpochCost) -> None:
        """Count what an epoch's updates took, and note how large their gradients were."""
        self.course.add(spent)
        if self.gradients:
            self.course.history[-1].update(self.gradients.told())

    def _values(self) -> dict[str, torch.Tensor]:
        """Return the weights as they are now."""
        return {name: p.detach().clone() for name, p in self.parameters.items()}
