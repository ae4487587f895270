"""The linear probe on all layers over 40 cells, five sizes of eight draws, against a scikit-learn pipeline.

Both sides have the same rows, vectors and strengths. The pipeline has the largest tolerance at which all its fits
are within the gap of the least objective that ours have where strengths are compared. Ours fits the chosen one again.
"""

import statistics

from thaw.core.files import read_json
from thaw.data.corpus import Corpus, subset_rows
from thaw.heads.convex import CHOICE_GAP

from .. import rivals, work
from ..measuring import interleaved, median
from ..options import Options
from ..ours import Place
from ..quality import compared, of_cells, of_runs
from ..texts import tasks

DRAWS = 8
SHARES = (16, 8, 4, 2, 1)  # of the rows of train: the sizes are these parts of them
TOLERANCES = [
    10.0 ** (-power / 2) for power in range(4, 15)
]  # of scikit-learn, 1e-4 by default: the largest gradient left
RATIOS = {"pipeline_vs_ours": "seconds", "pipeline_vs_ours_engine": "engine_seconds"}
LEAST = 1e-9  # gap of what counts as the least objective


def measure(options: Options) -> dict:
    """Return the seconds of all sides, whole processes and the engine alone, and their accuracies on test."""
    sizes = [max(2, options.rows // share) for share in SHARES]
    place, told, cells = prepared("all_layers", options, sizes, DRAWS)
    given = {"strengths": work.STRENGTHS, "fit_threads": options.threads}
    gaps = _gaps(place, told, cells[::DRAWS], given)
    sides = {"pipeline": ("all_layers", given | {"cells": cells, "tolerance": gaps["pipeline"]["tolerance"]})}
    found, rounds = compare(place, told, sides)
    fits = {"ours": _fits(place), "pipeline": rounds["pipeline"][-1]["found"]["seconds"]["train"]}
    ratios = {side: found[key]["pipeline"] / found[key]["ours"] for side, key in RATIOS.items()}
    return found | ratios | {"cells": len(cells), "rows": sizes, "gaps": gaps, "fit_seconds": fits}


def prepared(name: str, options: Options, sizes: list[int], draws: int) -> tuple[Place, dict, list[dict]]:
    """Return our place, what the peers are told, and their cells: so many draws of each number of rows."""
    text = tasks(options)[0]
    subsets = {f"rows{size}_d{draw}": {"rows": size, "draw": draw} for size in sizes for draw in range(1, draws + 1)}
    selection = {"subsets": subsets, "heads": ["linear_mean"], "seeds": [1], "store": {}}  # all sides encode in fp32
    place = Place(options.folder(name), options, [text], work.all_layers(), **selection)
    return place, rivals.told([text], place), cells_of(place, text.name, subsets)


def compare(place: Place, told: dict, peers: dict[str, tuple[str, dict]]) -> tuple[dict, dict[str, list[dict]]]:
    """Return seconds and accuracies of ours and of peers, and the rounds. Args: by side its module and its job."""

    def ask(peer: str, job: dict) -> dict:
        record = rivals.ask(peer, place.folder, place.options, told, **job)
        return record | {"engine": rivals.engine(record)}

    sides = {"ours": place.run} | {side: lambda given=given: ask(*given) for side, given in peers.items()}
    rounds = interleaved(sides, place.options.rounds)
    return {
        "numbers": {},
        "used": {"seeds": 1},
        "seconds": {side: median(records, "wall") for side, records in rounds.items()},
        "engine_seconds": {side: statistics.median(r["engine"] for r in records) for side, records in rounds.items()},
        "cpu_seconds": {side: median(records, "cpu") for side, records in rounds.items()},
        "quality": {side: _quality(rounds["ours"], rounds[side]) for side in peers},
    }, rounds


def _gaps(place: Place, told: dict, cells: list[dict], given: dict) -> dict[str, dict]:
    """Return both sides' tolerance and distance from the least objective, as a share of it, over cells and strengths.

    Both fit the same vectors, those of the pipeline. Where no tolerance is near enough, the smallest counts.
    """
    features = {"features": str(place.folder)}
    job = given | features | {"cells": cells, "tolerances": TOLERANCES}
    peer = rivals.ask("all_layers", place.folder, place.options, told, **job)["found"]["objectives"]
    names = [cell["name"] for cell in cells]

    def fitted(gap: float) -> list[float]:
        fits = place.inside("probing", **features, tasks=names, strengths=given["strengths"], threads=1, gap=gap)
        return [fit["objective"] for fit in fits["found"]["cells"]]

    least = fitted(LEAST)

    def gap(tolerance: float, objectives: list[float]) -> dict[str, float]:
        apart = [one / best - 1 for one, best in zip(objectives, least, strict=True)]
        return {"tolerance": tolerance, "mean gap": statistics.mean(apart), "largest gap": max(apart)}

    our = gap(CHOICE_GAP, fitted(CHOICE_GAP))
    theirs = [gap(tolerance, peer[str(tolerance)]) for tolerance in TOLERANCES]
    near = [one for one in theirs if one["largest gap"] <= max(CHOICE_GAP, our["largest gap"])]
    return {"ours": our, "pipeline": [*near, theirs[-1]][0]}


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


def _quality(ours: list[dict], theirs: list[dict]) -> dict:
    """Return the mean accuracies on test over draws, by size, and whether ours differ from a peer's. Args: rounds."""
    rows = [row | {"size": _size(row["subset"])} for row in ours[-1]["scores"]]
    cells = [cell | {"size": _size(cell["cell"])} for cell in theirs[-1]["found"]["cells"]]
    return compared(of_runs(rows, ("size",), "test"), of_cells(cells, ("size",), "test"))


def _size(subset: str) -> str:
    """Return the rows in a subset's name."""
    return subset.partition("_")[0]
