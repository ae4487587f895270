"""The parts of a store: the hidden states of one boundary, or vectors of all layers, made in one pass of the encoder.

    <n>      boundary n: the state of each token, [tokens, d]
    pooled   mean, maximum and first token of each sequence at each boundary, [sequences, L + 1, 3, d]
    attention<n>   queries, keys and values of each token in layer n, [tokens, 3 d]
    words    the state of each word's first piece at each boundary, [words that have a token, L + 1, d]

The vectors are computed from the states of the extraction's batch before these are rounded, and stored in the dtype of
the store.

S sequences, T tokens of the longest, W words of the longest, n places, L layers, d width.
"""

import numpy as np
import torch

from thaw.core.boundaries import ATTENTION
from thaw.encoders import token_pooling
from thaw.features.batch import tensors_to_device

# in the order of the file
POOLED = {"mean": token_pooling.mean, "max": token_pooling.maximum, "first": token_pooling.first_token}


class Part:
    """A part of a store. `reads` are the boundaries that it is made of."""

    def __init__(self, reads: list[int]):
        self.reads = reads

    def shape(self, store, split: str, width: int) -> tuple[int, ...]:
        """Return the shape of a split: positions, and what one holds."""
        raise NotImplementedError

    def places(self, store, split: str, rows) -> np.ndarray:
        """Return the positions [n] of some rows, row after row."""
        raise NotImplementedError

    def values(self, states: dict, batch) -> torch.Tensor:
        """Return what is stored at these positions, of the states [S, T, d] by boundary of a batch, on their device."""
        raise NotImplementedError


class TokenStates(Part):
    """The states of one boundary."""

    def shape(self, store, split: str, width: int) -> tuple[int, ...]:
        return store.tokens(split), width

    def places(self, store, split: str, rows) -> np.ndarray:
        return store.places(split, rows)

    def values(self, states: dict, batch) -> torch.Tensor:
        (boundary,) = self.reads
        return states[boundary][batch.mask]


class AttentionInputs(TokenStates):
    """Queries, keys and values of one layer, as its attention multiplies them."""

    def __init__(self, layer: int):
        super().__init__([layer])
        self.layer = layer

    def shape(self, store, split: str, width: int) -> tuple[int, ...]:
        return store.tokens(split), 3 * width

    def values(self, states: dict, batch) -> torch.Tensor:
        """Return queries, keys and values side by side [tokens, 3 d] of a batch."""
        rows = [x.transpose(1, 2).flatten(2) for x in states[ATTENTION + str(self.layer)]]
        return torch.cat(rows, -1)[batch.mask]


class PooledSequences(Part):
    """Pooled vectors of all layers."""

    def shape(self, store, split: str, width: int) -> tuple[int, ...]:
        return len(store.sequences(split, np.arange(len(store.lengths(split))))), len(self.reads), len(POOLED), width

    def places(self, store, split: str, rows) -> np.ndarray:
        """Return the positions [S] of the sequences of some rows."""
        return store.sequence_places(split, rows)

    def values(self, states: dict, batch) -> torch.Tensor:
        """Return the vectors [S, L + 1, 3, d] of a batch."""
        each = [[pool(states[n], batch.mask) for pool in POOLED.values()] for n in self.reads]
        return torch.stack([torch.stack(pooled, 1) for pooled in each], 1)


class WordStates(Part):
    """The states of words in all layers."""

    def shape(self, store, split: str, width: int) -> tuple[int, ...]:
        return int(store.has_word(split)[0].sum()), len(self.reads), width

    def places(self, store, split: str, rows) -> np.ndarray:
        """Return the positions of the words of some rows that have a token, row after row."""
        has, lengths = store.has_word(split)
        starts, before = np.cumsum(lengths) - lengths, np.cumsum(has) - 1
        seen = zip(starts[rows], store.words_with_token(split, rows), strict=True)
        return before[np.concatenate([start + np.flatnonzero(has_token) for start, has_token in seen])]

    def values(self, states: dict, batch) -> torch.Tensor:
        """Return the states [words that have a token, L + 1, d] of a batch."""
        row, word = (batch.host.first_pieces >= 0).nonzero(as_tuple=True)
        place = tensors_to_device([row, batch.host.first_pieces[row, word]], batch.mask.device)
        return torch.stack([states[n][place[0], place[1]] for n in self.reads], 1)


VECTOR_PARTS = {"pooled": PooledSequences, "words": WordStates}


def part_of(part: int | str, layers: int | None) -> Part:
    """Return a part of a store. Args: the number of a boundary, or the name of a part; the encoder's layers."""
    if isinstance(part, int):
        return TokenStates([part])
    if part.startswith(ATTENTION):
        return AttentionInputs(int(part.removeprefix(ATTENTION)))
    assert layers is not None  # the card of such a part states them
    return VECTOR_PARTS[part](list(range(layers + 1)))
