"""Lists of different lengths, flat with offsets: the token ids of a split by sequence, and the words of its rows.

B examples, N rows of a split, S sequences (B or 2B).
"""

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
    """The token ids of a split by sequence: one a row, or two next to each other for pairs that are read separately."""

    def __init__(self, flat: np.ndarray, lengths: np.ndarray, seconds: np.ndarray | None = None):
        """Take all ids, the tokens of each row, and for pairs that are read separately where the second text begins."""
        self.each = 1 if seconds is None else 2
        self.rows = lengths.astype(np.int64)
        super().__init__(flat, lengths if seconds is None else np.stack([seconds, lengths - seconds], 1).ravel())

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return the sequences [S] of some rows [B]."""
        return (np.asarray(rows)[:, None] * self.each + np.arange(self.each)).ravel()

    @property
    def sizes(self) -> np.ndarray:
        """Return what each row takes in a batch where its longest sequence sets the padding, int64 [N]."""
        return self.lengths.reshape(-1, self.each).max(1, initial=0) * self.each
