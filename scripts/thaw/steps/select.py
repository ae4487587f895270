"""Step `select`: choose among the trials of a strategy's grid, by the mean of the main metric on validation."""

import argparse
import json
import math
from pathlib import Path

from thaw.analysis.results import check_digest, whole_task
from thaw.records import digest, read_json, write_json
from thaw.runtime import log, run_step


def main() -> None:
    """Read all trials, choose one, and write chosen.json with all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--trials", required=True, type=Path, nargs="+", help="metrics.json, by trial and by its seeds")
    parser.add_argument("--out", required=True, type=Path, help="chosen.json")
    arguments = parser.parse_args()
    spec = arguments.spec
    task = whole_task(spec["task"])
    split, metric = task["validation"], task["metrics"][0]
    files = iter(arguments.trials)
    found = [scored(trial, files, split, metric) for trial in spec["trials"]]
    best = max(range(len(found)), key=lambda place: rank(found[place]))
    log(f"trial {best + 1} of {len(found)} is best on {split} by {metric}: {found[best]['settings']}")
    record = {"spec": spec, "digest": digest(spec), "split": split, "metric": metric}
    write_json(arguments.out, record | {"trial": best + 1, "settings": found[best]["settings"], "trials": found})


def scored(trial: dict, files, split: str, metric: str) -> dict:
    """Return a trial's settings, its score on a split by seed (None where it is undefined), and the mean of these.

    Args: trial as the spec has it; files, an iterator that stands at its first metrics.json.
    """
    scores = {}
    for seed, due in trial["runs"].items():
        path = next(files)
        check_digest(path, due)
        scores[seed] = read_json(path)["scores"][split][metric]
    mean = None if None in scores.values() else sum(scores.values()) / len(scores)
    return {"settings": trial["settings"], "mean": mean, "seeds": scores}


def rank(trial: dict) -> float:
    """Return what trials are compared by: the mean; of equals the first is taken, and undefined is worse than all."""
    return -math.inf if trial["mean"] is None else trial["mean"]


if __name__ == "__main__":
    run_step(main)
