"""Which runs are underfit: they had not learnt their own training rows when they ended.

What such a run scores says how long it was trained, not what its strategy is worth.
"""

from collections.abc import Iterable
from pathlib import Path

from thaw.core.digests import canonical
from thaw.core.files import read_json
from thaw.outputs.frame.sanity_flags import LEARNT, notes_of, of_phase

MARGIN = 0.01  # of a score: one point
FEWEST_SCORES = 4  # whose last quarter holds one or more
PLACE = ("task", "subset", "encoder", "head", "seed")


def underfit_runs(runs: Iterable[tuple[Path, dict]]) -> set[Path]:
    """Return the folders of the runs that are underfit.

    A run is if its score on training rows is more than a point below that of the linear probe that was fitted to
    convergence in the same place: the probe is one of the functions that the run could have learnt. It is, too, if its
    score (on training rows where its history has that, else on validation) rose by more than a point over the last
    quarter of the updates of its last phase and ended at its highest, unless its score on training rows is LEARNT: on
    200 rows of validation a score rises so by chance in one run of six. One that ends with a fit to convergence
    (L-BFGS) never is: on its features it cannot learn more, and its history lists what was tried, not progress. Args:
    folder and row of each run, with PLACE and `pairs`.
    """
    records = {folder: read_json(folder / "metrics.json") for folder, _ in runs}
    places = {folder: _place(records[folder], row) for folder, row in runs}
    probes = {places[folder]: _learnt(record) for folder, record in records.items() if _is_probe(record)}
    weak = set()
    for folder, record in records.items():
        if not _ends_converged(record):
            learnt, probe = _learnt(record), probes.get(places[folder])
            behind = learnt is not None and probe is not None and probe - learnt > MARGIN
            if behind or ((learnt is None or learnt < LEARNT) and _still_rises(folder, record)):
                weak.add(folder)
    return weak


def _place(record: dict, row: dict) -> tuple:
    """Return what a run and the probe that it is compared with share: the same head on the same layer, too."""
    pairs = record.get("chosen", {}).get("pairs", row.get("pairs", ""))
    return (*(row[name] for name in PLACE), pairs, canonical(record["spec"].get("head", {})))


def _is_probe(record: dict) -> bool:
    phases = record["spec"].get("phases", [])
    return len(phases) == 1 and phases[0].get("optimizer") == "lbfgs" and "select" not in phases[0]


def _ends_converged(record: dict) -> bool:
    phases = record["spec"].get("phases", [])
    return bool(phases) and phases[-1].get("optimizer") == "lbfgs"


def _learnt(record: dict) -> float | None:
    """Return the main metric on the scored training rows, undefined as 0; None where none were scored."""
    scores = record["scores"].get("train")
    return None if scores is None else scores[record["spec"]["task"]["metrics"][0]] or 0.0


def _still_rises(folder: Path, record: dict) -> bool:
    notes = of_phase(notes_of(folder), len(record["spec"]["phases"]))
    main = record["spec"]["task"]["metrics"][0]
    for split in ("train", "validation"):
        scores = {int(note["step"]): float(note[f"{split}_{main}"]) for note in notes if note.get(f"{split}_{main}")}
        if scores:
            end = max(scores)
            before = [score for step, score in scores.items() if step <= end - end / 4]
            highest = scores[end] == max(scores.values())
            return len(scores) >= FEWEST_SCORES and bool(before) and highest and scores[end] - before[-1] > MARGIN
    return False
