"""Exports that tests make, read again by one process that cannot import Thaw.

`check` starts a fresh process for each split, which imports torch and transformers for seconds. Tests of what such a
process needs use `check` or `export`; those of what an export computes ask here.
"""

import atexit
import functools
import json
import os
import tempfile
from multiprocessing.connection import wait
from pathlib import Path

import forked
from thaw.exporting.checking import checked, compare, examples, passes
from thaw.exporting.finished_run import FinishedRun
from thaw.merging import folder_reader


class Reader:
    """The program that answers requests with exported folders, in a forked process."""

    def __init__(self):
        """Start it, with a pipe to its stdin and one from its stdout."""
        self._folder = tempfile.TemporaryDirectory()
        files = [f"{self._folder.name}/{name}" for name in ("requests", "replies", "errors")]
        os.mkfifo(files[0])
        os.mkfifo(files[1])
        self._errors = Path(files[2])
        self._errors.touch()
        self._process = forked.start([folder_reader.__file__], files)
        # for reading and writing: so neither waits for the other end, which may never come
        self._requests, self._replies = (os.fdopen(os.open(name, os.O_RDWR), "r+b", 0) for name in files[:2])

    def ask(self, texts: list, folder: Path) -> list[dict]:
        """Return an export's predictions."""
        self._requests.write(json.dumps({"folders": [str(folder)], "texts": texts}).encode() + b"\n")
        ready = wait([self._replies, self._process.sentinel], 600)
        assert self._replies in ready, self._errors.read_text()
        reply = json.loads(self._replies.readline())
        assert reply["thaw"] == [], "the folder needs Thaw"
        return reply["replies"][0]["predictions"][""]

    def close(self) -> None:
        """End it."""
        self._requests.close()
        self._process.join()
        self._folder.cleanup()


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
