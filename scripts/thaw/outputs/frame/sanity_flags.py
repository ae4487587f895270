"""Warnings about a run's scores, detected from its records and shown with them.

A run writes its own flags to metrics.json. The flags of this module are set when results are collected, so that older
results have them too.
"""

import csv
import functools
import hashlib
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from thaw.core import layout
from thaw.core.digests import canonical
from thaw.core.files import read_json
from thaw.declarations.splits import stored_split
from thaw.declarations.task_types import CLASS_METRICS, CORRELATION_METRICS, TARGET_OF_TYPE, UNBOUNDED_METRICS
from thaw.evaluation.metrics import METRICS, THRESHOLD
from thaw.evaluation.result_files import whole_task
from thaw.schema.phases import PhaseConfig

JUDGED = 3  # equal validation scores needed for the flag validation_flat
LEARNT = 0.99  # smallest training score of a run that memorises the training set
GAINED = 0.1  # share of the distance from the majority class to a perfect score: less is barely above it


def sanity_flags(record: dict, folder: Path, results: Path, read: Callable[[Path], dict]) -> list[str]:
    """Return the flags of a run that follow from its own records.

    Args: its metrics.json; its folder below the results folder; `read`, which returns a card by its path.
    """
    names = {"corpus": record["spec"]["task"]["corpus"]}
    card = results / layout.file("prepare", names)
    flags = _of_history(record, folder) + (_of_scores(record, read(card)) if card.exists() else [])
    cost = folder / "cost.json"
    unlike = cost.is_file() and read_json(cost).get("deterministic") is False  # computed on a GPU
    return flags + ["not_deterministic"] * unlike + _of_strength(record)


def notes_of(folder: Path) -> list[dict[str, str]]:
    """Return the lines of a run's history.csv by column; none where it has no such file."""
    history = folder / "history.csv"
    if not history.is_file():
        return []
    with open(history, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _of_history(record: dict, folder: Path) -> list[str]:
    notes = notes_of(folder)
    if not notes or "rate" not in notes[0]:  # a convex fit has strengths, no epochs
        return []
    phases = range(1, len(record["spec"]["phases"]) + 1)
    flags = ["rate_stuck"] if any(_stuck(record["spec"]["phases"][n - 1], of_phase(notes, n)) for n in phases) else []
    return flags + (["validation_flat"] if any(_flat(of_phase(notes, n)) for n in phases) else [])


def _of_strength(record: dict) -> list[str]:
    """Return the flag of a head whose L2 penalty, as validation chose it, is the strongest that was tried."""
    chosen = record.get("chosen", {}).get("l2")
    if chosen is None:
        return []
    tried = PhaseConfig.of_spec(record["spec"]["phases"][-1]).l2
    return ["strength_at_edge"] if len(tried) > 1 and chosen >= max(tried) else []


def of_phase(notes: list[dict], number: int | str) -> list[dict]:
    """Return the notes on one phase, counted from 1; none where a convex fit has strengths in their place."""
    return [note for note in notes if note.get("phase") == str(number)]


def _stuck(entry: dict, notes: list[dict]) -> bool:
    """Tell whether the learning rate of a phase stayed constant although its schedule varies it.

    That of `plateau` does where each validation score is better than those before.
    """
    moves = entry.get("schedule", "linear") not in ("constant", "plateau")
    return moves and len(notes) > 2 and len({note["rate"] for note in notes}) == 1


def _flat(notes: list[dict]) -> bool:
    """Tell whether all validation scores of a phase are equal, where there are enough of them."""
    judged = [score for note in notes for name, score in note.items() if name.startswith("validation") and score]
    return len(judged) >= JUDGED and len(set(judged)) == 1


def _of_scores(record: dict, card: dict) -> list[str]:
    task = whole_task(record["spec"])
    scores = record["scores"]
    main, validation = task["metrics"][0], task["validation"]
    tests, flags = [split for split in task["test"] if split in scores], []
    parts = {split: card["splits"][stored_split(split, card["splits"])] for split in ("train", validation, *tests)}
    if any(part.get("overlap_train", {}).get("share") == 1 for part in parts.values()):
        flags.append("all_seen")
    labels = {split: part.get("labels", {}).get(task["target"], {}) for split, part in parts.items()}
    if any(count and not labels["train"].get(label) for split in tests for label, count in labels[split].items()):
        flags.append("label_unknown")
    sets = TARGET_OF_TYPE[task["type"]] == "label_set"
    least = {
        split: _constant_set(main, parts["train"], labels["train"], parts[split], labels[split])
        if sets
        else _constant(main, labels["train"], labels[split])
        for split in (validation, *tests)
    }
    got = {split: -math.inf if scores[split][main] is None else scores[split][main] for split in scores}
    below = (least[split] - got[split] > 2 * _standard_error(main, record["rows"][split]) for split in tests)
    if main not in UNBOUNDED_METRICS and any(below):
        flags.append("test_below_majority")
    train, held = got.get("train", -math.inf), got.get(validation, math.inf)
    if train >= LEARNT and held - least[validation] < GAINED * (1 - least[validation]):
        flags.append("memorised")
    return flags


def _standard_error(metric: str, rows: int) -> float:
    """Return the standard error of a correlation near 0, of another score the largest that a share of rows has."""
    return (1.0 if metric in CORRELATION_METRICS else 0.5) / math.sqrt(rows)


def _constant(metric: str, train: dict[str, int], split: dict[str, int]) -> float:
    """Return the score on a split, by its label counts, of predicting train's most frequent label; 0 without labels."""
    if metric not in CLASS_METRICS or not sum(train.values()) or not sum(split.values()):
        return 0.0
    return _score_of_one(metric, max(range(len(train)), key=list(train.values()).__getitem__), tuple(split.values()))


def _constant_set(metric: str, train: dict, known: dict[str, int], split: dict, counts: dict[str, int]) -> float:
    """Return what predicting the labels that more than half of train's rows have scores on a split; 0 without counts.

    Args: the cards of train and of the split; in how many of their rows each label is. Subset accuracy does not follow
    from these.
    """
    rows, gold = split["rows"], np.array(list(counts.values()))
    if not gold.any():
        return 0.0
    if metric == "mean_average_precision":  # a constant ranks nothing: its precision is the share of rows
        return float((gold[gold > 0] / rows).mean())
    predicted = np.array(list(known.values())) / train["rows"] > THRESHOLD
    both, either = 2 * gold * predicted, gold + rows * predicted
    by_label = {"f1_micro": both.sum() / either.sum(), "f1_macro": np.mean(both[either > 0] / either[either > 0])}
    return float(by_label.get(metric, 0.0))


@functools.cache
def _score_of_one(metric: str, label: int, counts: tuple[int, ...]) -> float:
    """Return the score of a constant prediction, given the rows of each class; 0 if undefined."""
    gold = np.repeat(np.arange(len(counts)), counts)
    score = METRICS[metric](gold, np.full(len(gold), label))
    return score if math.isfinite(score) else 0.0


def identical_runs(folders: list[Path]) -> set[Path]:
    """Return the folders of runs whose losses equal those of another seed to the last digit.

    Convex fits are excluded: all seeds share them.
    """
    known: dict[tuple[Path, str], list[Path]] = {}
    for folder in folders:
        history = folder / "history.csv"
        content = history.read_bytes() if history.is_file() else b""
        if b"rate" in content.partition(b"\n")[0]:
            known.setdefault((folder.parent, hashlib.sha256(content).hexdigest()), []).append(folder)
    return {folder for alike in known.values() if len(alike) > 1 for folder in alike}


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
        phases = record["spec"].get("phases", [])
        if not (bool(phases) and phases[-1].get("optimizer") == "lbfgs"):
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
