"""The contrastive phase of SetFit (Tunstall et al. 2022): texts of one label are brought together, others apart.

SetFit draws pairs of texts and compares the cosine with 1 or 0. Here all pairs of a batch are compared, which costs no
more than the batch. B examples of a batch, d width of their vectors.
"""

from thaw.declarations.objective_kinds import ObjectiveKind
from thaw.declarations.task_types import TARGET_OF_TYPE, TEXT_TYPES
from thaw.schema.keys import ConfigModel


class ContrastiveConfig(ConfigModel):
    """All pairs of a batch: the cosine of their vectors is 1 for one label and 0 for two."""


def _in_strategy(phase, strategy) -> str:
    if "head" in phase.train or "all" in phase.train or not phase.train:
        return "trains the encoder alone, as train: [layers]; a later phase trains the head"
    later = strategy.phases[list(strategy.phases).index(phase) + 1 :]
    if not any({"head", "all"} & {part for part in one.train if isinstance(part, str)} for one in later):
        return "brings texts of one label together; let a later phase train the head, as train: [head]"
    return ""


def _on_task(task_type: str) -> str:
    return "" if task_type in TEXT_TYPES and TARGET_OF_TYPE[task_type] == "label" else "compares texts by one label"


OBJECTIVES = {
    "contrastive": ObjectiveKind(
        "thaw.papers.contrastive:make",
        ContrastiveConfig,
        "texts of one label are brought together and those of two are not, before a head is trained (SetFit)",
        in_strategy=_in_strategy,
        on_task=_on_task,
    )
}


import torch
from torch.nn import functional

from thaw.core.errors import UserError
from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
from thaw.training.objectives import Supervised
from thaw.training.task_model import TaskModel, read_states


def pair_loss(vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean over pairs of the squared error of their cosine, a scalar: 1 for one label, 0 for two.

    Both kinds of pairs weigh the same, where there are both. Args: vectors [B, d]; labels [B].
    """
    first, second = torch.triu_indices(len(vectors), len(vectors), offset=1, device=vectors.device)
    same = labels[first] == labels[second]
    errors = (functional.cosine_similarity(vectors[first], vectors[second]) - same.to(vectors.dtype)).square()
    if same.any() and not same.all():
        return (errors[same].mean() + errors[~same].mean()) / 2
    return errors.mean() if len(errors) else vectors.sum() * 0.0


class Contrastive(Supervised):
    """`pair_loss` of what the head's matrix reads."""

    on_vectors = False

    def loss(self, model: TaskModel, rows, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        with torch.autocast(batch.mask.device.type, torch.bfloat16, enabled=model.precision == "bf16"):
            vectors = model.head.vectors(read_states(model.encoder, model.head, batch, stored), batch)
        return pair_loss(vectors.float(), self.targets(model.head, rows, batch))


def make(run, settings: ContrastiveConfig, stage: dict, number: int) -> Contrastive:
    """Return the objective of a stage. Raises UserError for a head that does not end in one matrix."""
    if run.head.words or not isinstance(run.head, VectorHead):
        raise UserError(f"contrastive compares texts by a head that ends in one matrix, not by {run.head.entry.kind}")
    return Contrastive(run.gold)
