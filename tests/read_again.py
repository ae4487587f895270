"""Exports that tests make, read again by one process that cannot import Thaw.

`check` starts a fresh process, which imports torch and transformers for seconds. Tests of what such a process needs use
`check` or `export`; those of what an export computes ask here.
"""

import atexit
import functools
from pathlib import Path

from thaw.exporting.checking import FreshProcess, compared
from thaw.exporting.finished_run import FinishedRun


@functools.cache
def reader() -> FreshProcess:
    """Return the process, which ends with this one."""
    made = FreshProcess(threads=1).__enter__()
    atexit.register(made.__exit__)
    return made


def read_again(source: FinishedRun, folder: Path) -> dict:
    """Return the comparison of an export with its run, as `check` does."""
    return compared(reader(), source, folder)
