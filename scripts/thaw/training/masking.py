"""Masking: which tokens of a batch are hidden, and what stands in their place.

S sequences, T tokens of the longest, M chosen tokens of the batch.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch

from thaw.core.runtime import derive_seed
from thaw.features.batch import Batch
from thaw.features.extract import batches
from thaw.training.task_model import Feed

MASKED, KEPT = 0.8, 0.1  # of the chosen tokens; the others become random ones (Devlin et al. 2019, section 3.1)


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """A batch in which tokens are hidden: `chosen` [S, T] are to be predicted, `tokens` [M] are what stood there.

    `places` [M] are those of the chosen ones among all S x T.
    """

    chosen: torch.Tensor | None = None
    tokens: torch.Tensor | None = None
    places: torch.Tensor | None = None


@dataclass(frozen=True)
class Marks:
    """What masking must know of a tokenizer: the id of its mask, and how many ids there are."""

    mask: int
    count: int


def masked(batch: Batch, share: float, marks: Marks, random: torch.Generator) -> MaskedBatch:
    """Return a batch with a share of each sequence's tokens chosen, at least one, and most of them hidden.

    Special tokens are never chosen. Of the chosen ones 80 % become the mask, 10 % a random id and 10 % stay as they
    are (Devlin et al. 2019, section 3.1 and appendix A.1).
    """
    own, shape = batch.texts > 0, batch.input_ids.shape
    count = (share * own.sum(1, keepdim=True)).round().clamp(min=1)
    places = torch.rand(shape, generator=random).masked_fill(~own, torch.inf).argsort(1).argsort(1)
    chosen = own & (places < count)
    kind, other = torch.rand(shape, generator=random), torch.randint(marks.count, shape, generator=random)
    seen = torch.where(kind < MASKED, marks.mask, torch.where(kind < MASKED + KEPT, batch.input_ids, other))
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    values["input_ids"] = torch.where(chosen, seen, batch.input_ids)
    places = chosen.flatten().nonzero().squeeze(1)
    return MaskedBatch(**values, chosen=chosen, tokens=batch.input_ids.flatten()[places], places=places)


class MaskedFeed(Feed):
    """Gives rows of a split as a batch with tokens hidden; each batch has masks of its own."""

    def __init__(self, store, device: torch.device, share: float, marks: Marks, seed: int, name: str):
        """Draw masks from the stream of a seed and a name, from its beginning."""
        super().__init__(store, [], device)
        self.share, self.marks = share, marks
        self.random = torch.Generator().manual_seed(derive_seed(seed, name))

    def __call__(self, split: str, rows) -> tuple[MaskedBatch, dict]:
        """Return a batch of some rows; nothing is stored of what lies behind a mask."""
        return masked(self.store.batch(split, rows), self.share, self.marks, self.random).to(self.device), {}


@torch.no_grad()
def mean_loss(model, feed: MaskedFeed, split: str, rows: np.ndarray) -> float:
    """Return a model's mean cross-entropy in nats over the chosen tokens of some rows, in eval mode.

    Args: model, whose call gives logits [M, V] and whose `head` the loss; a new feed, so that masks are the same again.
    """
    total, count = 0.0, 0
    model.eval()
    for positions in batches(feed.store.sizes(split)[rows]):
        batch, stored = feed(split, rows[positions])
        total += model.head.loss(model(batch, stored), batch.tokens).item() * len(batch.tokens)
        count += len(batch.tokens)
    return total / max(count, 1)
