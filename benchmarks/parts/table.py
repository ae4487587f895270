"""(a) One table: every depth of thawing, both tasks, all seeds, all sides tuned.

Against the Trainer in one process and in as many as Thaw has jobs at once, and against a torch loop that keeps the
frozen layers' states in memory.
"""

import statistics
from collections.abc import Callable

from .. import rivals, work
from ..measuring import interleaved, median
from ..options import Options
from ..ours import Place
from ..quality import compared, of_cells, of_runs, over_rows
from ..texts import Texts, tasks

Sides = dict[str, Callable[..., dict]]  # each is called with folder, options, tasks and cells
TUNED: Sides = {
    "tuned": lambda *job: rivals.trainer("tuned", *job),
    "tuned_side_by_side": lambda *job: rivals.trainers("tuned", *job),
    "boundary_loop": rivals.boundary_loops,
}


def measure(options: Options) -> dict:
    """Return the whole table's times on all sides, its rows one by one, and the scores."""
    found = compare("table", tasks(options), options, work.table(work.LAYERS), TUNED)
    seconds = found["seconds"]
    fastest = min(seconds["tuned"], seconds["tuned_side_by_side"])
    numbers = {"table_vs_trainer_tuned": fastest / seconds["ours"]}
    return found | {"numbers": numbers | {"table_vs_boundary_loop": seconds["boundary_loop"] / seconds["ours"]}}


def compare(
    name: str, texts: list[Texts], options: Options, strategies: dict[str, dict], peers: Sides, **selection
) -> dict:
    """Return the same for any tasks, strategies and peers; `name` is the folder to work in, `selection` see Place."""
    place = Place(options.folder(name), options, texts, strategies, **selection)
    cells = work.cells([task.name for task in texts], strategies, options.seed_list, work.LAYERS)
    told = rivals.told(texts, place)
    sides = {"ours": place.run}
    for peer, run in peers.items():
        sides[peer] = lambda run=run: run(place.folder, options, told, cells)
    rounds = interleaved(sides, options.rounds)
    ours = rounds["ours"]
    engine = {peer: statistics.median(map(rivals.engine, rounds[peer])) for peer in peers}
    return {
        "cells": len(cells),
        "seconds": {side: median(records, "wall") for side, records in rounds.items()},
        "cpu_seconds": {side: median(records, "cpu") for side, records in rounds.items()},
        "memory_mb": {side: max(map(_memory, records)) for side, records in rounds.items()},
        "engine_seconds": {"ours": median(ours, "engine")} | engine,
        "rows": _rows(place, rounds),
        "passes": ours[-1]["passes"],
        "quality": {peer: _quality(ours[-1], rounds[peer][-1]) for peer in peers},
        "rounds": {side: [_brief(record) for record in records] for side, records in rounds.items()},
    }


def _quality(ours: dict, theirs: dict) -> dict:
    """Return both sides' test scores by task and strategy, and over all of these."""
    names = ("task", "strategy")
    own, other = of_runs(ours["scores"], names, "test"), of_cells(theirs["found"]["cells"], names, "test")
    return compared(own, other) | {"all rows": over_rows(own, other)}


def _rows(place: Place, rounds: dict[str, list[dict]]) -> dict[str, dict[str, float]]:
    """Return the median seconds of each task and strategy by side; `shared` is what belongs to none."""
    found: dict[str, dict[str, float]] = {}
    for side, records in rounds.items():
        each = [place.rows(record) if side == "ours" else _peer_rows(record) for record in records]
        for row in each[0]:
            found.setdefault(row, {})[side] = statistics.median(one[row] for one in each)
    return found


def _peer_rows(record: dict) -> dict[str, float]:
    """Return a peer's seconds by task and strategy, spread over its processes, and the rest of the whole."""
    rows: dict[str, float] = {}
    for cell in record["found"]["cells"]:
        name = f"{cell['task']}/{cell['strategy']}"
        rows[name] = rows.get(name, 0.0) + sum(cell["seconds"].values())
    rows = {name: seconds / record.get("processes", 1) for name, seconds in rows.items()}
    return rows | {"shared": record["wall"] - sum(rows.values())}


def _memory(record: dict) -> float:
    """Return the most memory in MiB that a process of a side took for training: a GPU's where it computed on one."""
    if "scores" in record:
        return max(row["peak_memory_mb"] for row in record["scores"])
    return record["found"].get("device_memory_mb", record["found"]["memory_mb"])


def _brief(record: dict) -> dict:
    """Return a round without its jobs and scores."""
    return {key: record[key] for key in ("wall", "cpu", "memory_mb", "load")}
