"""The objective of a student: its own loss and distances to what its teacher gave for the same rows.

B examples, W words, S sequences, T tokens, d width.
"""

import torch
from torch import nn

from thaw.adaptation.selectors import boundary
from thaw.core.boundaries import that_train
from thaw.core.runtime import seeded
from thaw.features.batch import Batch
from thaw.schema.distillation import SHARED, DistilConfig
from thaw.training.distillation_losses import (
    relation_distance,
    soft_targets,
    squared_error,
    state_distance,
    yes_or_no,
)
from thaw.training.live_teacher import LiveTeacher
from thaw.training.objectives import Supervised
from thaw.training.task_model import TaskModel
from thaw.training.taught import TeacherOutputs


class Distilled(Supervised):
    """A weighted sum of the head's loss and of the terms of `distil`; a term of weight 0 is not computed."""

    on_vectors = False

    def __init__(
        self,
        gold,
        distil: DistilConfig,
        taught: TeacherOutputs | LiveTeacher,
        phase: dict,
        width: int,
        seed: int,
        number: int = 1,
    ):
        """Keep what is compared.

        Args: encoded targets of all rows of train; the phase's entry; the teacher's outputs; the phase in the spec, for
        its pairs of boundaries and of layers, student's and teacher's; width of its states and the run's seed, for
        learned projections; the phase's number.
        """
        super().__init__(gold)
        self.distil, self.taught = distil, taught
        self.pairs = phase.get("pairs", []) if distil.hidden and distil.hidden.weight else []
        self.attended = phase.get("attended", []) if distil.attention and distil.attention.weight else []
        self.share, self.number = 0.0, number
        self._matched = self.pairs, self.attended
        self.projections = nn.ModuleDict()
        if self.pairs and distil.hidden.project:
            names = [SHARED] if distil.hidden.project == SHARED else [str(n) for n, _ in self.pairs]
            widths = width, taught.width(self.pairs[0][1])
            with seeded(seed, "projections"):
                self.projections.update({name: nn.Linear(*widths, bias=False) for name in names})

    def in_stage(self, components: list[str] | None, layers: int) -> "Distilled":
        """Compare what trains in a stage and no more; return the same objective, whose projections train on.

        Below what trains there are no states in an encoder that is resumed. Args: the components that train, None for
        all that is matched; layers L.
        """
        below = boundary(components, layers) if components else None
        self.pairs, self.attended = (that_train(pairs, below) for pairs in self._matched)
        return self

    def join(self, model: TaskModel, run) -> None:
        """Let the projections, if any, train with the model."""
        if self.projections:
            model.projections = self.projections.to(run.device)

    def at_step(self, step: int, steps: int) -> None:
        """Note which share of the planned updates was made: layers take turns by it; a teacher's dropout too."""
        self.share = step / steps
        if isinstance(self.taught, LiveTeacher):
            self.taught.at_step(self.number, step)

    def now(self) -> tuple[list, list]:
        """Return the pairs of boundaries and of layers that are compared in the update that comes next.

        Layers that take turns (Aguilar et al. 2020) have equal shares of the phase's updates, from below. The model's
        output belongs to the highest layer.
        """
        if self.distil.order == "together":
            return self.pairs, self.attended
        top = max((layer for layer, _ in self.attended), default=None)
        level = {n: n if top is None else min(n, top) for n, _ in [*self.pairs, *self.attended]}
        levels = sorted(set(level.values()))
        turn = min(int(self.share * len(levels)), len(levels) - 1)
        active = levels[: turn + 1] if self.distil.order == "stacked" else levels[turn : turn + 1]
        return tuple([pair for pair in pairs if level[pair[0]] in active] for pairs in (self.pairs, self.attended))

    def loss(self, model: TaskModel, rows, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the mean loss of a batch, a scalar. Args: model; rows of train; their batch; states by boundary."""
        pairs, attended = self.now()
        matched = [n for n, _ in pairs], [n for n, _ in attended]
        logits, states, taken = model.with_states(batch, stored, *matched)
        terms = []
        if self.distil.hard:
            hard = model.head.loss(logits, self.targets(model.head, rows, batch))
            terms.append(hard if self.distil.hard == 1 else self.distil.hard * hard)
        if self.distil.logits and self.distil.logits.weight:
            terms.append(self.distil.logits.weight * self._logit_distance(model.head, logits, rows, batch))
        if pairs:
            terms.append(self.distil.hidden.weight * self._state_distance(pairs, states, rows, batch))
        if attended:
            terms.append(self.distil.attention.weight * self._attention_distance(attended, taken, rows, batch))
        return sum(terms[1:], terms[0])

    def _logit_distance(self, head, logits: torch.Tensor, rows, batch: Batch) -> torch.Tensor:
        """Return the distance of logits: of all examples, or of all words that have a piece."""
        teacher, entry = self.taught.logits_of(rows, batch), self.distil.logits
        if head.words:
            seen = batch.first_pieces >= 0
            logits, teacher = logits[seen], teacher[seen]
        if head.scores or entry.loss == "mse":
            return squared_error(logits, teacher)
        if head.label_sets:
            logits, teacher = yes_or_no(logits), yes_or_no(teacher)
        return soft_targets(logits, teacher, entry.temperature)

    def _attention_distance(self, attended: list, taken: dict[int, tuple], rows, batch: Batch) -> torch.Tensor:
        """Return the mean distance over the pairs of layers and over what is multiplied with what."""
        entry, distances = self.distil.attention, []
        for own, other in attended:
            student = dict(zip("qkv", (x.transpose(1, 2).flatten(2) for x in taken[own]), strict=True))
            teacher = dict(zip("qkv", self.taught.attention(other, rows, batch), strict=True))
            heads = entry.heads or taken[own][0].shape[1]
            for first, second in entry.of:
                both = [(one[first], one[second]) for one in (student, teacher)]
                distances.append(relation_distance(*both, batch.mask, heads, entry.form))
        return torch.stack(distances).mean()

    def _state_distance(self, pairs: list, states: dict[int, torch.Tensor], rows, batch: Batch) -> torch.Tensor:
        """Return the mean distance over the pairs of boundaries."""
        entry, distances = self.distil.hidden, []
        for own, other in pairs:
            student = self._projected(own, states[own])
            teacher = self.taught.states(other, rows, batch)
            distances.append(state_distance(student, teacher, batch.mask, entry.of, entry.loss, entry.normalise))
        return torch.stack(distances).mean()

    def _projected(self, boundary: int, states: torch.Tensor) -> torch.Tensor:
        """Return the student's states [S, T, d] at a boundary as they are compared."""
        name = SHARED if SHARED in self.projections else str(boundary)
        return self.projections[name](states.float()) if name in self.projections else states
