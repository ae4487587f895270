"""How long a run takes next to what `thaw plan` says of it: measures one experiment, with the arguments of `thaw run`.

PYTHONPATH=.:scripts:tests python quality/planned_time.py config/experiments/first.yaml --config data_dir=path/to/data

The experiment should not have been run, or nothing is left to be timed. Each measurement is
added to docs/results/planned_time.json; `python scripts/record.py` writes its table into docs/results/performance.md.
"""

import os
import re
import subprocess
import sys
import time

import record
from thaw.core.files import read_json, write_json
from thaw.core.runtime import run_step

KEPT = record.RECORDS / "planned_time.json"
TIME = re.compile(r"^time, roughly, with all cores busy: (.+?)(?: \(|$)", re.MULTILINE)
RUNS = re.compile(r"^experiment (\w+)[^\n]*\nruns (\d+)", re.MULTILINE)


def measured(arguments: list[str]) -> dict:
    """Plan an experiment, run it on all cores, and return what was planned and what it took, in seconds."""
    said = subprocess.run(["thaw", "plan", *arguments], capture_output=True, text=True, check=True).stdout
    (name, runs), planned, load = RUNS.search(said).groups(), TIME.search(said)[1], os.getloadavg()[0]
    start = time.perf_counter()
    subprocess.run(["thaw", "run", *arguments, "--cores", "all"], check=True)
    taken = time.perf_counter() - start
    facts = {"experiment": name, "runs": int(runs), "planned": planned, "taken": round(taken)}
    return facts | {"cores": os.cpu_count(), "load": round(load, 1), "date": time.strftime("%Y-%m-%d")}


def main() -> None:
    """Measure, and add to the record."""
    write_json(KEPT, [*(read_json(KEPT) if KEPT.is_file() else []), measured(sys.argv[1:])])


if __name__ == "__main__":
    run_step(main)
