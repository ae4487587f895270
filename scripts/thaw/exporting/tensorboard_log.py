"""The curves of finished runs as event files for TensorBoard, from their history.csv; no training knows of it."""

import csv
from datetime import datetime
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.exporting.finished_run import require_new

PLACES = ("phase", "epoch", "step")  # columns that say where in the training a line is


def write_events(folder: Path, target: Path) -> list[Path]:
    """Write the curves of all runs below a folder, each into a folder of the same path; return these.

    Args: a run, or any folder above runs; where to write, new or empty. Raises UserError where the package tensorboard
    is not installed, or no run is below the folder.
    """
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise UserError("thaw log needs the package tensorboard: pip install tensorboard") from error
    histories = sorted(folder.rglob("history.csv"))
    if not histories:
        raise UserError(f"{folder}: no history.csv is below it; expected a run, or a folder above runs")
    require_new(target)
    written = [target / history.parent.relative_to(folder) for history in histories]
    for history, out in zip(histories, written, strict=True):
        writer = EventFileWriter(str(out))
        for event in _events(history):
            writer.add_event(event)
        writer.close()
    return written


def _events(history: Path):
    """Yield an event for each number of a run's history, at its update counted through all phases."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    cost = history.with_name("cost.json")
    when = datetime.fromisoformat(read_json(cost)["date"]).timestamp() if cost.is_file() else 0.0
    for step, name, value in scalars(history):
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
        yield Event(wall_time=when, step=step, summary=summary)


def scalars(history: Path) -> list[tuple[int, str, float]]:
    """Return (update, name, value) of each number in a history.csv.

    Updates are counted through all phases. A fit to convergence has candidates in their place, counted from 1.
    """
    with open(history, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    points, before, last, phase = [], 0, 0, None
    for number, line in enumerate(lines, 1):
        if line["phase"] != phase:
            before, phase = last, line["phase"]
        last = before + int(line["step"]) if "epoch" in line else number
        values = {name: value for name, value in line.items() if name not in PLACES and value}
        points += [(last, name.replace("_", "/", 1), float(value)) for name, value in values.items()]
    return points
