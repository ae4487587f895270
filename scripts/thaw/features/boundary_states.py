"""The hidden states of one boundary and split, as a store gives them.

S sequences, T tokens of the longest, n places, d width.
"""

from collections.abc import Callable

import numpy as np
import torch

from thaw.features.batch import Batch
from thaw.features.payload import Payload, floats
from thaw.features.sequences import Sequences


class Boundary:
    """The hidden states of one boundary and split."""

    def __init__(self, payload: Payload, split: str, tokens: Sequences, check: Callable):
        self._payload, self._split = payload, split
        self._tokens, self._check = tokens, check

    @property
    def flat(self) -> np.ndarray:
        """Return all states [tokens, d], memory-mapped, zero in rows that are not held; bf16 as its 16 bits."""
        return self._payload.tensors[self._split]

    def at(self, places: np.ndarray) -> torch.Tensor:
        """Return the states at some places [n] of the payload, float32 [n, d]."""
        self._check(np.searchsorted(np.cumsum(self._tokens.rows), places, "right"))
        return floats(self._payload.take(self._split, places), self._payload.dtype)

    def gather(self, rows, batch: Batch) -> torch.Tensor:
        """Return the states of some rows, float32 [S, T, d], zero where the batch is padded."""
        self._check(rows)
        places, real = self._tokens.places(self._tokens.of(rows))
        if tuple(batch.mask.shape) != places.shape:
            raise ValueError(f"a batch of shape {tuple(batch.mask.shape)} for rows of shape {places.shape}")
        states = self._payload.take_again(self._split, places.ravel())
        if not real.all():
            states[~real.ravel()] = 0
        return floats(states, self._payload.dtype).view(*places.shape, -1)
