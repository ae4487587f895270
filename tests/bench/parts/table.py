"""(a) One table: every depth of thawing, both tasks, all seeds, against the Trainer, by default and tuned."""

import statistics

from .. import rivals, work
from ..measuring import interleaved, median, times_faster
from ..options import Options
from ..ours import Place
from ..quality import compared, of_cells, of_runs
from ..texts import Texts, tasks

RECIPES = ("default", "tuned")


def measure(options: Options) -> dict:
    """Return the whole table's times on all sides, its rows one by one, and the scores."""
    return compare("table", tasks(options), options)


def compare(name: str, texts: list[Texts], options: Options, recipes: tuple = RECIPES) -> dict:
    """Return the same for any tasks and recipes; `name` is the folder to work in."""
    strategies = work.table(work.LAYERS)
    place = Place(options.folder(name), options, texts, strategies)
    cells = work.cells([task.name for task in texts], strategies, options.seed_list, work.LAYERS)
    told = rivals.told(texts, place)
    sides = {"ours": place.run}
    for recipe in recipes:
        sides[recipe] = lambda recipe=recipe: rivals.trainer(recipe, place.folder, options, told, cells)
    rounds = interleaved(sides, options.rounds)
    ours = rounds["ours"]
    numbers, engine = {}, {"ours": median(ours, "engine")}
    for recipe in recipes:
        numbers[f"table_vs_trainer_{recipe}"] = times_faster(ours, rounds[recipe])
        engine[recipe] = statistics.median(map(rivals.engine, rounds[recipe]))
    return {
        "numbers": numbers,
        "cells": len(cells),
        "seconds": {side: median(records, "wall") for side, records in rounds.items()},
        "cpu_seconds": {side: median(records, "cpu") for side, records in rounds.items()},
        "memory_mb": {side: max(map(_memory, records)) for side, records in rounds.items()},
        "engine_seconds": engine,
        "rows": _rows(place, rounds),
        "passes": ours[-1]["passes"],
        "quality": {recipe: _quality(ours[-1], rounds[recipe][-1]) for recipe in recipes},
        "rounds": {side: [_brief(record) for record in records] for side, records in rounds.items()},
    }


def _quality(ours: dict, theirs: dict) -> dict:
    """Return both sides' test scores by task and strategy."""
    names = ("task", "strategy")
    return compared(of_runs(ours["scores"], names, "test"), of_cells(theirs["found"]["cells"], names, "test"))


def _rows(place: Place, rounds: dict[str, list[dict]]) -> dict[str, dict[str, float]]:
    """Return the median seconds of each task and strategy by side; `shared` is what belongs to none."""
    found: dict[str, dict[str, float]] = {}
    for side, records in rounds.items():
        each = [place.rows(record) if side == "ours" else _peer_rows(record) for record in records]
        for row in each[0]:
            found.setdefault(row, {})[side] = statistics.median(one[row] for one in each)
    return found


def _peer_rows(record: dict) -> dict[str, float]:
    """Return a peer's seconds by task and strategy, and the rest of its process."""
    rows: dict[str, float] = {}
    for cell in record["found"]["cells"]:
        name = f"{cell['task']}/{cell['strategy']}"
        rows[name] = rows.get(name, 0.0) + sum(cell["seconds"].values())
    return rows | {"shared": record["wall"] - sum(rows.values())}


def _memory(record: dict) -> float:
    """Return the most memory in MiB that a process of a side took for training: a GPU's where it computed on one."""
    if "scores" in record:
        return max(row["peak_memory_mb"] for row in record["scores"])
    return record["found"].get("device_memory_mb", record["found"]["memory_mb"])


def _brief(record: dict) -> dict:
    """Return a round without its jobs and scores."""
    return {key: record[key] for key in ("wall", "cpu", "memory_mb", "load")}
