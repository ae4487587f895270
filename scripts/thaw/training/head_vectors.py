"""The constant vectors that a head reads of a frozen encoder, one a text, or one a word that has a token.

N vectors, d width of what the encoder gives, F width of a vector, B examples, S sequences, T tokens, W words.
"""

from dataclasses import dataclass

import numpy as np
import torch

from thaw.core.runtime import progress
from thaw.encoders.transformers import Encoder
from thaw.evaluation.metrics import NO_TAG
from thaw.evaluation.result_files import Predictions
from thaw.features.batch import pieces, tensors_to_device
from thaw.features.parts import POOLED
from thaw.features.payload import floats
from thaw.features.row_sets import batches
from thaw.features.store import FeatureStore
from thaw.heads.linear import LinearHead
from thaw.schema.head import as_list
from thaw.training.task_model import BatchLoader, read_states


@dataclass
class Vectors:
    """The vectors [N, F] of some rows, and by row which of its words have one (None for texts)."""

    values: torch.Tensor
    seen: list[np.ndarray] | None

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """Return the indices [n] of the vectors of some of these rows, row after row."""
        if self.seen is None:
            return rows
        ends = np.cumsum([seen.sum() for seen in self.seen])
        return np.concatenate([np.arange(ends[row] - self.seen[row].sum(), ends[row]) for row in rows])

    def of(self, rows: np.ndarray) -> "Vectors":
        return Vectors(
            self.values[self.positions(rows)], None if self.seen is None else [self.seen[row] for row in rows]
        )

    def followed_by(self, other: "Vectors") -> "Vectors":
        """Return these vectors and then others, of further rows."""
        seen = None if self.seen is None or other.seen is None else [*self.seen, *other.seen]
        return Vectors(torch.cat([self.values, other.values]), seen)

    def gold(self, targets) -> np.ndarray:
        """Return the target of each vector, from the encoded targets of the rows."""
        if self.seen is None:
            return np.asarray(targets)
        return np.concatenate([np.asarray(tags)[seen] for tags, seen in zip(targets, self.seen, strict=True)])

    def to_predictions(self, rows, logits: torch.Tensor, target: str) -> Predictions:
        """Return the predictions of logits [N, C], or scores [N], for the rows; a word without a token has none.

        Args: kind of the target, as `Head.target`.
        """
        if target == "score":
            return Predictions(rows, logits.cpu().numpy())
        if target == "label_set":
            return Predictions(rows, logits.sigmoid().cpu().numpy())
        best = logits.argmax(1).cpu().numpy()
        if self.seen is None:
            return Predictions(rows, best, logits.softmax(1).cpu().numpy())
        values, start = [], 0
        for seen in self.seen:
            tags = np.full(len(seen), NO_TAG)
            tags[seen] = best[start : start + seen.sum()]
            values.append(tags.tolist())
            start += seen.sum()
        return Predictions(rows, values)


class VectorReader:
    """Reads the constant vectors of a head: from stored states, or through the layers above them."""

    def __init__(
        self, encoder: Encoder | None, head: LinearHead, boundaries: list[int], device: torch.device, known=None
    ):
        """Keep the frozen encoder (None where all is stored), the head, the stored boundaries and the device.

        `known` holds the vectors that were read already, by folder of the store, split and rows.
        """
        self.encoder = encoder and encoder.eval()
        self.head, self.boundaries, self.device = head.eval(), boundaries, device
        self.known: dict[tuple, Vectors] = {} if known is None else known

    def __call__(self, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None) -> Vectors:
        """Return the vectors of some rows, in their order; `words` are their word counts, None for texts."""
        # a task and its transfer set may be of one dataset, and score other rows of a split
        place = store.folder, split, rows.tobytes()
        if place not in self.known:
            self.known[place] = self._read(store, split, rows, words)
        return self.known[place]

    @torch.no_grad()
    def _read(self, store: FeatureStore, split: str, rows: np.ndarray, words: list[int] | None) -> Vectors:
        loader = BatchLoader(store, self.boundaries, self.device)
        vectors: list = [None] * len(rows)
        seen: list = [None] * len(rows)
        for positions in progress(batches(store.sizes(split)[rows]), f"vectors of {split}"):
            batch, stored = loader(split, rows[positions])
            read = self.head.vectors(read_states(self.encoder, self.head, batch, stored), batch)
            parts = read.split(1)
            if words is not None:
                has_token = batch.host.first_pieces >= 0
                (word_positions,) = tensors_to_device([has_token.flatten().nonzero().squeeze(1)], read.device)
                parts = read.flatten(0, 1)[word_positions].split(has_token.sum(1).tolist())
            for i, position in enumerate(positions):
                vectors[position] = parts[i]
                if words is not None:
                    seen[position] = has_token[i, : words[position]].numpy()
        return Vectors(torch.cat(vectors), None if words is None else seen)


class StoredReader(VectorReader):
    """Reads the constant vectors of a head from a part of the store: pooled, or words."""

    def __init__(self, part: str, head: LinearHead, device: torch.device):
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
