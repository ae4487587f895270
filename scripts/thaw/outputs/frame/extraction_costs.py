"""What the cached hidden states that runs read have cost: the seconds of the passes of the encoder, by run."""

from pathlib import Path

from thaw.core import layout
from thaw.core.boundaries import stored_parts_read
from thaw.core.files import read_json
from thaw.outputs.frame.record_values import value

NAMES = ("extraction_seconds", "extraction_whole_seconds")


def extraction_seconds(present: list, results) -> dict[str, dict[str, float]]:
    """Return for each run, by its folder, both cost columns of the cached hidden states that it reads.

    They count the encoder passes that wrote the parts of a store that any listed run reads. The whole: what these
    passes take for the rows that the run reads. Its share: the passes divided among all listed runs that read the
    store, by the rows that each reads. All cards of one pass state its seconds (to the millisecond), so that equal
    seconds within a store are one pass. Args: results of runs, with their folders and stores; the folder of all
    results.
    """
    costs = {result.folder: dict.fromkeys(NAMES, 0.0) for result in present if result.stores}
    readers: dict[str, dict[str, tuple[set[int | str], dict]]] = {}
    for result in present:
        path = Path(results, result.folder, "metrics.json")
        spec = value(read_json(path), path, "spec") if result.stores else {}
        read = set(stored_parts_read(value(spec, path, "phases"))) if spec else set()
        for store in set(result.stores.values()) if read else ():
            readers.setdefault(store, {})[result.folder] = (read, spec.get("subset", {}))
    for store, by_run in readers.items():
        parts = set().union(*(read for read, _ in by_run.values()))
        paths = [Path(results, layout.stored_part(store, part)) for part in parts]
        cards = {path: read_json(path) for path in paths}
        spent = sum({float(seconds) for path, card in cards.items() for seconds in passes(card, path)})
        rows = {split: facts.get("examples", 0) for split, facts in _splits(Path(results, store)).items()}
        shares = {folder: _share(subset, list(cards.values()), rows) for folder, (_, subset) in by_run.items()}
        for folder, share in shares.items():
            for name, seconds in zip(NAMES, (spent * share / sum(shares.values()), spent * share), strict=True):
                costs[folder][name] += seconds
    return costs


def passes(card: dict, path) -> list[float]:
    """Return the seconds of each pass that wrote rows of a part, one after the other. Args: its card, and the path."""
    return card.get("passes") or [value(card, path, "seconds")]


def _share(subset: dict, cards: list[dict], rows: dict[str, int]) -> float:
    """Return which share of the rows that a store holds a run reads: of train, only those of its subset.

    Args: the subset of its spec; the cards of parts; the number of rows by split.
    """
    held = {split: max(_held(card, split, count) for card in cards) for split, count in rows.items()}
    read = subset.get("rows")
    if read is None or not held.get("train"):
        return 1.0
    unread = max(0, held["train"] - read - subset.get("reserved", 0))
    return 1 - unread / sum(held.values())


def _held(card: dict, split: str, count: int) -> int:
    """Return how many rows of a split a part holds. Args: its card, the split, and how many the split has."""
    return card.get("rows", {}).get(split, {"held": count})["held"]


def _splits(store: Path) -> dict[str, dict]:
    return read_json(store / "tokens.json")["splits"] if (store / "tokens.json").is_file() else {}
