"""(b) The head-only grid: 10 epochs, 5 seeds, 4 rates, 2 heads on a frozen encoder.

A cell of the Trainer passes the frozen encoder over the data in every epoch, so that 40 take long and are all alike:
each round it trains those of one seed (in quick runs two cells), or of two seeds side by side, and its time is scaled
to 40. The goal is set against the faster of both. All sides encode in bf16 where the machine computes in it.
"""

import statistics

from thaw.core.files import read_json

from .. import rivals, work
from ..measuring import has_bf16, interleaved, median
from ..options import Options
from ..ours import Place
from ..quality import compared, of_cells
from ..texts import tasks

TRAINERS = ("trainer_tuned", "trainer_tuned_side_by_side")
CELLS = len(work.GRID_HEADS) * len(work.GRID_RATES) * work.GRID_SEEDS


def measure(options: Options) -> dict:
    """Return the grid's times on all sides, and the scores."""
    text = tasks(options)[0]
    seeds = list(range(1, work.GRID_SEEDS + 1))
    place = Place(options.folder("grid"), options, [text], work.grid(), heads=work.GRID_HEADS, seeds=seeds)
    told = rivals.told([text], place)
    cells = work.grid_cells(text.name, seeds)
    turns = iter(seeds * options.rounds)

    def tuned() -> dict:
        some = work.grid_cells(text.name, [next(turns)])
        some = some[:: len(some) // 2] if options.quick else some
        record = rivals.trainer("tuned", place.folder, options, told, some, splits=["validation"])
        return record | of_all(record)

    def side_by_side() -> dict:
        some = work.grid_cells(text.name, seeds[:2])
        some = [some[0], some[-1]] if options.quick else some
        record = rivals.trainers("tuned", place.folder, options, told, some, splits=["validation"])
        return record | of_all(record)

    def whole(peer: str) -> dict:
        record = rivals.ask(peer, place.folder / peer, options, told, cells=cells, bf16=has_bf16())
        return record | {"engine": rivals.engine(record)}

    sides = {"ours": place.run, "trainer_tuned": tuned, "trainer_tuned_side_by_side": side_by_side}
    sides |= {peer: lambda peer=peer: whole(peer) for peer in ("cached_loop", "sentence_vectors")}
    rounds = interleaved(sides, options.rounds)
    seconds = {side: median(records, "wall") for side, records in rounds.items()}
    for side in TRAINERS:
        seconds[side] = median(rounds[side], "scaled")
    engine = {side: statistics.median(record["engine"] for record in records) for side, records in rounds.items()}
    return {
        "numbers": {
            "head_grid_vs_cached_loop": seconds["cached_loop"] / seconds["ours"],
        },
        "cells": CELLS,
        "trainer_cells_run": [len(record["found"]["cells"]) for record in rounds["trainer_tuned"]],
        "seconds": seconds,
        "engine_seconds": engine,
        "engine_ratios": {side: value / engine["ours"] for side, value in engine.items() if side != "ours"},
        # the Trainer ran some of its cells, so that its processor seconds would be of those alone
        "cpu_seconds": {side: median(records, "cpu") for side, records in rounds.items() if side not in TRAINERS},
        "used": {"seeds": work.GRID_SEEDS},
        "passes": rounds["ours"][-1]["passes"],
        "quality": _quality(place, rounds),
        "load": {side: [record["load"] for record in records] for side, records in rounds.items()},
    }


def of_all(record: dict) -> dict[str, float]:
    """Return the seconds of all cells, from start to end and of the engine alone. Args: what some of them took."""
    whole = scaled(record, CELLS, record["wall"])
    return {"scaled": whole, "engine": scaled(record, CELLS, rivals.engine(record), without="load")}


def scaled(record: dict, cells: int, seconds: float, without: str = "") -> float:
    """Return what a peer would take for so many cells: what is done once, and the mean cell so often.

    Args: what it took for some cells, each of its processes for as many; the cells; the seconds; a part of a cell's
    seconds that is not in them.
    """
    every = (cell["seconds"].items() for cell in record["found"]["cells"])
    each = [sum(value for part, value in parts if part != without) for parts in every]
    return seconds + (statistics.mean(each) * cells - sum(each)) / record.get("processes", 1)


def _quality(place: Place, rounds: dict[str, list[dict]]) -> dict:
    """Return both sides' scores on validation by head and rate; of the Trainer those of all rounds."""
    names, ours = ("head", "rate"), _trials(place)
    found = {}
    for peer in ("trainer_tuned", "cached_loop"):
        records = rounds[peer] if peer == "trainer_tuned" else rounds[peer][-1:]
        cells = [cell for record in records for cell in record["found"]["cells"]]
        found[peer] = compared(ours, of_cells(cells, names, "validation"))
    sentences = [cell for cell in rounds["sentence_vectors"][-1]["found"]["cells"] if cell["head"] == "linear"]
    found["sentence_vectors"] = {str(cell["strength"]): cell["scores"] for cell in sentences}
    return found


def _trials(place: Place) -> dict[str, list[float]]:
    """Return our scores on validation over seeds, by head and rate."""
    found = {}
    for path in (place.folder / "results/runs").glob(f"*/*/*/*/{work.GRID}/*/chosen.json"):
        for trial in read_json(path)["trials"]:
            found[f"{path.parts[-4]}/{trial['settings']['rate']}"] = list(trial["seeds"].values())
    return found
