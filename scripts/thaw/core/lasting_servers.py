"""Where fork servers are that outlive a command, so that the next one begins with its libraries imported.

They are for commands at a terminal: those of one shell, in one folder. They end with that shell, and when nobody has
asked for ten minutes. Their folder is named by all that imports depend on, and belongs to the user alone.
"""

import contextlib
import functools
import hashlib
import json
import os
import socket
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from thaw.core.files import private_folder
from thaw.core.fork_client import ADDRESS
from thaw.core.home import PACKAGE, release

REFUSES = "--no-server"  # the option of commands whose servers end with them
PATIENCE = 600.0  # seconds without a job after which a server ends
ENDING = ".pid"


def refuse(words: list[str]) -> list[str]:
    """Return the words without REFUSES; with it the servers of this command are its own."""
    if REFUSES in words and ADDRESS not in os.environ:
        os.environ[ADDRESS] = tempfile.mkdtemp(prefix="thaw-")
    return [word for word in words if word != REFUSES]


def folder(environment: dict[str, str], new: bool = True) -> Path | None:
    """Return the folder of servers with an environment; None where nobody sits at a terminal, or none can be ours.

    Args: the variables; whether it is made where there is none.
    """
    if not any(stream and stream.isatty() for stream in (sys.stdin, sys.stderr)):  # texts may be read from a pipe
        return None
    home = of_user()
    try:
        private_folder(home)
        found = home / hashlib.sha256(json.dumps([sorted(environment.items()), *_facts()]).encode()).hexdigest()[:16]
        if new:
            found.mkdir(mode=0o700, exist_ok=True)
    except OSError:  # XDG_RUNTIME_DIR of another machine or user, as after `sudo` or `srun --pty`
        return None
    return found


@functools.cache  # a command asks for each number of threads
def _code() -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in PACKAGE.rglob("*.py"))


def _facts() -> list:
    """Return what a job has from the process that it is forked from, beside its environment."""
    proc = Path("/proc")
    shell = os.getppid(), (proc / str(os.getppid()) / "stat").read_text().rpartition(")")[2].split()[19]  # since when
    packages = sys.executable, os.stat(sysconfig.get_paths()["purelib"]).st_mtime_ns
    given = [(proc / "self" / name).read_text() for name in ("limits", "cgroup")]  # ulimit
    given += [line for line in (proc / "self/status").read_text().splitlines() if line.startswith("Umask")]
    own = sorted(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0), os.getgroups()  # taskset, nice
    return [shell, os.getcwd(), _code(), packages, release(), given, own]


def listens(address: Path) -> bool:
    """Return whether a server listens at an address; one that was killed leaves it behind, and it is removed."""
    if not address.exists():
        return False
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(address))
        except ConnectionRefusedError:
            address.unlink(missing_ok=True)
            return False
        except OSError:
            return False
    return True


def waiting() -> Iterator[int]:
    """Yield the processes of this user's servers."""
    for path in sorted(of_user().glob(f"*/*{ENDING}")):
        with contextlib.suppress(OSError, ValueError):  # it has just ended
            if listens(path.with_suffix("")):
                yield int(path.read_text())


def of_user() -> Path:
    """Return the folder of this user's servers."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"thaw-{os.getuid()}"
