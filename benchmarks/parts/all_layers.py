"""The linear probe on all layers over 40 cells, five sizes of eight draws, against a scikit-learn pipeline.

Both sides have the same rows, vectors and strengths.
"""

import statistics

from thaw.core.files import read_json
from thaw.data.corpus import Corpus, subset_rows

from .. import rivals, work
from ..measuring import interleaved, median
from ..options import Options
from ..ours import Place
from ..quality import compared, of_cells, of_runs
from ..texts import tasks

DRAWS = 8
SHARES = (16, 8, 4, 2, 1)  # of the rows of train: the sizes are these parts of them


def measure(options: Options) -> dict:
    """Return the seconds of all sides, whole processes and the engine alone, and their accuracies on test."""
    text = tasks(options)[0]
    sizes = [max(2, options.rows // share) for share in SHARES]
    subsets = {f"n{size}_d{draw}": {"rows": size, "draw": draw} for size in sizes for draw in range(1, DRAWS + 1)}
    selection = {"subsets": subsets, "heads": ["linear_mean"], "seeds": [1], "store": {}}  # all sides encode in fp32
    place = Place(options.folder("all_layers"), options, [text], work.all_layers(), **selection)
    told, cells = rivals.told([text], place), cells_of(place, text.name, subsets)

    def pipeline() -> dict:
        given = {"cells": cells, "strengths": work.STRENGTHS, "fit_threads": options.threads}
        record = rivals.ask("all_layers", place.folder, options, told, **given)
        return record | {"engine": rivals.engine(record)}

    rounds = interleaved({"ours": place.run, "pipeline": pipeline}, options.rounds)
    seconds = {side: median(records, "wall") for side, records in rounds.items()}
    return {
        "numbers": {},
        "used": {"seeds": 1},
        "cells": len(cells),
        "rows": sizes,
        "seconds": seconds,
        "engine_seconds": {side: statistics.median(r["engine"] for r in records) for side, records in rounds.items()},
        "cpu_seconds": {side: median(records, "cpu") for side, records in rounds.items()},
        "pipeline_vs_ours": seconds["pipeline"] / seconds["ours"],
        "fit_seconds": {"ours": _fits(place), "pipeline": rounds["pipeline"][-1]["found"]["seconds"]["train"]},
        "quality": _quality(rounds),
    }


def cells_of(place: Place, task: str, subsets: dict[str, dict]) -> list[dict]:
    """Return the cells of the peers: the rows that Thaw's subsets draw, as positions in the file of train."""
    place.thaw("--until", "prepare")
    corpus = Corpus(place.folder / "results/data" / task)
    target = {"target": "label"}
    numbers = corpus.frame("train")["row"].to_numpy()
    return [
        {"task": task, "name": name, "seed": subset["draw"]}
        | {"rows": numbers[subset_rows(corpus, target, subset)].tolist()}
        for name, subset in subsets.items()
    ]


def _fits(place: Place) -> float:
    """Return the seconds that our fits say they took, over all cells."""
    costs = (place.folder / "results/runs").rglob("cost.json")
    return sum(read_json(path)["seconds"]["train"] for path in costs)


def _quality(rounds: dict[str, list[dict]]) -> dict:
    """Return the mean accuracies on test over draws, by size, and whether ours differ from the pipeline's."""
    ours = [row | {"size": _size(row["subset"])} for row in rounds["ours"][-1]["scores"]]
    cells = [cell | {"size": _size(cell["cell"])} for record in rounds["pipeline"] for cell in record["found"]["cells"]]
    return {"pipeline": compared(of_runs(ours, ("size",), "test"), of_cells(cells, ("size",), "test"))}


def _size(subset: str) -> str:
    """Return the rows in a subset's name."""
    return subset.partition("_")[0]
