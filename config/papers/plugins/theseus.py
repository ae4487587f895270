"""The objective of module replacement: the task's own loss, while a student's layers take over from its predecessor's.

Xu et al. 2020 (BERT-of-Theseus): in each batch each module is the student's with probability p, which rises to 1.
"""

from typing import Literal

from pydantic import Field

from thaw.declarations.objective_kinds import ObjectiveKind
from thaw.schema.keys import ConfigModel


class ReplaceConfig(ConfigModel):
    """How fast a student's layers take over from those of the run that it starts from (Xu et al. 2020)."""

    start: float = Field(
        0.3, ge=0, le=1, description="probability, at the first update, that a module is the student's"
    )
    full: float = Field(
        0.5, gt=0, le=1, description="share of the phase's updates after which all modules are the student's"
    )
    way: Literal["rising", "constant", "falling"] = Field(
        "rising", description="rising: linearly from start to 1; constant: start until full; falling: 1 - rising"
    )


def _in_strategy(phase, strategy) -> str:
    if not (strategy.student and strategy.after):
        return "needs a student:, and after: the run whose modules it takes over from"
    return ""


def _in_student(kept: list[int], layers: int, components: list[str]) -> str:
    if kept[-1] != layers:
        return (
            f"the student's last layer is {kept[-1]} of {layers}, so that nothing takes over from the layers above it; "
            "say student: keep: spread"
        )
    others = [name for name in components if not name.startswith("layer.")]
    return f"{others[0]} stays as it was in the run of after:; say train: [layers]" if others else ""


OBJECTIVES = {
    "replace": ObjectiveKind(
        "thaw.papers.theseus:make",
        ReplaceConfig,
        "module replacement: a student's layers take over from those of the run named by after:",
        in_strategy=_in_strategy,
        in_student=_in_student,
    )
}


import random
from itertools import pairwise

import torch
from torch import nn

from thaw.core.runtime import derive_seed
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.training.objectives import Supervised
from thaw.training.task_model import TaskModel


class Replacement:
    """The predecessor's layers in the place of each layer that a student keeps.

    Of a student that keeps layers 2 and 4, layers 1 and 2 are in the place of 2, and layers 3 and 4 in that of 4. `now`
    says by layer whether they run in its place; in eval mode they never do.
    """

    def __init__(self, student: Encoder, predecessor: Encoder, kept: list[int], above: int, device: torch.device):
        """Let the predecessor's modules, in eval mode, run in the place of the student's layers above a boundary."""
        every = predecessor.model.get_submodule(predecessor.anatomy.layers)
        layers = student.model.get_submodule(student.anatomy.layers)
        self.now: dict[int, bool] = {}
        for below, layer in pairwise([0, *kept]):
            if layer > above:
                self.now[layer] = False
                predecessors = [every[position].to(device).eval() for position in range(below, layer)]
                self._cover(layers[layer - 1], predecessors, layer)

    def _cover(self, successor: nn.Module, predecessors: list[nn.Module], layer: int) -> None:
        """Make a layer run its predecessors where `now` says so; its parameters keep their names."""
        own = successor.forward

        def forward(*inputs, **named):
            if not (successor.training and self.now[layer]):
                return own(*inputs, **named)
            output = None
            for predecessor in predecessors:
                if output is not None:
                    state = output[0] if isinstance(output, tuple) else output
                    inputs, named = ((state, *inputs[1:]), named) if inputs else ((), named | {"hidden_states": state})
                output = predecessor(*inputs, **named)
            return output

        successor.forward = forward


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


def make(run, settings: ReplaceConfig, stage: dict | None, number: int) -> Replacing:
    """Return the objective of a phase."""
    return Replacing(run.gold, settings, run.spec["seed"], number)
