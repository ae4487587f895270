"""An excerpt of a store: the same corpus and view, in which all rows but a few are empty.

So the states of an adapted encoder take the disk of those rows alone, and are read like those of any store.
"""

from pathlib import Path

import numpy as np

from thaw.core.digests import file_sha256
from thaw.core.files import atomic_write, write_json
from thaw.declarations.splits import stored_split
from thaw.features.store import FeatureStore

ROWS_AT_ONCE = 1000


def write_excerpt(source: FeatureStore, out: Path, wanted: dict[str, np.ndarray], changes: dict) -> FeatureStore:
    """Write tokens.parquet and tokens.json of an excerpt and return it, as yet without states.

    Args: the store of all rows; folder; by split the rows that stay; what its card has in the place of the other's.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    out.mkdir(parents=True, exist_ok=True)
    whole = parquet.ParquetFile(source.folder / "tokens.parquet")
    path, tokens = out / "tokens.parquet", dict.fromkeys(source.splits, 0)
    kept: dict[str, set[int]] = {split: set() for split in source.splits}
    for split, rows in wanted.items():
        kept[stored_split(split, source.splits)] |= set(rows.tolist())
    with atomic_write(path) as temporary, parquet.ParquetWriter(temporary, whole.schema_arrow) as writer:
        for piece in whole.iter_batches(ROWS_AT_ONCE):
            columns = piece.to_pydict()
            for place, (split, row) in enumerate(zip(columns["split"], columns["row"], strict=True)):
                if row not in kept[split]:
                    for name, values in columns.items():
                        empty = {"split": split, "row": row, "second": 0}
                        values[place] = empty.get(name, [])
                tokens[split] += len(columns["input_ids"][place])
            writer.write_table(pyarrow.table(columns, schema=whole.schema_arrow))
    if source.card.get("spelt"):
        with atomic_write(out / "spellings.safetensors") as temporary:
            Path(temporary).write_bytes((source.folder / "spellings.safetensors").read_bytes())
    splits = {
        split: {"examples": facts["examples"], "tokens": tokens[split], "kept": len(kept[split])}
        for split, facts in source.card["splits"].items()
    }
    write_json(out / "tokens.json", source.card | changes | {"splits": splits, "sha256": file_sha256(path)})
    return FeatureStore(out)
