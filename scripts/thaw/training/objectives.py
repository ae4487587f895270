"""Training objectives: the loss of a batch, as a part of its own.

One more objective is one more class, as `thaw.training.distilled.Distilled`; `TrainingRun.objective_of` chooses.

B examples, W words, N vectors, M runs, n of a batch, C outputs.
"""

from typing import Self

import torch

from thaw.encoders.masked_model import MaskedModel
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import select_rows
from thaw.features.batch import Batch, tensors_to_device
from thaw.heads.base import Head, word_targets
from thaw.heads.start_end import answer_tokens
from thaw.training.distillation_losses import state_distance
from thaw.training.head_vectors import Vectors
from thaw.training.masking import MaskedBatch
from thaw.training.task_model import TaskModel


class Objective:
    """What a model is trained towards.

    With `on_vectors` it also has the last two methods, by which heads train on constant vectors, several as a batch.
    """

    on_vectors = False

    def loss(self, model, rows, batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the mean loss of a batch, a scalar. Args: model; rows of train; their batch; states by boundary."""
        raise NotImplementedError

    def in_stage(self, stage: dict | None, layers: int) -> Self:
        """Compute what trains in a stage and no more; return the same objective. Args: the stage; layers L."""
        return self

    def join(self, model, run) -> None:
        """Put into a model what runs or trains in it for this objective alone; by default nothing.

        Args: the model that trains in a stage; the TrainingRun.
        """

    def at_step(self, step: int, steps: int) -> None:
        """Note how many updates of a phase were made, of how many planned; by default do nothing."""

    def vector_targets(self, rows, vectors: Vectors) -> torch.Tensor:
        """Return the target [N] of each vector of some rows, on the device of the vectors."""
        raise NotImplementedError

    def vector_loss(self, head: Head, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of vectors, of batched heads that of each [M]: logits [M, n, C], targets [M, n]."""
        raise NotImplementedError


class Supervised(Objective):
    """The head's loss against the targets of the task."""

    on_vectors = True

    def __init__(self, gold):
        self.gold = gold

    def loss(self, model: TaskModel, rows, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        return model.head.loss(model(batch, stored), self.targets(model.head, rows, batch))

    def targets(self, head: Head, rows, batch: Batch) -> torch.Tensor:
        """Return the targets of a batch on its device: [B], [B, W] for words, [S, 2] for answers in windows."""
        gold = select_rows(self.gold, rows)
        if head.extracts:
            return tensors_to_device([answer_tokens(gold, batch.host)], batch.mask.device)[0]
        targets = word_targets(gold, batch.host.first_pieces) if head.words else torch.as_tensor(gold)
        return tensors_to_device([targets], batch.mask.device)[0]

    def vector_targets(self, rows, vectors: Vectors) -> torch.Tensor:
        return torch.as_tensor(vectors.gold(select_rows(self.gold, rows)), device=vectors.values.device)

    def vector_loss(self, head: Head, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return head.loss(logits, targets)


class MaskedLanguageModel(Objective):
    """The cross-entropy of masked tokens (Devlin et al. 2019, section 3.1)."""

    def __init__(self, precision: str):
        """Args: "bf16" computes the model under autocast, "fp32" in float32."""
        self.precision = precision

    def loss(self, model: MaskedModel, rows, batch: MaskedBatch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the mean loss in nats of a batch, a scalar; rows and stored states are not read."""
        with torch.autocast(batch.mask.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            logits = model(batch)
        return model.head.loss(logits, batch.tokens)


class MaskedAndTaught(MaskedLanguageModel):
    """The sum of that and of the weighted distance of the last hidden states to a teacher's (Sanh 2019)."""

    def __init__(self, precision: str, teacher: Encoder, weight: float):
        """Args: precision; the whole encoder as it was before, in eval mode; the weight of the distance."""
        super().__init__(precision)
        self.teacher, self.weight = teacher, weight

    def loss(self, model: MaskedModel, rows, batch: MaskedBatch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the mean loss of a batch, a scalar; both read the masked tokens. Rows and stored are not read."""
        masked, top = super().loss(model, rows, batch, stored), self.teacher.layers
        with torch.no_grad():
            states = self.teacher.states(batch, [top])[top]
        return masked + self.weight * state_distance(model.last, states, batch.mask, "tokens", "cosine", False)


class MaskedAndNextSentence(MaskedLanguageModel):
    """The sum of that and of the cross-entropy of next sentences (google-research/bert, run_pretraining.py)."""

    def loss(self, model: MaskedModel, rows, batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        masked = super().loss(model, rows, batch, stored)
        return masked + model.next_sentence.loss(model.first.float(), batch.follows)
