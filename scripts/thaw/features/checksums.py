"""The sha256 of large files, computed once for a state of a file and noted next to it.

A gigabyte takes a second, and each job that reads a store checks it. The note holds what the system says of the file:
its inode, its size, and when its content and its inode last changed (mtime, ctime), in nanoseconds. Whatever writes to
a file, copies another over it or puts one in its place changes one of them; no program can set ctime. What a disk
changes by itself is seen where the file is hashed again.
"""

import contextlib
import json
import os
import time
from pathlib import Path

from thaw.core.digests import file_sha256
from thaw.core.files import write_json

YOUNG = 5.0  # seconds: a file may change twice within the resolution of its time stamps, two seconds on some systems


def checksum(path: Path) -> str:
    """Return the sha256 of a file's content: the noted one where the file is as it was, else computed and noted.

    A file that changed a moment ago is not noted, nor one that changes while it is read, nor in a folder that this user
    may not write to.
    """
    note, before = path.with_name(f".{path.name}.sha256.json"), _state(path)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # no note, or one that was damaged
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["file"] == before:
            return known["sha256"]
    digest = file_sha256(path)
    if _state(path) == before and time.time() - max(before["mtime_ns"], before["ctime_ns"]) / 1e9 > YOUNG:
        with contextlib.suppress(OSError):
            write_json(note, {"file": before, "sha256": digest})
    return digest


def _state(path: Path) -> dict[str, int]:
    """Return by what a file is known to be as it was."""
    stat = os.stat(path)
    return {"inode": stat.st_ino, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}
