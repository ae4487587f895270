"""What the cached hidden states that runs read have cost: the seconds of the passes of the encoder, by run."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from thaw.compute_cost.flops import encoder_flops
from thaw.compute_cost.model_shape import Shape
from thaw.core import layout
from thaw.core.boundaries import stored_parts_read
from thaw.core.files import read_json
from thaw.declarations.splits import splits_of, stored_split
from thaw.outputs.frame.runs_frame import value

NAMES = ("extraction_seconds", "extraction_whole_seconds", "extraction_flops")


@dataclass(frozen=True)
class Reader:
    """What a run reads of a store: its parts, and by split the number of rows that training and choosing read.

    draw: its draw of the training rows, of which a smaller subset has the first.
    """

    parts: set[int | str]
    rows: dict[str, int]
    draw: int

    @classmethod
    def of(cls, record: dict, splits: dict[str, dict]) -> "Reader":
        """Return what a run reads. Args: its metrics.json; the splits on the card of the store's tokens."""
        spec, train = record["spec"], splits["train"]["examples"]
        subset = spec.get("subset", {})
        rows = {"train": subset.get("rows") or train - subset.get("reserved", 0)}
        validation = splits_of(spec["task"], subset).get("validation", "validation")
        if stored_split(validation, splits) == validation:  # else its rows are some of the subset's
            rows[validation] = record["rows"][validation]
        return cls(set(stored_parts_read(spec["phases"])), rows, subset.get("draw", 1))


def extraction_costs(present: list, results) -> dict[str, dict[str, float]]:
    """Return for each run, by its folder, the cost columns of the cached hidden states that it reads.

    They count the encoder passes that wrote the parts of a store that any listed run reads, for the rows that training
    and choosing read, and for no test rows. The whole: what these passes take for the rows of the run. Its share, of
    seconds and of operations: that of the rows of all listed runs, divided among the runs by the rows that each reads.
    All cards of one pass state its seconds (to the millisecond), so that equal seconds within a store are one pass.
    Args: results of runs, with their folders, weights and stores; the folder of all results.
    """
    results = Path(results)
    costs = {result.folder: dict.fromkeys(NAMES, 0.0) for result in present if result.stores}
    by_store: dict[tuple[str, str], dict[str, dict]] = {}
    for result in (result for result in present if result.stores):
        path = results / result.folder / "metrics.json"
        record = read_json(path)
        for store in set(result.stores.values()) if stored_parts_read(value(record, path, "spec", "phases")) else ():
            by_store.setdefault((store, result.row["weights"]), {})[result.folder] = record
    for (store, weights), records in by_store.items():
        tokens = read_json(results / store / "tokens.json")
        readers = {folder: Reader.of(record, tokens["splits"]) for folder, record in records.items()}
        parts = set().union(*(reader.parts for reader in readers.values()))
        cards = {path: read_json(path) for path in (results / layout.stored_part(store, part) for part in parts)}
        spent = sum({float(seconds) for path, card in cards.items() for seconds in passes(card, path)})
        held = {
            split: max(_held(card, split, facts["examples"]) for card in cards.values())
            for split, facts in tokens["splits"].items()
        }
        by_row, read = spent / sum(held.values()), _all_read(readers.values(), held)
        operations = _operations(results / layout.folder("fetch", {"encoder": weights}), tokens, parts, read)
        own = {folder: sum(_within(reader.rows, held).values()) for folder, reader in readers.items()}
        for folder, rows in own.items():
            share = rows / sum(own.values())
            columns = by_row * sum(read.values()) * share, by_row * rows, operations * share
            for name, cost in zip(NAMES, columns, strict=True):
                costs[folder][name] += cost
    return costs


def passes(card: dict, path) -> list[float]:
    """Return the seconds of each pass that wrote rows of a part, one after the other. Args: its card, and the path."""
    return card.get("passes") or [value(card, path, "seconds")]


def _within(rows: dict[str, int], held: dict[str, int]) -> dict[str, int]:
    return {split: min(count, held[split]) for split, count in rows.items()}


def _all_read(readers: Iterable[Reader], held: dict[str, int]) -> dict[str, int]:
    """Return by split how many rows all runs read together, as far as draws have no row in common."""
    most: dict[tuple[str, int], int] = {}
    for reader in readers:
        for split, count in reader.rows.items():
            place = split, reader.draw if split == "train" else 0
            most[place] = max(most.get(place, 0), count)
    sums: Counter = Counter()
    for (split, _), count in most.items():
        sums[split] += count
    return _within(sums, held)


def _held(card: dict, split: str, count: int) -> int:
    """Return how many rows of a split a part holds. Args: its card, the split, and how many the split has."""
    return card.get("rows", {}).get(split, {"held": count})["held"]


def _operations(encoder: Path, tokens: dict, parts: set[int | str], rows: dict[str, int]) -> float:
    """Return the operations of a pass over some rows of mean length, up to the highest part; NaN without the encoder.

    Args: its folder; the card of tokens; the parts of the store; rows by split.
    """
    config = encoder / "config.json"
    if not config.is_file():
        return float("nan")
    shape, texts = Shape.of(read_json(config)), 2 if tokens.get("apart") else 1
    lengths: Counter[int] = Counter()
    highest = max(part if isinstance(part, int) else shape.layers for part in parts)
    for split, count in rows.items():
        facts = tokens["splits"][split]
        lengths[round(facts["tokens"] / facts["examples"] / texts)] += texts * count
    return encoder_flops(replace(shape, layers=highest), lengths)
