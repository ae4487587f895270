"""The objective of a student: its own loss and distances to what its teacher gave for the same rows.

B examples, W words, S sequences, T tokens, d width.
"""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional

from thaw.adaptation.selectors import boundary
from thaw.core.boundaries import that_train
from thaw.core.runtime import seeded
from thaw.features.batch import Batch
from thaw.schema.distillation import SHARED, AttentionConfig, DistilConfig, HiddenConfig, LogitsConfig
from thaw.training.distillation_losses import relation_distance, soft_targets, state_distance, yes_or_no
from thaw.training.objectives import Supervised
from thaw.training.task_model import TaskModel
from thaw.training.taught import Taught

Pairs = list[tuple[int, int]]  # of the student's boundaries, or layers, with those of the teacher


class Distilled(Supervised):
    """A weighted sum of the head's loss and of the terms of `distil`; a term of weight 0 is not computed."""

    on_vectors = False

    def __init__(self, gold, distil: DistilConfig, taught: Taught, phase: dict, width: int, seed: int, number: int = 1):
        """Keep what is compared.

        Args: encoded targets of all rows of train; the phase's entry; the teacher's outputs; the phase in the spec, for
        its pairs of boundaries and of layers; width of the student's states and the run's seed, for learned
        projections; the phase's number.
        """
        super().__init__(gold)
        self.distil, self.taught, hidden, attention = distil, taught, distil.hidden, distil.attention
        self.pairs: Pairs = phase.get("pairs", []) if hidden and hidden.weight else []
        self.attended: Pairs = phase.get("attended", []) if attention and attention.weight else []
        self.share, self.number = 0.0, number
        self._matched = self.pairs, self.attended
        self.projections = nn.ModuleDict()
        if hidden and hidden.project and self.pairs:
            names = [SHARED] if hidden.project == SHARED else [str(n) for n, _ in self.pairs]
            widths = width, taught.width(self.pairs[0][1])
            with seeded(seed, "projections"):
                self.projections.update({name: nn.Linear(*widths, bias=False) for name in names})

    def in_stage(self, stage: dict | None, layers: int) -> "Distilled":
        """Compare what trains in a stage: below it there are no states in an encoder that is resumed."""
        below = boundary(stage["components"], layers) if stage else None
        self.pairs, self.attended = (that_train(pairs, below) for pairs in self._matched)
        return self

    def join(self, model: TaskModel, run) -> None:
        if self.projections:
            model.projections = self.projections.to(run.device)

    def at_step(self, step: int, steps: int) -> None:
        """Note which share of the planned updates was made: layers take turns by it; a teacher's dropout too."""
        self.share = step / steps
        self.taught.at_step(self.number, step)

    def now(self) -> tuple[Pairs, Pairs]:
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
        pairs, attended = (
            [pair for pair in pairs if level[pair[0]] in active] for pairs in (self.pairs, self.attended)
        )
        return pairs, attended

    def loss(self, model: TaskModel, rows, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        pairs, attended = self.now()
        matched = [n for n, _ in pairs], [n for n, _ in attended]
        logits, states, taken = model.with_states(batch, stored, *matched)
        distil, terms = self.distil, []
        labels = distil.hard * (self.share if distil.anneal else 1.0)
        if distil.logits and distil.logits.weight:
            terms.append(distil.logits.weight * self._of_logits(distil.logits, model.head, logits, rows, batch))
        if distil.hidden and pairs:
            terms.append(distil.hidden.weight * _mean(self._of_states(distil.hidden, pairs, states, rows, batch)))
        if distil.attention and attended:
            distances = self._of_attention(distil.attention, attended, taken, rows, batch)
            terms.append(distil.attention.weight * _mean(distances))
        if distil.anneal:
            terms = [(1 - self.share) * term for term in terms]
        if labels:
            hard = model.head.loss(logits, self.targets(model.head, rows, batch))
            terms.insert(0, hard if labels == 1 else labels * hard)
        return sum(terms[1:], terms[0])

    def _of_logits(self, entry: LogitsConfig, head, logits: torch.Tensor, rows, batch: Batch) -> torch.Tensor:
        teacher = self.taught.logits_of(rows, batch)
        if head.words:
            seen = batch.first_pieces >= 0
            logits, teacher = logits[seen], teacher[seen]
        if head.scores or entry.loss == "mse":
            return functional.mse_loss(logits.float(), teacher.float())
        if head.label_sets:
            logits, teacher = yes_or_no(logits), yes_or_no(teacher)
        return soft_targets(logits, teacher, entry.temperature)

    def _of_states(
        self, entry: HiddenConfig, pairs: Pairs, states: dict[int, torch.Tensor], rows, batch: Batch
    ) -> Iterator[torch.Tensor]:
        for own, other in pairs:
            student, name = states[own], SHARED if SHARED in self.projections else str(own)
            if name in self.projections:
                student = self.projections[name](student.float())
            teacher = self.taught.states(other, rows, batch)
            yield state_distance(student, teacher, batch.mask, entry.of, entry.loss, entry.normalise)

    def _of_attention(
        self, entry: AttentionConfig, pairs: Pairs, taken: dict[int, tuple], rows, batch: Batch
    ) -> Iterator[torch.Tensor]:
        for own, other in pairs:
            student = dict(zip("qkv", (x.transpose(1, 2).flatten(2) for x in taken[own]), strict=True))
            teacher = dict(zip("qkv", self.taught.attention(other, rows, batch), strict=True))
            heads = entry.heads or taken[own][0].shape[1]
            for first, second in entry.of:
                ours, theirs = (student[first], student[second]), (teacher[first], teacher[second])
                yield relation_distance(ours, theirs, batch.mask, heads, entry.form)


def _mean(distances: Iterator[torch.Tensor]) -> torch.Tensor:
    return torch.stack(list(distances)).mean()
