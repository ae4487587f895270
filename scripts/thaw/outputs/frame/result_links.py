"""Where a page finds what is behind a number: the anchor of a cell on the page of runs, the files of a result."""

import contextlib
import os
from pathlib import Path
from urllib.parse import quote

from thaw.core import layout
from thaw.core.steps import giving
from thaw.outputs.frame.aggregate import ROW
from thaw.outputs.frame.runs_frame import CELL

FILES = {
    "scores and spec": "metrics.json",
    "record": "merge.json",
    "check": "check.json",
    "by layer": "layers.csv",
    "predictions": "predictions.parquet",
    "history": "history.csv",
    "cost": "cost.json",
}


def cell_anchor(task: str, key: dict) -> str:
    """Return the id of a cell of a table on the page of runs. Args: what ROW names, as runs.csv has it."""
    return ".".join([task, *(str(key[name]) or "-" for name in ROW)])


def section_anchor(task: str, group: tuple) -> str:
    """Return the id of a task's section on the page of runs. Args: subset, encoder and head."""
    return ".".join([task, *group])


def row_anchor(row) -> str:
    return cell_anchor(row.task, row._asdict())


def run_anchor(cell: tuple) -> str:
    return cell_anchor(cell[0], {"kind": "run", **dict(zip(CELL, cell, strict=True))})


def record_anchor(step: str, key: str) -> str:
    """Return the id of the result of a probe or a merge on the page of runs. Args: its key."""
    return f"{step}.{key.replace('/', '.')}"


def record_names(path, results) -> tuple[str, dict[str, str]]:
    """Return which step made a result that is a record, and the names in its path."""
    for step in giving("record"):
        with contextlib.suppress(ValueError):
            return step, layout.names_in_folder(
                step, Path(path).absolute().parent.relative_to(Path(results).absolute())
            )
    raise ValueError(f"{path}: no result of {', '.join(giving('record'))}")


def relative(path, page_folder) -> str:
    return quote(Path(os.path.relpath(path, page_folder)).as_posix())


def files_of(folder: str, results, logs, page_folder) -> dict[str, str]:
    """Return the links to the files of a result by what they hold, of those that are there.

    Args: folder of the result, below results; the folders of results, of logs (None where a page links to no log) and
    of the page.
    """
    paths = {what: Path(results, folder, name) for what, name in FILES.items()}
    if logs:
        written = [path for name in _logs(folder) if (path := Path(logs, name)).exists()]
        # a cell that changed may have a log of each step that has made it
        paths |= {"log": max(written, key=lambda path: path.stat().st_mtime)} if written else {}
    return {what: relative(path, page_folder) for what, path in paths.items() if path.exists()}


def _logs(folder: str) -> list[str]:
    """Return where the jobs that may have made a result wrote what they printed, below the folder of logs."""
    logs = []
    for step in (*giving("scores"), *giving("record")):
        with contextlib.suppress(ValueError):  # it is no result of this step
            logs.append(layout.log(step, layout.names_in_folder(step, folder)))
    return logs
