"""A Python of its own, without Thaw, that reads texts with exported and merged folders: `folder_reader.py`."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.process_ends import why_it_ended
from thaw.merging import folder_reader


class FreshProcess:
    """A context; while it lasts the process answers."""

    def __init__(self, threads: int):
        self._setting = os.environ | {"OMP_NUM_THREADS": str(threads)}

    def __enter__(self) -> "FreshProcess":
        self._errors = tempfile.TemporaryFile("w+")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors, "text": True}
        command = [sys.executable, "-E", "-P", "-B", folder_reader.__file__]
        self._process = subprocess.Popen(command, env=self._setting, **pipes)
        return self

    def __exit__(self, *error) -> None:
        self._end()
        self._errors.close()

    def ask(self, texts: list, *folders: Path, tasks: list[str] | None = None) -> dict:
        """Return the answers of some folders, one after the other, and the process' peak memory in MiB.

        Raises UserError, with its last error and its exit code or signal, where the process ends.
        """
        request = {"folders": [str(folder) for folder in folders], "texts": texts, "tasks": tasks}
        line = ""
        with contextlib.suppress(BrokenPipeError):  # it had ended before the request
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line.endswith("\n"):
            code = self._end()
            self._errors.seek(0)
            raise UserError(f"the folder fails in a fresh process: {why_it_ended(code, self._errors.read())}")
        reply = json.loads(line)
        if reply["thaw"]:
            raise UserError(f"the folder needs Thaw: it imported {reply['thaw'][0]}")
        return reply

    def _end(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        with contextlib.suppress(BrokenPipeError):  # closing writes what is left of a request
            self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()
