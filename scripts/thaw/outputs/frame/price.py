"""The one price of a run, which tables, figures and the decision read: what training and choosing took, in seconds.

It counts the training, the runs that it starts from, its share of the search that chose its settings, and its share of
the encoder's passes over the rows that training and choosing read. Test rows are never among them. Seconds are those of
the processor on a CPU, those by the clock on a device, and those by the clock where a run did not note the processor's.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from thaw.compute_cost.flops import Shape, encoder_flops
from thaw.core import layout
from thaw.core.boundaries import stored_parts_read
from thaw.core.files import read_json
from thaw.declarations.splits import splits_of, stored_split
from thaw.outputs.frame.runs_frame import value

FITTED = "lbfgs"  # the optimizer of heads that are fitted to convergence
LEAST = 0.5  # share of a run's seconds in which a processor worked for it: about 1 on idle cores, more with threads
SHORT = 5.0  # seconds below which starting and reading are most of a run


class Spent(NamedTuple):
    """Seconds as above, and floating-point operations."""

    seconds: float
    flops: float


def of_training(record: dict, path) -> Spent:
    """Return what a training took. Args: its cost.json, and the path.

    Older runs noted the processor's seconds of loading, training and evaluating together: training has its share by the
    clock.
    """
    seconds, worked = value(record, path, "seconds", "train"), record.get("processor_seconds")
    if worked is not None and value(record, path, "hardware", "device") == "cpu":
        clock = sum(spent for part, spent in record["seconds"].items() if part != "total")
        seconds = record.get("processor_train_seconds", seconds * worked / clock if clock else seconds)
    return Spent(float(seconds), float(value(record, path, "flops")))


def searches_of(needs) -> dict[str, object]:
    """Return the searches that a run needs, by folder. Args: needs, as `CollectedResult` has them."""
    return {need.folder: need for need in needs if need.role == "settings"}


def search_costs(needs, results, readers: Counter) -> tuple[float, Spent] | None:
    """Return a run's share of all trials of the searches that it needs, by the clock, and as its price has it.

    None where a search or a trial has left no record of its cost. Args: needs, as `CollectedResult` has
    them; the results folder; how many runs need each search, by its folder.
    """
    clock, seconds, flops = 0.0, 0.0, 0.0
    for folder, need in searches_of(needs).items():
        for path in _costs(need, Path(results)):
            if not path.is_file():
                return None
            record = read_json(path)
            spent = of_training(record, path)
            clock += record["seconds"]["train"] / readers[folder]
            seconds, flops = seconds + spent.seconds / readers[folder], flops + spent.flops / readers[folder]
    return clock, Spent(seconds, flops)


def _costs(need, results: Path) -> list[Path]:
    """Return the cost.json of a search: of the one job that trains all trials, or of each run that is a trial."""
    folder = results / need.folder
    if need.step == "search_heads" or not (folder / "chosen.json").is_file():
        return [folder / "cost.json"]
    trials = [
        need.names | {"variant": layout.of_trial(need.names["variant"], number), "seed": seed}
        for number, trial in enumerate(read_json(folder / "chosen.json")["trials"], 1)
        for seed in trial["seeds"]
    ]
    return [results / layout.folder("train", names) / "cost.json" for names in trials]


def extraction_rate(runs) -> float:
    """Return the operations per second of the encoder's passes by the clock; NaN without any, or on a busy machine."""
    once = runs.drop_duplicates("folder").dropna(subset=["extraction_flops", "extraction_seconds"])
    spent = once["extraction_seconds"].sum()
    return once["extraction_flops"].sum() / spent if spent and not waiting(runs) else float("nan")


def waiting(runs) -> tuple[int, int] | None:
    """Return how many runs on the CPU waited for half of their seconds or more, and of how many; None without any.

    Short runs and those that did not note the processor's seconds are not judged.
    """
    noted = runs[(runs["device"] == "cpu") & runs["processor_seconds"].notna() & (runs["total_seconds"] >= SHORT)]
    noted = noted.drop_duplicates("folder")
    waited = int((noted["processor_seconds"] < LEAST * noted["total_seconds"]).sum())
    return (waited, len(noted)) if waited else None


def note(runs) -> list[str]:
    """Return the sentence about prices on a machine that was busy; none where it was not."""
    waited = waiting(runs)
    if not waited:
        return []
    return [
        f"The machine was busy: in {waited[0]} of {waited[1]} runs the processor worked for less than half of the "
        "seconds. Prices count its work, and not the seconds by the clock."
    ]


NAMES = ("extraction_seconds", "extraction_price_seconds", "extraction_whole_seconds", "extraction_flops")


@dataclass(frozen=True)
class Reader:
    """What a run reads of a store: its parts, and by split the number of rows that training and choosing read.

    draw: its draw of the training rows, of which a smaller subset has the first.
    """

    parts: set[int | str]
    rows: dict[str, int]
    draw: int

    @classmethod
    def of(cls, record: dict, splits: dict[str, dict], results: Path) -> "Reader":
        """Return what a run reads. Args: its metrics.json; splits on the card of the store's tokens; all results."""
        spec, train = record["spec"], splits["train"]["examples"]
        subset = spec.get("subset", {})
        rows = {"train": drawn_rows(subset, spec["task"], results) or train - subset.get("reserved", 0)}
        validation = splits_of(spec["task"], subset).get("validation", "validation")
        if stored_split(validation, splits) == validation:  # else its rows are some of the subset's
            rows[validation] = record["rows"][validation]
        return cls(set(stored_parts_read(spec["phases"])), rows, subset.get("draw", 1))


def drawn_rows(subset: dict, task: dict, results: Path) -> int | None:
    """Return how many rows of train a subset takes, None for all. Args: it and a task, as a spec has them; results."""
    if not subset.get("per_label"):
        return subset.get("rows")
    card = read_json(results / layout.file("prepare", {"corpus": task["corpus"]}))
    return subset["per_label"] * len(card["labels"][task["target"]])


def extraction_costs(present: list, results) -> dict[str, dict[str, float]]:
    """Return for each run, by its folder, the cost columns of the cached hidden states that it reads.

    They count the encoder passes that wrote the parts of a store that any listed run reads, for the rows that training
    and choosing read, and for no test rows. The whole: what these passes take for the rows of the run. Its share, of
    seconds by the clock and as a price has them, and of operations: that of the rows of all listed runs, divided among
    the runs by the rows that each reads.
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
        readers = {folder: Reader.of(record, tokens["splits"], results) for folder, record in records.items()}
        parts = set().union(*(reader.parts for reader in readers.values()))
        cards = {path: read_json(path) for path in (results / layout.stored_part(store, part) for part in parts)}
        once = {seconds for path, card in cards.items() for seconds in passes(card, path)}
        spent, worked = sum(clock for clock, _ in once), sum(counted for _, counted in once)
        held = {
            split: max(card.get("rows", {}).get(split, {"held": facts["examples"]})["held"] for card in cards.values())
            for split, facts in tokens["splits"].items()
        }
        by_row, read = spent / sum(held.values()), _all_read(readers.values(), held)
        operations = _operations(results / layout.folder("fetch", {"encoder": weights}), tokens, parts, read)
        own = {folder: sum(_within(reader.rows, held).values()) for folder, reader in readers.items()}
        for folder, rows in own.items():
            share = rows / sum(own.values())
            mine = by_row * sum(read.values()) * share
            columns = mine, mine * (worked / spent if spent else 1.0), by_row * rows, operations * share
            for name, cost in zip(NAMES, columns, strict=True):
                costs[folder][name] += cost
    return costs


def passes(card: dict, path) -> list[tuple[float, float]]:
    """Return the seconds of each pass that wrote rows of a part, by the clock and as a price has them.

    Older cards have those by the clock alone. Args: its card, and the path.
    """
    known = card.get("passes") or [value(card, path, "seconds")]
    return [(one[0], one[1]) if isinstance(one, list) else (one, one) for one in known]


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
