"""The constant vectors that a head reads of a frozen encoder, from the pooled states of all layers in the store.

No layer is computed, and no state of a token is read.

N vectors, S sequences, P poolings, K boundaries that are read, d width, D width of the combined layers, F width of a
vector.
"""

import numpy as np
import torch

from thaw.features.batch import pieces, tensors_to_device
from thaw.features.parts import POOLED
from thaw.features.payload import floats
from thaw.features.store import FeatureStore
from thaw.heads.base import Head
from thaw.schema.head import as_list
from thaw.training.head_vectors import VectorReader, Vectors


class StoredReader(VectorReader):
    """Reads the constant vectors of a head from a part of the store: pooled, or words."""

    def __init__(self, part: str, head: Head, device: torch.device):
        """Keep the name of the part, the head and the device."""
        super().__init__(None, head, [], device)
        self.part, self.inner = part, [head.combination.read]
        if not head.words:
            pooling = head.entry.separate_pooling if head.separate_encoding else head.entry.pooling
            self.inner.append([list(POOLED).index(name) for name in as_list(pooling)])

    @torch.no_grad()
    def _read(self, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None) -> Vectors:
        values = torch.cat(
            [self._vectors(*store.vectors(self.part, split, piece, *self.inner)) for piece in pieces(rows)]
        )
        return Vectors(values, None if words is None else store.words_with_token(split, rows))

    def _vectors(self, stored: np.ndarray, dtype: str) -> torch.Tensor:
        """Return the vectors [N, F] of what is stored: [S, K, P, d], or [N, K, d] of words."""
        states = {n: self._states(stored[:, i], dtype) for i, n in enumerate(self.head.combination.read)}
        combined = self.head.combination(states).flatten(1)
        return combined if self.head.words else self.head.of_pooled(combined)

    def _states(self, layer: np.ndarray, dtype: str) -> torch.Tensor:
        """Return the poolings of a layer as if they were tokens, [S, P, d]; one for a word."""
        layer = layer[:, None] if self.head.words else layer
        (states,) = tensors_to_device([floats(np.ascontiguousarray(layer), dtype)], self.device)
        return states
