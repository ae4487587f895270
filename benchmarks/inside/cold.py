"""Trainings cold and warm: each in a fresh process, in one that stays, and in a fork of one that has trained.

All processes are forked of one that has imported the libraries, as `thaw run` forks its jobs. Trainings of a seed are
a lane, lanes run side by side, and each training runs in all ways before the next one, beginning with another way.
"""

import argparse
import gc
import importlib
import json
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from thaw.core.files import read_json, write_json
from thaw.core.fork_server import LIBRARIES
from thaw.core.runtime import set_threads
from thaw.steps.train import execute
from thaw.training.phase_loop import PhaseTraining

from ..work import FULL

UPDATE, UPDATES = PhaseTraining._update, []  # the updates of a training in this process, in seconds


def clocked(*arguments):
    """Make an update, and note its seconds."""
    begin = time.perf_counter()
    losses = UPDATE(*arguments)
    UPDATES.append(time.perf_counter() - begin)
    return losses


def one_process(count: int = 1) -> ProcessPoolExecutor:
    """Return processes forked of this one, which end with the context."""
    return ProcessPoolExecutor(count, multiprocessing.get_context("fork"))


def trained(job: dict, run: dict) -> dict:
    """Train a run in this process; return its seconds by part, and those of each update."""
    UPDATES.clear()
    set_threads(job["threads"])
    nothing = dict.fromkeys(("catalogues", "also_data", "also_tokens"), [])
    places = {"data": Path(job["data"]), "encoder": Path(job["encoder"]), "features": [Path(job["features"])]}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        execute(read_json(run["metrics"])["spec"], argparse.Namespace(**places, **nothing, need=run["need"], out=out))
        return {"seconds": read_json(out / "cost.json")["seconds"], "updates": list(UPDATES)}


def fresh(job: dict, run: dict) -> dict:
    """Train a run in a fork of this process."""
    with one_process() as pool:
        return pool.submit(trained, job, run).result()


def lane(job: dict, runs: list[dict]) -> list[dict]:
    """Train the runs of a seed in all ways that the job names, as often as it says."""
    found = []
    for turn in range(job["rounds"]):
        with one_process() as staying, one_process() as parent:
            ways = {
                "fresh": lambda run: fresh(job, run),
                "staying": lambda run, pool=staying: pool.submit(trained, job, run).result(),
                "forked of a trained one": lambda run, pool=parent: pool.submit(fresh, job, run).result(),
            }
            names = job["ways"] or list(ways)
            if names[-1] in list(ways)[2:]:
                parent.submit(trained, job, next(run for run in runs if run["strategy"] == FULL)).result()
            for place, run in enumerate(runs, start=turn):
                first = place % len(names)
                for way in names[first:] + names[:first]:
                    begin = time.perf_counter()
                    answer = ways[way](run)
                    asked = {"way": way, "round": turn, "whole": time.perf_counter() - begin}
                    found.append({**run, **asked, **answer})
    return found


def main() -> None:
    """Train as the job says, and write each training with its way and seconds."""
    job, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    set_threads(job["threads"])
    for name in LIBRARIES["models"]:
        module, _, function = name.partition(":")
        getattr(importlib.import_module(module), function or "__name__")
    PhaseTraining._update = clocked
    gc.freeze()  # as the fork server does
    lanes = [[run for run in job["runs"] if run["seed"] == seed] for seed in sorted({r["seed"] for r in job["runs"]})]
    with one_process(job["at_once"]) as pool:
        write_json(out, [one for found in pool.map(lane, [job] * len(lanes), lanes) for one in found])


if __name__ == "__main__":
    main()
