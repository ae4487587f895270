"""Lists of different lengths, flat with offsets: the token ids of a split by sequence, and the words of its rows.

B examples, N rows of a split, S sequences (B, 2B, or of windows over contexts any number from B).
"""

from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from thaw.core.errors import wrap_corruption
from thaw.core.files import atomic_write


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


def write_spellings(folder: Path, table: np.ndarray) -> None:
    """Write how each token of a corpus is spelt, int32 [V, C], for an encoder that reads tokens in pieces."""
    from safetensors.numpy import save_file

    with atomic_write(folder / "spellings.safetensors") as temporary:
        save_file({"spellings": table}, temporary)


def read_spellings(folder: Path) -> torch.Tensor:
    """Return what `write_spellings` wrote, int64 [V, C]."""
    from safetensors.torch import load_file

    path = folder / "spellings.safetensors"
    with wrap_corruption(path, f"{folder}/tokens.json"):
        return load_file(path)["spellings"].long()


def read_tokens(path: Path, split: str) -> tuple[dict[str, Sequences], Ragged]:
    """Return the list columns of a split of tokens.parquet, read one by one and piece by piece."""
    import pyarrow.compute as compute
    import pyarrow.parquet as parquet

    file = parquet.ParquetFile(path)
    groups = [g for g in range(file.num_row_groups) if _may_hold(file.metadata.row_group(g), split)]

    def pieces(name: str) -> list:
        read = file.iter_batches(row_groups=groups, columns=["split", name])
        return [piece.filter(compute.equal(piece.column("split"), split)).column(name) for piece in read]

    def joined(arrays: list) -> np.ndarray:
        return np.concatenate([array.to_numpy(zero_copy_only=False) for array in arrays] or [np.empty(0, np.int64)])

    def ragged(name: str) -> Ragged:
        lists = pieces(name)
        lengths = joined([compute.list_value_length(piece) for piece in lists])
        return Ragged(joined([piece.flatten() for piece in lists]), lengths)

    def sequences(name: str, each: Ragged | None) -> Sequences:
        one = ragged(name)
        return Sequences(one.flat, one.lengths, each)

    names, each = file.schema_arrow.names, None
    if "windows" in names:
        each = ragged("windows")
    if "second" in names:
        tokens, seconds = ragged("input_ids").lengths, joined(pieces("second"))
        each = Ragged(np.stack([seconds, tokens - seconds], 1).ravel(), np.full(len(tokens), 2))
    columns = {name: sequences(name, each) for name in ("input_ids", "texts", "starts", "ends") if name in names}
    types = ragged("type_ids")  # a tokenizer that gives none leaves all lists empty
    columns["type_ids"] = Sequences(types.flat, types.lengths, each if types.lengths.any() else None)
    return columns, ragged("first_pieces")


def _may_hold(group, split: str) -> bool:
    """Tell from the statistics of a row group, where it has any, whether it can hold rows of a split."""
    columns = [group.column(place) for place in range(group.num_columns)]
    known = next(column for column in columns if column.path_in_schema == "split").statistics
    return known is None or not known.has_min_max or known.min <= split <= known.max
