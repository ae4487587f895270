"""Measuring: processes timed from outside, sides taken in turn, the machine and its load."""

import contextlib
import ctypes
import importlib.metadata
import os
import platform
import pty
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from thaw.core.home import release

# Flags of /proc/cpuinfo that say that the processor computes in bfloat16 itself.
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16", "avx_ne_convert"}

LIBRARIES = ("torch", "transformers", "snakemake")  # whose versions are kept with what was measured

PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


class Failed(Exception):
    """A measured process that did not end well; the message names its log."""


def timed(command: list[str], log: Path, folder: Path, environment: dict | None = None) -> dict:
    """Run a command and return what it took with all processes that it started.

    Returns `wall` and `cpu` in seconds, `memory_mb` of its largest process in MiB, `load` of the machine before it
    (mean of the last minute), and `started` in seconds since 1970. Output goes to `log`. Raises Failed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    earlier, load, started, begin = _children(), os.getloadavg()[0], time.time(), time.perf_counter()
    with open(log, "w") as output, _adopting():
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,  # at a terminal, servers of one command would wait for the next
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | (environment or {}),
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:  # an interrupt: what was started must not go on alone
            process.terminate()
            raise
        wall = time.perf_counter() - begin
        usages = [usage, *(os.wait4(pid, 0)[2] for pid in _fork_servers(earlier))]
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failed(f"{' '.join(command[:6])} ... ended with {process.returncode}; see {log}")
    return {
        "wall": wall,
        "cpu": sum(one.ru_utime + one.ru_stime for one in usages),
        "memory_mb": max(one.ru_maxrss for one in usages) / 1024,
        "load": load,
        "started": started,
    }


@contextlib.contextmanager
def at_a_terminal():
    """Yield what runs a command as `timed` does, but in one shell at a terminal: each finds what the last one left.

    A command there leaves servers that have imported their libraries (thaw.core.lasting_servers). They end with the
    shell. What is returned has `wall` and `started` alone.
    """
    terminal, end = pty.openpty()
    shell = subprocess.Popen(["bash"], stdin=end, stdout=subprocess.PIPE, text=True, start_new_session=True)
    os.close(end)

    def typed(command: list[str], log: Path, folder: Path) -> dict:
        line = f"cd {shlex.quote(str(folder))}; {shlex.join(command)} > {shlex.quote(str(log))} 2>&1; echo $?\n"
        started, begin = time.time(), time.perf_counter()
        os.write(terminal, line.encode())
        if (code := shell.stdout.readline().strip()) != "0":
            raise Failed(f"{' '.join(command[:6])} ... ended with {code}; see {log}")
        return {"wall": time.perf_counter() - begin, "started": started}

    try:
        yield typed
    finally:
        os.killpg(shell.pid, signal.SIGTERM)  # with the command, where it was interrupted
        shell.wait()
        shell.stdout.close()
        os.close(terminal)


@contextlib.contextmanager
def _adopting():
    """Let what outlives its parent become our child within a context, and not init's, where Linux can."""
    if sys.platform != "linux":
        yield
        return
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0)


def _fork_servers(earlier: set[int]) -> list[int]:
    """Return the processes of Thaw's fork servers whose starter has ended: they end now, with all of their jobs.

    One that has ended already, and that its starter has not waited for, has no command line any more: it is known by
    its session, which it leads. Args: the children that this process had before the starter.
    """
    found = []
    for pid in _children() - earlier:
        with contextlib.suppress(OSError):  # one that another thread has waited for
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"thaw.core.fork_server" in line or (not line and os.getsid(pid) == pid):
                found.append(pid)
    return found


def _children() -> set[int]:
    """Return the processes whose parent this one is; none where there is no /proc."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # a process that has gone
            if int((path / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(path.name))
    return found


def interleaved(sides: dict[str, Callable[[], dict]], rounds: int) -> dict[str, list[dict]]:
    """Run every side once a round, each round beginning with another side, and return what each gave in each round."""
    names = list(sides)
    found: dict[str, list[dict]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(sides[name]())
    return found


def median(records: list[dict], key: str) -> float:
    """Return the median of one number over rounds."""
    return statistics.median(record[key] for record in records)


def times_faster(ours: list[dict], theirs: list[dict], key: str = "wall") -> float:
    """Return how many times as long they took as we: the ratio of the medians."""
    return median(theirs, key) / median(ours, key)


def median_seconds(
    action: Callable[[], object], repeats: int, wait: Callable[[], object] = lambda: None, clock=time.perf_counter
) -> float:
    """Return the median seconds of an action, after one that is not counted.

    `wait` ends work of a device. With time.process_time as clock, for what one thread computes, other programs of a
    busy machine do not count.
    """
    taken = []
    for _ in range(repeats + 1):
        wait()
        begin = clock()
        action()
        wait()
        taken.append(clock() - begin)
    return statistics.median(taken[1:])


def machine() -> dict:
    """Return what this machine is, and its load now."""
    cpu = next(iter(_of_processor("model name")), "unknown")
    memory = next((int(line.split()[1]) / 2**20 for line in _lines("/proc/meminfo") if "MemTotal" in line), None)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": memory and round(memory, 1),
        "computes_in_bf16": has_bf16(),
        "amx": "amx_bf16" in _flags(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "thaw": release(),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "load": [round(value, 2) for value in os.getloadavg()],
    }


def has_bf16() -> bool:
    """Return whether this machine computes in bfloat16 itself: its processor, or a GPU, taken to be of 2020 on."""
    return bool(_flags() & BF16_FLAGS) or shutil.which("nvidia-smi") is not None


def _flags() -> set[str]:
    """Return what the processor can do, as /proc/cpuinfo names it."""
    return {flag for key in ("flags", "Features") for value in _of_processor(key) for flag in value.split()}


def _of_processor(key: str) -> list[str]:
    """Return all values of a key of /proc/cpuinfo."""
    pairs = (line.partition(":") for line in _lines("/proc/cpuinfo"))
    return [value.strip() for name, _, value in pairs if name.strip() == key]


def _lines(path: str) -> list[str]:
    """Return a file's lines, none where the system has no such file."""
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []
