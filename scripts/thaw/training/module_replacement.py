"""The objective of module replacement: the task's own loss, while a student's layers take over from its predecessor's.

Xu et al. 2020 (BERT-of-Theseus): in each batch each module is the student's with probability p, which rises to 1.
"""

import random

import torch

from thaw.core.runtime import derive_seed
from thaw.encoders.replacing import Replacement
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.schema.distillation import ReplaceConfig
from thaw.training.objectives import Supervised
from thaw.training.task_model import TaskModel


def replacing_rate(replace: ReplaceConfig, share: float) -> float:
    """Return the probability that a module is the student's, after a share of the updates."""
    if share >= replace.full:
        return 1.0
    rising = replace.start + (1 - replace.start) * share / replace.full
    return {"rising": rising, "constant": replace.start, "falling": 1 - rising}[replace.way]


class Replacing(Supervised):
    """The head's loss on a model of which some modules are the predecessor's; draws follow from seed and step alone."""

    on_vectors = False

    def __init__(self, gold, replace: ReplaceConfig, seed: int, number: int):
        """Keep the schedule. Args: encoded targets of train; the phase's entry; the run's seed; the phase's number."""
        super().__init__(gold)
        self.replace, self.seed, self.name = replace, seed, f"replace:{number}"
        self.step, self.steps = 0, 1
        self.replacement: Replacement | None = None

    def join(self, model: TaskModel, run) -> None:
        """Load the predecessor, whose modules run in the place of the student's. Args: the model; the TrainingRun."""
        whole = Encoder.load(run.context.encoder_folder)
        whole.put(run.predecessor)
        self.replacement = Replacement(model.encoder, whole, run.context.kept, model.encoder.start or 0, run.device)

    def at_step(self, step: int, steps: int) -> None:
        """Note how many updates were made, of how many planned."""
        self.step, self.steps = step, steps

    def loss(self, model: TaskModel, rows, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        """Draw which modules are the student's, and return the mean loss of a batch, a scalar."""
        self.replacement.now.update(self.draw(list(self.replacement.now)))
        return super().loss(model, rows, batch, stored)

    def draw(self, layers: list[int]) -> dict[int, bool]:
        """Return by layer of the student whether its predecessors run in its place in the update that comes next."""
        draws = random.Random(derive_seed(self.seed, f"{self.name}:{self.step}"))
        rate = replacing_rate(self.replace, self.step / self.steps)
        return {layer: draws.random() >= rate for layer in layers}
