#!/usr/bin/env python3
"""The first ten minutes with a card: tests and measurements by one command, without network and without an install.

    python quality/gpu/short.py first_card.jsonl
    python quality/gpu/short.py rehearsal.jsonl --device cpu --limit 60

After each item one line of JSON is appended to the file, so that what is cut off keeps what it has. A table of all of
them is printed at the end, and stands beside the file as .md. An item is a process of its own with a limit of its own:
whatever happens in it, the next one begins. It needs torch, transformers and pydantic; an item that needs more is left
out with a line where that is not installed. --device cpu rehearses all of it with small shapes on a machine without a
card. The items are in short_items.py.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).resolve().parents[2]
FOUND = "THAW_SHORT_FOUND"  # the file to which an item writes what it found, in its environment
LEAST = 20.0  # seconds of an item, while there are so many: with a short limit imports take most of them
USUAL = 560.0  # seconds: of ten minutes some are for the start of the machine and for copying files


class Item(NamedTuple):
    """An item: its name, its seconds where the limit is the usual one, and what it imports."""

    name: str
    seconds: float
    needs: tuple[str, ...]


RUNS = ("torch", "transformers", "pydantic", "yaml", "pandas", "pyarrow")
ITEMS = (
    Item("versions", 60, ()),
    Item("tests", 230, (*RUNS, "pytest", "sklearn")),
    Item("updates", 130, RUNS),
    Item("extraction", 60, RUNS),
    Item("fork_server", 60, RUNS),
    Item("side_by_side", 40, ("torch",)),
    Item("thaw_run", 90, (*RUNS, "snakemake", "matplotlib", "seaborn", "jinja2")),
)


def main() -> None:
    """Run all items within the limit and print the table; exit with 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="file to which a line of JSON is appended after each item")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: a rehearsal with small shapes")
    parser.add_argument("--limit", type=float, default=USUAL, help="seconds for all items together")
    parser.add_argument("--only", nargs="+", choices=[item.name for item in ITEMS], help="these items alone")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # what was found so far is put into the table
    given.out.parent.mkdir(parents=True, exist_ok=True)
    end, lines = time.monotonic() + given.limit, []
    try:
        for item in (item for item in ITEMS if not given.only or item.name in given.only):
            seconds = min(max(LEAST, item.seconds * given.limit / USUAL), end - time.monotonic())
            lines.append(line_of(item, given.device, seconds, no_card(lines)))
            with given.out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
            print(f"{time.strftime('%H:%M:%S')} {overview(lines[-1])}", flush=True)
    finally:
        text = summary(lines)
        given.out.with_suffix(".md").write_text(text)
        print(text)
    sys.exit(any(line["state"] == "failed" for line in lines))


def no_card(lines: list[dict]) -> bool:
    """Return whether an item has said that torch sees no card, without which the others would wait and fail."""
    return any(row.get("card") == "none" for line in lines for row in line["found"])


def line_of(item: Item, device: str, seconds: float, without: bool) -> dict:
    """Run an item for at most so many seconds; return its line. Args: without, whether there is no card."""
    missing = [name for name in item.needs if importlib.util.find_spec(name) is None]
    line = {"item": item.name, "state": "left out", "seconds": 0.0, "why": "", "found": []}
    if missing:
        return line | {"why": f"not installed: {', '.join(missing)}"}
    if device == "cuda" and without:
        return line | {"why": "torch sees no card"}
    if seconds < 1:
        return line | {"why": "no time is left"}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        state, why = ran(item.name, device, seconds, Path(folder))
        found = rows_in(Path(folder, "found"))
    if item.name == "tests":
        found = of_tests(found)
    failed = [row for row in found if row.get("error")]
    if failed and state == "done":
        state, why = "failed", f"{len(failed)} failed, first: {failed[0]['error']}"
    return line | {"state": state, "seconds": round(time.monotonic() - begin, 1), "why": why, "found": found}


def ran(name: str, device: str, seconds: float, folder: Path) -> tuple[str, str]:
    """Run an item in a process of its own, and end it with all that it started; return its state, and why."""
    path = [str(HOME / part) for part in ("scripts", "tests", "quality", "quality/gpu", ".")]
    path += [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    environment |= {FOUND: str(folder / "found"), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    environment |= {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    command = [sys.executable, str(HOME / "quality/gpu/short_items.py"), name, device]
    with (folder / "log").open("wb") as log:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        running = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True, **pipes)
        try:
            code = running.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    if code == 0:
        return "done", ""
    said = [line for line in (folder / "log").read_text(errors="replace").splitlines() if line.strip()] or ["nothing"]
    if code is None:
        return "cut off", f"not over after {seconds:.0f} s; last printed: {said[-1][-200:]}"
    return "failed", f"exit code {code}: {' | '.join(said[-3:])[-600:]}"


def found(**row) -> None:
    """Note something that an item has found: it stays where the item is cut off afterwards."""
    with open(os.environ[FOUND], "a") as file:
        file.write(json.dumps(row) + "\n")


def rows_in(path: Path) -> list[dict]:
    """Return what an item has found; a last row that it was writing as it was ended is left out."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


# --- the tests: this file is a plug-in of pytest -------------------------------------------------------------------


def pytest_configure(config) -> None:
    """Note each test as it ends; of several processes the first one hears of all."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(EachTest())


class EachTest:
    """Notes outcome, seconds and the error of each test."""

    def pytest_runtest_logreport(self, report) -> None:
        """Note a call, or a set-up or tear-down that did not pass."""
        if report.when == "call" or not report.passed:
            crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", None)
            why = "" if report.passed else str(crash or report.longrepr)[-400:]
            found(test=report.nodeid, outcome=report.outcome, seconds=round(report.duration, 1), why=why)

    def pytest_collectreport(self, report) -> None:
        """Note a file that could not be read."""
        if report.failed:
            found(test=report.nodeid, outcome="failed", seconds=0.0, why=str(report.longrepr)[-400:])


def of_tests(rows: list[dict]) -> list[dict]:
    """Return how many tests passed, what was left out and why, each that failed with its error, and the slowest."""
    counts = Counter(row["outcome"] for row in rows)
    short = [row | {"test": row["test"].rpartition("/")[2]} for row in rows]
    skipped = Counter(
        row["why"].rpartition("Skipped: ")[2].strip("')\"") for row in rows if row["outcome"] == "skipped"
    )
    slowest = sorted(short, key=lambda row: -row["seconds"])[:5]
    kept = [{"test": f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} left out"}]
    kept += [{"test": f"{count} left out: {why}"} for why, count in skipped.items()]
    kept += [{"test": f"slow: {row['test']}", "seconds": row["seconds"]} for row in slowest if row["seconds"] > 2]
    return kept + [{"test": row["test"], "error": row["why"]} for row in short if row["outcome"] == "failed"]


# --- the table -----------------------------------------------------------------------------------------------------


def overview(line: dict) -> str:
    return f"{line['item']}: {line['state']} after {line['seconds']} s" + (f": {line['why']}" if line["why"] else "")


def summary(lines: list[dict]) -> str:
    """Return all lines as Markdown: a table of the items, and one of what each has found."""
    keys = ("item", "state", "seconds", "why")
    parts = [table([{key: line[key] for key in keys} for line in lines])]
    parts += [f"**{line['item']}**\n\n{table(line['found'])}" for line in lines if line["found"]]
    return "\n\n".join(parts) + "\n"


def table(rows: list[dict]) -> str:
    """Return rows as a table with a column for each key that one of them has."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[str(row.get(key, "")).replace("\n", " ").replace("|", "/") for key in keys] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [keys, ["---"] * len(keys), *cells])


if __name__ == "__main__":
    main()
