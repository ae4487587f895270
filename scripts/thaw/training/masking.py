"""Batches for further pretraining: which tokens are hidden, and does the second text follow the first?

Both as Devlin et al. 2019, section 3.1; Xu et al. 2019 post-train with next sentences in addition to masked tokens. A
pair of texts is a pair; a single text is cut in the middle. In every second pair the second text is that of another row
of the batch. S sequences, T tokens of the longest, M chosen tokens of the batch, d width.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from thaw.compute_cost.flops import matrix
from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed
from thaw.encoders.loading import find_next_sentence, find_pooler
from thaw.features.batch import NONE, Batch
from thaw.features.row_sets import batches
from thaw.training.task_model import BatchLoader

MASKED, KEPT = 0.8, 0.1  # of the chosen tokens; the others become random ones (Devlin et al. 2019, section 3.1)


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """A batch in which tokens are hidden: `chosen` [S, T] are predicted, `tokens` [M] are the true ones.

    `places` [M] are the indices of the chosen ones among all S x T.
    """

    chosen: torch.Tensor = NONE
    tokens: torch.Tensor = NONE
    places: torch.Tensor = NONE


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


FOLLOWS, ANOTHER, NEITHER = 0, 1, -100  # the classes of published heads; NEITHER for a text of a single token


@dataclass(frozen=True)
class SpecialTokenIds:
    """The ids of a tokenizer's special tokens."""

    first: int
    between: int
    padding: int

    @classmethod
    def of(cls, tokenizer, folder) -> "SpecialTokenIds":
        """Return those of a tokenizer; one without them is a UserError."""
        ids = cls(tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id)
        if None in (ids.first, ids.between, ids.padding):
            raise UserError(f"{folder}: next_sentence needs a tokenizer with [CLS], [SEP] and [PAD]; leave it out")
        return ids


@dataclass(frozen=True)
class PairedBatch(MaskedBatch):
    """A batch of pairs with tokens hidden; `follows` [S] is FOLLOWS, ANOTHER or NEITHER."""

    follows: torch.Tensor = NONE


def paired(batch: Batch, specials: SpecialTokenIds, random: torch.Generator) -> tuple[Batch, torch.Tensor]:
    """Return a batch of pairs, as long as its longest row at most, and which of the second texts follow [S]."""
    count, longest = batch.mask.shape
    texts = [_texts(ids, of) for ids, of in zip(batch.input_ids, batch.texts, strict=True)]
    swapped = torch.rand(count, generator=random) < 0.5 if count > 1 else torch.zeros(count, dtype=torch.bool)
    others = (torch.arange(count) + torch.randint(1, max(2, count), (count,), generator=random)) % count
    ids, of = torch.full((count, longest), specials.padding), torch.zeros((count, longest), dtype=torch.int8)
    second_text, mask = torch.zeros_like(ids), torch.zeros((count, longest), dtype=torch.bool)
    follows = torch.where(swapped, ANOTHER, FOLLOWS)
    for row, (first, own) in enumerate(texts):
        second = texts[others[row]][1] if swapped[row] else own
        if not len(second) or not len(own):
            follows[row] = NEITHER
        first, second = _cut(first, second, longest - 3)
        tokens = [torch.tensor([id]) for id in (specials.first, specials.between, specials.between)]
        whole = torch.cat([tokens[0], first, tokens[1], second, tokens[2]])
        ids[row, : len(whole)], mask[row, : len(whole)] = whole, True
        of[row, 1 : 1 + len(first)], of[row, 2 + len(first) : len(whole) - 1] = 1, 2
        second_text[row, 2 + len(first) : len(whole)] = 1
    types = None if batch.type_ids is None else second_text
    return replace(batch, input_ids=ids, mask=mask, type_ids=types, texts=of, first_pieces=NONE), follows


def _texts(ids: torch.Tensor, of: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = ids[of == 1], ids[of == 2]
    if len(second):
        return first, second
    middle = (len(first) + 1) // 2
    return first[:middle], first[middle:]


def _cut(first: torch.Tensor, second: torch.Tensor, room: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two texts that have room together: the longer one loses its end, as in google-research/bert."""
    over = len(first) + len(second) - room
    if over <= 0:
        return first, second
    shorter = min(len(first), len(second), room // 2)
    keeps = (shorter, room - shorter) if len(first) <= len(second) else (room - shorter, shorter)
    return first[: keeps[0]], second[: keeps[1]]


class PairedBatchLoader(MaskedBatchLoader):
    """Gives rows of a split as pairs with tokens hidden; each batch draws pairs and masks."""

    def __init__(self, specials: SpecialTokenIds, *of_masks):
        """Keep the special tokens. Args: these; what a MaskedBatchLoader takes."""
        super().__init__(*of_masks)
        self.specials = specials

    def __call__(self, split: str, rows) -> tuple[PairedBatch, dict]:
        batch, follows = paired(self.store.batch(split, rows), self.specials, self.random)
        hidden = masked(batch, self.share, self.vocabulary, self.random)
        values = {field.name: getattr(hidden, field.name) for field in fields(hidden)}
        return PairedBatch(**values, follows=follows).to(self.device), {}


class NextSentence(nn.Module):
    """The pooler and the matrix [2, d] that judges; from the encoder's folder, or new where it lacks them."""

    def __init__(self, folder, width: int):
        """Read or make them; new ones come from torch's generator."""
        super().__init__()
        self.dense, self.judge = nn.Linear(width, width), nn.Linear(width, 2)
        for layer, tensors in ((self.dense, find_pooler(folder)), (self.judge, find_next_sentence(folder))):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
            if len(tensors) == 2:
                layer.load_state_dict(tensors)

    def loss(self, first: torch.Tensor, follows: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy in nats of the first tokens' states [S, d]; 0 where no row is a pair."""
        logits = self.judge(torch.tanh(self.dense(first))).float()
        total = functional.cross_entropy(logits, follows, reduction="sum", ignore_index=NEITHER)
        return total / (follows != NEITHER).sum().clamp(min=1)

    def flops(self, sequences: int) -> float:
        """Return the forward operations on so many sequences."""
        return matrix(self.dense.in_features, self.dense.in_features + 2, sequences)
