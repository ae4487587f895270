"""A served folder and its clients: a server in a process of its own, requests, a load of a bounded count.

    python tests/served.py results/merges/n1000_d1/minilm/near --tasks trec6 trec50 \\
        --texts questions.txt --out results/outputs/merge_small/tables

sends each line of a file once by one client, and then by eight at once, and writes served.md and served.csv: what was
held. Lines are UTF-8, of the form that thaw predict reads. scripts/record.py keeps them with the experiment's tables.
"""

import argparse
import contextlib
import csv
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))  # that the server has, too

from thaw.exporting.text_lines import examples  # noqa: E402 - of this checkout

COLUMNS = ("clients", "requests", "median ms", "P95 ms", "P99 ms", "requests/s", "memory MiB")


@contextlib.contextmanager
def served(folder: Path, *more: str, errors=None):
    """Serve a folder in a process of its own, with one thread; give its address and the process.

    Args: more options; errors, an open file for what it prints as errors.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", str(folder), "--port", str(port), *more]
    setting = os.environ | {"PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-m", "thaw.cli.main", *words], env=setting, stderr=errors)
    try:
        for _ in range(600):
            assert process.poll() is None
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.terminate()
        process.wait()


def ask(address: str, body) -> tuple[int, dict]:
    """Return status and answer of a request to predict. Args: what is sent, JSON or bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/predict", data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def resident(process: subprocess.Popen) -> int:
    """Return the KiB of memory that a process holds."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1])


def under_load(address: str, bodies: list, clients: int) -> tuple[list[tuple[int, dict]], np.ndarray, float]:
    """Send some requests by so many clients at once; return the answers in order, the seconds of each, and of all."""

    def timed(body):
        begin = time.perf_counter()
        return ask(address, body), time.perf_counter() - begin

    begin = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        replies, seconds = zip(*pool.map(timed, bodies), strict=True)
    return list(replies), np.array(seconds), time.perf_counter() - begin


def requests_of(file: Path, tasks: list[str], address: str) -> list[dict]:
    """Return a request for each line of a file, read as the server's tasks read texts."""
    with urllib.request.urlopen(f"{address}/tasks") as reply:
        reads = json.loads(reply.read())[tasks[0]]["reads"]
    with file.open("rb") as lines:
        return [{"texts": [example], "tasks": tasks} for example in examples(lines, reads)]


def main() -> None:
    """Serve a folder, load it, and write what it held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = []
    with served(given.folder) as (address, process):
        bodies = requests_of(given.texts, given.tasks, address)
        ask(address, bodies[0])
        for clients in (1, 8):
            replies, seconds, whole = under_load(address, bodies, clients)
            if wrong := [reply for reply in replies if reply[0] != 200]:
                raise SystemExit(f"{clients} clients: {len(wrong)} requests failed, the first with {wrong[0]}")
            held = [f"{value * 1e3:.0f}" for value in np.percentile(seconds, [50, 95, 99])]
            rows.append([clients, len(bodies), *held, f"{len(bodies) / whole:.0f}", f"{resident(process) / 1024:.0f}"])
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "served.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    table = [COLUMNS, ["--:"] * len(COLUMNS), *rows]
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    notes = f"- {', '.join(given.tasks)} on one text a request; load averages of the machine afterwards: {load}.\n"
    text = "".join(f"| {' | '.join(map(str, row))} |\n" for row in table)
    (given.out / "served.md").write_text(f"{text}\n{notes}", encoding="utf-8")


if __name__ == "__main__":
    main()
