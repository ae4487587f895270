"""Exports that tests make, read again by one process that cannot import Thaw.

`check` starts a fresh process for each split, which imports torch and transformers for seconds. Tests of what such a
process needs use `check` or `export`; those of what an export computes ask here.
"""

import atexit
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from thaw.exporting.checking import checked, compare, examples, passes
from thaw.exporting.finished_run import FinishedRun
from thaw.merging import folder_reader


class Reader:
    """The program that answers requests with exported folders, in a process of its own."""

    def __init__(self):
        """Start it."""
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the process
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors, "text": True}
        self._process = subprocess.Popen([sys.executable, "-E", "-P", folder_reader.__file__], **pipes)

    def ask(self, texts: list, folder: Path) -> list[dict]:
        """Return an export's predictions."""
        self._process.stdin.write(json.dumps({"folders": [str(folder)], "texts": texts}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        self._errors.seek(0)
        assert line, self._errors.read()
        reply = json.loads(line)
        assert reply["thaw"] == [], "the folder needs Thaw"
        return reply["replies"][0]["predictions"][""]

    def close(self) -> None:
        """End it."""
        self._process.stdin.close()
        self._process.wait()
        self._errors.close()


@functools.cache
def reader() -> Reader:
    """Return the process, which ends with this one."""
    made = Reader()
    atexit.register(made.close)
    return made


def read_again(source: FinishedRun, folder: Path) -> dict:
    """Return the comparison of an export with its run, as `check` does."""
    splits = {split: compare(source, split, reader().ask(examples(source, split), folder)) for split in checked(source)}
    return {"passed": all(map(passes, splits.values())), "splits": splits}
