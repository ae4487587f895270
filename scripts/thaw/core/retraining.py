"""Runs whose record is of an older spec while they are trained again: how often that was begun and did not end.

Snakemake keeps the files of a job that trains several seeds (`update`). Where the job fails it puts back what they held
before, and notes them as made under the new params: a record of an older spec would then count as made. The plan adds
the number to the params of the job, so that the next run of the workflow trains again.
"""

from pathlib import Path

from thaw.core.files import read_json, write_json

FILE = "retraining.json"


def begun(folder) -> int:
    """Return how often a run was begun over a record of an older spec, and did not end. Args: its folder."""
    path = Path(folder, FILE)
    return read_json(path)["begun"] if path.exists() else 0


def begin(folder: Path) -> None:
    """Delete the record of a run that is trained again; count it before, since a job may be killed at any time."""
    record = folder / "metrics.json"
    if record.exists():
        write_json(folder / FILE, {"begun": begun(folder) + 1, "open": True})
        record.unlink()


def end(folder: Path) -> None:
    """Note that a run has its new record. What was counted in the params of its job stays."""
    path = folder / FILE
    if path.exists() and read_json(path)["open"]:
        if count := begun(folder) - 1:
            write_json(path, {"begun": count, "open": False})
        else:
            path.unlink()
