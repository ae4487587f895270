"""Masking: which tokens of a batch are hidden, and what replaces them.

S sequences, T tokens of the longest, M chosen tokens of the batch.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch

from thaw.core.runtime import derive_seed
from thaw.features.batch import Batch
from thaw.features.row_sets import batches
from thaw.training.task_model import BatchLoader

MASKED, KEPT = 0.8, 0.1  # of the chosen tokens; the others become random ones (Devlin et al. 2019, section 3.1)


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """A batch in which tokens are hidden: `chosen` [S, T] are predicted, `tokens` [M] are the true ones.

    `places` [M] are the indices of the chosen ones among all S x T.
    """

    chosen: torch.Tensor | None = None
    tokens: torch.Tensor | None = None
    places: torch.Tensor | None = None


@dataclass(frozen=True)
class MaskingVocabulary:
    """The id of a tokenizer's mask token, and the number of its ids."""

    mask: int
    count: int


def masked(batch: Batch, share: float, vocabulary: MaskingVocabulary, random: torch.Generator) -> MaskedBatch:
    """Return a batch with a share of each sequence's tokens chosen, at least one, and most of them hidden.

    Special tokens are never chosen. Of the chosen ones 80 % become the mask, 10 % a random id and 10 % stay as they
    are (Devlin et al. 2019, section 3.1 and appendix A.1).
    """
    in_text, shape = batch.texts > 0, batch.input_ids.shape
    count = (share * in_text.sum(1, keepdim=True)).round().clamp(min=1)
    rank = torch.rand(shape, generator=random).masked_fill(~in_text, torch.inf).argsort(1).argsort(1)
    chosen = in_text & (rank < count)
    kind, other = torch.rand(shape, generator=random), torch.randint(vocabulary.count, shape, generator=random)
    hidden = torch.where(kind < MASKED, vocabulary.mask, torch.where(kind < MASKED + KEPT, batch.input_ids, other))
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    values["input_ids"] = torch.where(chosen, hidden, batch.input_ids)
    places = chosen.flatten().nonzero().squeeze(1)
    return MaskedBatch(**values, chosen=chosen, tokens=batch.input_ids.flatten()[places], places=places)


class MaskedBatchLoader(BatchLoader):
    """Gives rows of a split as a batch with tokens hidden; each batch draws its masks."""

    def __init__(self, store, device: torch.device, share: float, vocabulary: MaskingVocabulary, seed: int, name: str):
        """Draw masks from the start of the stream of a seed and a name."""
        super().__init__(store, [], device)
        self.share, self.vocabulary = share, vocabulary
        self.random = torch.Generator().manual_seed(derive_seed(seed, name))

    def __call__(self, split: str, rows) -> tuple[MaskedBatch, dict]:
        """Return a batch of some rows and no stored states: masked tokens have none."""
        return masked(self.store.batch(split, rows), self.share, self.vocabulary, self.random).to(self.device), {}


@torch.no_grad()
def mean_loss(model, objective, loader: MaskedBatchLoader, split: str, rows: np.ndarray) -> float:
    """Return a model's mean loss in nats over the chosen tokens of some rows, in eval mode.

    Args: model; objective that gives the loss of a batch; a new loader, so that the masks are the same each time.
    """
    total, count = 0.0, 0
    model.eval()
    for positions in batches(loader.store.sizes(split)[rows]):
        batch, stored = loader(split, rows[positions])
        total += objective.loss(model, rows[positions], batch, stored).item() * len(batch.tokens)
        count += len(batch.tokens)
    return total / max(count, 1)
