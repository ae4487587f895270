"""The record of outputs that could not be drawn: why, and how often, so that the next run of the workflow tries again.

A gap takes the place of such an output, and its job succeeds, so that the report is written. The plan adds the
number of failures to the spec of the job (`Plan.canonical`): after another failure it is a new one, and the job runs.
"""

from pathlib import Path

from thaw.core.files import read_json, write_json


def failures(prefix) -> int:
    """Return how often an output could not be drawn. Args: the path of its files without their endings."""
    path = _path(prefix)
    return read_json(path)["failures"] if path.exists() else 0


def reason(prefix) -> str:
    """Return why there is a gap in the place of an output; empty where there is none."""
    path = _path(prefix)
    return read_json(path)["reason"] if path.exists() else ""


def note_failure(prefix, why: str) -> None:
    write_json(_path(prefix), {"failures": failures(prefix) + 1, "reason": why})


def note_success(prefix) -> None:
    """Record that an output was drawn after all; how often it failed before stays, as its spec has that."""
    if failures(prefix):
        write_json(_path(prefix), {"failures": failures(prefix), "reason": ""})


def _path(prefix) -> Path:
    return Path(f"{prefix}.failures.json")
