"""A few labels of each class: the strategy setfit of the catalogue against SetFit itself with its defaults.

Both sides train on the same rows, three draws of each number, and are scored on the whole test split.
"""

import statistics
from dataclasses import replace

from .. import rivals
from ..measuring import interleaved, median, times_faster
from ..options import Options
from ..ours import Place
from ..quality import compared, of_cells, of_runs
from ..texts import tasks
from .all_layers import cells_of

LABELS = (8, 16, 64)  # of each class
DRAWS = 3
OURS = {"bench_setfit": {"base": "setfit"}}


def measure(options: Options) -> dict:
    """Return the seconds and accuracies of both sides by the number of labels a class."""
    options = replace(options, quick=True)  # one task
    text = tasks(options, whole_test=True)[0]
    found, quality = {}, {}
    for count in LABELS:
        found[str(count)], quality[f"{count} labels a class"] = _compared(text, options, count)
    return {"numbers": {}, "used": {"seeds": 1}, "few_labels": found, "quality": {"setfit": quality}}


def _compared(text, options: Options, count: int) -> tuple[dict, dict]:
    """Return the seconds of both sides at a number of labels a class, and the verdict on their accuracies."""
    subsets = {f"label{count}_d{draw}": {"per_label": count, "draw": draw} for draw in range(1, DRAWS + 1)}
    selection = {"subsets": subsets, "heads": ["linear_mean"], "seeds": [1], "store": {}}
    place = Place(options.folder(f"few_labels_{count}"), options, [text], OURS, **selection)
    cells = cells_of(place, text.name, subsets)

    def setfit() -> dict:
        out = str(place.folder / "setfit")
        return rivals.ask("setfit_loop", place.folder, options, rivals.told([text], place), cells=cells, out=out)

    rounds = interleaved({"ours": place.run, "setfit": setfit}, options.rounds)
    ours, theirs = rounds["ours"], rounds["setfit"]
    seconds = {side: median(records, "wall") for side, records in rounds.items()}
    engine = statistics.median(record["engine"] for record in ours), statistics.median(map(rivals.engine, theirs))
    scores = compared(
        of_runs(ours[-1]["scores"], ("task",), "test"), of_cells(theirs[-1]["found"]["cells"], ("task",), "test")
    )
    sides = {"Thaw, seconds": seconds["ours"], "SetFit, seconds": seconds["setfit"]}
    sides |= {"ratio": seconds["setfit"] / seconds["ours"], "of the engines alone": engine[1] / engine[0]}
    sides["of the processor"] = times_faster(ours, theirs, "cpu")  # which says most beside other work
    return sides, scores[text.name]
