"""Lists of different lengths, flat with offsets: the token ids of a split by sequence, and the words of its rows.

B examples, N rows of a split, S sequences (B, 2B, or of windows over contexts any number from B).
"""

from functools import cached_property

import numpy as np
import torch


class Ragged:
    """Lists of numbers of different lengths: one flat array and N + 1 offsets into it."""

    def __init__(self, flat: np.ndarray, lengths: np.ndarray):
        self.flat = flat
        self.lengths = lengths.astype(np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])

    def places(self, rows: np.ndarray, least: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return for some rows the places of their values in the flat array, [B, longest], and which are real.

        Args: least, the number of columns where the longest row is shorter.
        """
        lengths = self.lengths[rows]
        columns = np.arange(lengths.max(initial=least))
        real = columns < lengths[:, None]
        return np.where(real, self.offsets[rows][:, None] + columns, 0), real

    def padded(self, rows: np.ndarray, fill: int, least: int = 0) -> torch.Tensor:
        """Return some rows as int64 [B, longest], padded with `fill`. Args: least, as of `places`."""
        places, real = self.places(rows, least)
        values = self.flat[places] if len(self.flat) else np.zeros(places.shape)
        return torch.from_numpy(np.where(real, values, fill).astype(np.int64))


class Sequences(Ragged):
    """The token ids of a split by sequence: one a row, or several next to each other.

    They are two for pairs that are read separately, and the windows over a context, one or more.
    """

    def __init__(self, flat: np.ndarray, lengths: np.ndarray, each: Ragged | None = None):
        """Take all ids, the tokens of each row, and where rows have several sequences the tokens of each of these."""
        self.rows = lengths.astype(np.int64)
        self.counts = np.ones(len(lengths), np.int64) if each is None else each.lengths
        self._firsts = np.cumsum(self.counts) - self.counts
        super().__init__(flat, lengths if each is None else each.flat)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return the sequences [S] of some rows [B]."""
        rows = np.asarray(rows)
        counts = self.counts[rows]
        before = np.cumsum(counts) - counts
        return np.arange(counts.sum()) + np.repeat(self._firsts[rows] - before, counts)

    @cached_property
    def longest(self) -> np.ndarray:
        """Return the tokens of the longest sequence of each row, int64 [N]; 0 where it has none."""
        longest = np.zeros(len(self.rows), np.int64)
        np.maximum.at(longest, np.repeat(np.arange(len(self.rows)), self.counts), self.lengths)
        return longest

    @property
    def sizes(self) -> np.ndarray:
        """Return what each row takes in a batch where its longest sequence sets the padding, int64 [N]."""
        return self.longest * self.counts
