"""The workflow killed at random moments, again and again, and completed: every table has the bytes it would have had.

`pytest -s -m slow quality/test_recovery.py` (part of `make test-recovery`) prints where it was killed and the count.
"""

import os
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pandas
import pytest

from thaw.outputs.frame.runs_frame import COLUMNS
from tiny import tiny_encoder
from workflow import Workplace

KILLS = 20
COST = [
    "train_seconds",
    "after_seconds",
    "search_seconds",
    "total_seconds",
    "processor_seconds",
    "extraction_seconds",
    "extraction_whole_seconds",
    "price_seconds",
    "peak_memory_mb",
]
# A table without columns of cost.
OUTPUTS = ["draws_table"]
SMALL = {"tasks": ["colour"], "strategies": ["linear_probe", {"short_top": [1]}], "baselines": [], "outputs": OUTPUTS}


def killed(place: Workplace, seconds: float) -> bool:
    """Start the workflow, kill all its processes after some seconds, and tell whether it was still running."""
    running = place.start()
    time.sleep(seconds)
    alive = running.poll() is None
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    place.snakemake("--unlock")
    return alive


def shown(folder: Path) -> dict[str, bytes]:
    """Return all that has no cost in it: records, tables, and runs.csv without its columns of cost."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if (
            path.name in ("card.json", "metrics.json", "history.csv", "head.safetensors", "tokens.json")
            or "/tables/" in name
        ):
            found[name] = path.read_bytes()
        if path.name == "runs.csv":
            found[name] = pandas.read_csv(path)[[c for c in COLUMNS if c not in COST]].to_csv().encode()
    return found


@pytest.mark.slow
def test_a_workflow_killed_at_random_moments_ends_as_if_nothing_had_been(tmp_path):
    encoder = tiny_encoder("bert", tmp_path / "tiny")
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    whole, broken = (Workplace(tmp_path / name, encoder) for name in ("whole", "broken"))
    for place in (whole, broken):
        place.write("mine.yaml", Workplace.experiment("mine", **SMALL))
    start = time.monotonic()
    whole.snakemake()
    length, draw, hits = time.monotonic() - start, random.Random(8), 0
    for _ in range(5 * KILLS):
        seconds = draw.uniform(1, 0.6 * length)
        if killed(broken, seconds):
            hits += 1
            print(f"killed after {seconds:.1f} s, with {len(shown(broken.folder / 'results'))} finished files")
        else:  # all was done: begin anew, so that there is something to kill
            shutil.rmtree(broken.folder / "results")
        if hits == KILLS:
            break
    broken.snakemake()
    due, found = shown(whole.folder / "results"), shown(broken.folder / "results")
    assert found == due and any("/tables/" in name for name in due)
    print(f"the workflow was killed {hits} times and ended with the same bytes in {len(due)} of {len(due)} files")
    assert hits == KILLS
