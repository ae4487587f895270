"""Reading tokens.parquet (see `thaw.features.tokens`): the lists of a split, flat with offsets."""

from pathlib import Path

import numpy as np

from thaw.features.sequences import Ragged, Sequences


def read_tokens(path: Path, split: str) -> dict[str, Ragged]:
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

    def ragged(name: str, kind=Ragged, *more) -> Ragged:
        lists = pieces(name)
        lengths = joined([compute.list_value_length(piece) for piece in lists])
        return kind(joined([piece.flatten() for piece in lists]), lengths, *more)

    names, each = file.schema_arrow.names, None
    if "windows" in names:
        each = ragged("windows")
    if "second" in names:
        tokens, seconds = ragged("input_ids").lengths, joined(pieces("second"))
        each = Ragged(np.stack([seconds, tokens - seconds], 1).ravel(), np.full(len(tokens), 2))
    columns = {"first_pieces": ragged("first_pieces")}
    by_token = [name for name in ("input_ids", "type_ids", "texts", "starts", "ends") if name in names]
    columns |= {name: ragged(name, Sequences, each) for name in by_token if name != "type_ids"}
    types = ragged("type_ids")  # a tokenizer that gives none leaves all lists empty
    return columns | {"type_ids": Sequences(types.flat, types.lengths, each if types.lengths.any() else None)}


def _may_hold(group, split: str) -> bool:
    """Tell from the statistics of a row group, where it has any, whether it can hold rows of a split."""
    columns = [group.column(place) for place in range(group.num_columns)]
    known = next(column for column in columns if column.path_in_schema == "split").statistics
    return known is None or not known.has_min_max or known.min <= split <= known.max
