"""A corpus from its source to disk: load, check, carve, mark what train has seen, describe, write."""

import contextlib
import gc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.files import write_json, write_parquet
from thaw.core.phrases import plural
from thaw.core.runtime import log
from thaw.data import carving
from thaw.data.carving import sentences
from thaw.data.checks import Cleaned, clean, is_empty, label_names
from thaw.data.edges import labels_of
from thaw.data.sources import load
from thaw.schema.corpora import GROUPINGS, CorpusConfig

NAMED = 5  # so many row numbers are named where rows repeat


def seen(columns: dict[str, list], names: list[str], train: dict[str, list]) -> list[bool]:
    """Return for each row whether it shares a normalised sentence with train."""
    known = {text for texts in sentences(train, names) for text in texts}
    return [any(text in known for text in texts) for texts in sentences(columns, names)]


def describe(columns: dict[str, list], names: list[str], labels: dict[str, list[str]]) -> dict:
    """Return a split's part of the card.

    Args: columns as written to Parquet, with `row`, and `seen` in all splits but train; names of the text
    columns; labels of each label or tag target. `words` counts the words of both texts of a pair together.
    """
    split = {
        "rows": len(columns["row"]),
        "labels": {column: _count(columns[column], order) for column, order in labels.items()},
        "words": _lengths(columns, names),
        "empty": sum(any(map(is_empty, t)) for t in zip(*(columns[name] for name in names), strict=True)),
        **_repeats(sentences(columns, names), columns["row"]),
    }
    if "seen" in columns:
        rows = [row for row, known in zip(columns["row"], columns["seen"], strict=True) if known]
        split["overlap_train"] = {
            "rows": len(rows),
            "share": len(rows) / split["rows"],
            "first": rows[:NAMED],
        }
    return split


def _count(values: list, order: list[str]) -> dict[str, int]:
    """Count labels, all tags in lists, or all labels of edges, in the labels' order."""
    counts = Counter(tag for value in values for tag in labels_of(value))
    return {label: counts[label] for label in order}


def _lengths(columns: dict[str, list], names: list[str]) -> dict[str, float]:
    rows = zip(*(columns[name] for name in names), strict=True)
    words = [sum(len(text.split() if isinstance(text, str) else text) for text in texts) for texts in rows]
    return {
        "mean": round(float(np.mean(words)), 2),
        "p95": float(np.percentile(words, 95)),
        "max": max(words),
    }


def _repeats(texts: list[list[str]], rows: list[int]) -> dict:
    """Count the rows whose normalised texts all occur in an earlier row of the split, and name the first."""
    known, repeated = set(), []
    for row, key in zip(rows, map(tuple, texts), strict=True):
        if key in known:
            repeated.append(row)
        known.add(key)
    return {"duplicates": len(repeated), "duplicate_rows": repeated[:NAMED]}


@contextlib.contextmanager
def _rows_are_no_garbage():
    """Look for no garbage within a context: rows are many objects without cycles, and it takes a third of the time."""
    looking = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looking:
            gc.enable()


@_rows_are_no_garbage()
def prepare(spec: dict, data_dir: Path, out: Path, copies: Sequence[dict] = ()) -> dict:
    """Prepare one corpus: write `<split>.parquet` for each split and, last, `card.json`; return the card.

    Args: spec with corpus (its id), entry, source, files, version; folder of file sources; folder to write; other
    copies on the Hub, in order.
    Raises UserError for whatever is wrong with the data, before anything is written.
    """
    name, corpus = spec["corpus"], CorpusConfig.model_validate(spec["entry"] | {"copies": copies})
    log(f"reading from {spec['source']}")
    tables, record, source = load(name, corpus, spec["source"], spec["files"], data_dir)
    cleaned = {split: clean(table, corpus, source) for split, table in tables.items()}
    labels = label_names(cleaned, tables, corpus)
    sizes = {split: len(table) for split, table in tables.items()}
    for split, part in cleaned.items():
        if blank := sizes[split] - len(part.rows) - part.left_out:
            log(f"{split}: {plural(blank, 'row')} without a text left out, of {sizes[split]}")
    for split, parts in corpus.join.items():
        _join(name, split, parts, cleaned, sizes)
    splits, carved = _split(name, corpus, cleaned)
    texts = corpus.text_columns
    for split in [s for s in splits if s != "train"]:
        splits[split]["seen"] = seen(splits[split], texts, splits["train"])
    card = {
        "corpus": name,
        "label": name,
        "synthetic": spec["source"] == "synthetic",
        "source": record,
        "digest": digest(spec),
        **({"words": corpus.words} if corpus.words else {"texts": corpus.texts}),
        "targets": corpus.targets,
        "labels": labels,
        "splits": {
            split: {
                **describe(columns, texts, labels),
                **_not_kept(sizes, cleaned, split, corpus),
                "carved_from": "train" if split in carved else None,
            }
            for split, columns in splits.items()
        },
    }
    _write(out, splits, corpus, card)
    return card


def _join(name: str, split: str, parts: list[str], cleaned: dict[str, Cleaned], sizes: dict[str, int]) -> None:
    """Put one split in the place of several, their rows one after the other; rows are counted on."""
    if missing := [part for part in parts if part not in cleaned]:
        raise UserError(
            f"corpora.{name}: join: {split}: there is no split {missing[0]}; there are {', '.join(cleaned)}"
        )
    taken, rows, before = [cleaned.pop(part) for part in parts], [], 0
    columns: dict[str, list] = {}
    for part, one in zip(parts, taken, strict=True):
        rows += [before + row for row in one.rows]
        columns = {key: columns.get(key, []) + values for key, values in one.columns.items()}
        before += sizes[part]
    cleaned[split] = Cleaned(columns, rows, sum(one.left_out for one in taken))
    sizes[split] = before


def _not_kept(sizes: dict[str, int], cleaned: dict[str, Cleaned], split: str, corpus: CorpusConfig) -> dict[str, int]:
    """Count a split's rows that the source has and we have not: empty texts and, under `only`, other labels."""
    part = cleaned.get(split)
    left_out = part.left_out if part else 0
    dropped = sizes[split] - len(part.rows) - left_out if part else 0
    return {"dropped": dropped, **({"left_out": left_out} if corpus.only else {})}


def _split(name: str, corpus: CorpusConfig, cleaned: dict[str, Cleaned]) -> tuple[dict[str, dict], list[str]]:
    """Group each split's rows and carve what the source lacks; return columns by split, and the carved.

    A split that the source has is used as it is, even where the entry would carve one of that name.
    """
    splits = {}
    for split, part in cleaned.items():
        if not part.rows:
            raise UserError(f"corpora.{name}: {split} has no rows left after empty texts and other labels were dropped")
        known = corpus.group_by in (*GROUPINGS, *part.columns)
        groups = carving.group(part.columns, corpus.text_columns, corpus.group_by if known else "row")
        splits[split] = {"row": part.rows, **part.columns, "group": groups.tolist()}
    shares = {split: share for split, share in corpus.carve.items() if split not in splits}
    if not shares:
        return splits, []
    train = splits["train"]
    rows = carving.carve(np.array(train["group"]), _classes(corpus, train), shares, f"corpora.{name}")
    for split, chosen in rows.items():
        splits[split] = {column: [values[i] for i in chosen] for column, values in train.items()}
        log(f"{split} has {len(chosen)} of train's {len(train['row'])} rows after carving")
    return splits, list(shares)


def _classes(corpus: CorpusConfig, columns: dict[str, list]) -> np.ndarray:
    target = next((column for column, kind in corpus.targets.items() if kind == "label"), None)
    if target is None:
        return np.zeros(len(columns["row"]), dtype=np.int64)
    return np.unique(columns[target], return_inverse=True)[1]


def _write(out: Path, splits: dict[str, dict], corpus: CorpusConfig, card: dict) -> None:
    """Write the splits, then the card; an earlier card goes first, so that a card means whole splits."""
    import pandas

    (out / "card.json").unlink(missing_ok=True)
    columns = ["row", *corpus.text_columns, *corpus.targets, *corpus.keep, "group"]
    for split, values in splits.items():
        order = list(dict.fromkeys([*columns, *(["seen"] if "seen" in values else [])]))
        write_parquet(out / f"{split}.parquet", pandas.DataFrame({name: values[name] for name in order}))
    write_json(out / "card.json", card)
