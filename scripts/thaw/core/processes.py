"""Work that several processes of a job share.

Threads of OpenMP do not survive a fork: a process that has computed with several leaves forks that wait for ever.
Source: GNU libgomp, which keeps its pool of threads.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

from thaw.core.errors import UserError
from thaw.core.runtime import hide_progress, set_threads

USUALLY: dict[int, str] = {  # what a signal that ends a process usually means
    signal.SIGKILL: "memory ran out",
    signal.SIGSEGV: "compiled code failed",
    signal.SIGABRT: "compiled code failed",
    signal.SIGILL: "a library was compiled for another processor",
    signal.SIGTERM: "somebody or the cluster ended it",
}


def why_it_ended(code: int, errors: str) -> str:
    """Return the last line that a process printed as an error, and its exit code or the signal that killed it.

    Args: code, its exit code, of which a negative one is a signal, as `subprocess` has it; all that it printed.
    """
    printed = errors.strip().splitlines() or ["it printed no error"]
    if code >= 0:
        return f"{printed[-1]} (exit code {code})"
    return f"{printed[-1]} ({killed_by(-code)})"


def killed_by(number: int) -> str:
    """Return that a process was killed by a signal, by its name, and what this usually means where that is known."""
    name = next((known.name for known in signal.Signals if known == number), f"signal {number}")
    return f"killed by {name}" + (f", usually because {USUALLY[number]}" if number in USUALLY else "")


Result = TypeVar("Result")
MOST = 16  # processes, each with its own batches in memory; on a machine of 128 cores more would wait for one writer
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


def die_with_parent() -> None:
    """Let this process, a fork, be killed where the one that forked it ends; on Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


class Processes:
    """How many processes of a job compute at the same time, each with some threads.

    With several the job's own process has `own_threads`, and leaves to them what depends on the number of threads.
    """

    def __init__(self, threads: int, cores: int | None = None) -> None:
        """Args: threads of a process, which decide the last bits of what it computes; cores that the job has."""
        self.threads = threads
        self.count = min(MOST, max(1, (cores or threads) // threads)) if hasattr(os, "fork") else 1
        self.own_threads = threads if self.count == 1 else 1
        self.spared = 0.0  # seconds that one process alone would have taken in addition
        self.worked = 0.0  # seconds that the threads of the forks worked

    def on(self, device) -> "Processes":
        """Return these on the CPU; a GPU is used by the job's own process alone."""
        return self if device.type == "cpu" else Processes(self.threads)

    def run(self, work: Callable[[int], Result], shares: int) -> list[Result]:
        """Return work(0) to work(shares - 1), computed at the same time; what the first of them raises is raised here.

        Results and errors are pickled. Forks end with this process.
        """
        if self.count == 1:
            return [work(share) for share in range(shares)]
        begin, context = time.monotonic(), multiprocessing.get_context("fork")
        pipes = [context.Pipe(duplex=False) for _ in range(shares)]
        sys.stderr.flush()
        forks = [context.Process(target=self._work, args=(work, n, pipe)) for n, (_, pipe) in enumerate(pipes)]
        try:
            for fork, (_, pipe) in zip(forks, pipes, strict=True):
                fork.start()
                pipe.close()
            answers = [_answer(fork, pipe) for fork, (pipe, _) in zip(forks, pipes, strict=True)]
        finally:
            for fork in forks:
                if fork.pid:
                    fork.kill()
                    fork.join()
        self.spared += sum(seconds for _, seconds, _ in answers) - (time.monotonic() - begin)
        self.worked += sum(worked for _, _, worked in answers)
        return [result for result, _, _ in answers]

    def _work(self, work: Callable[[int], Result], share: int, pipe: Connection) -> None:
        """Send what a share gives, its seconds by the clock and those of its threads, or what it raised."""
        die_with_parent()
        signal.signal(
            signal.SIGTERM, lambda number, _: sys.exit(128 + number)
        )  # the job says why, once for all of its processes
        begin = time.monotonic()
        if share:
            hide_progress()
        try:
            set_threads(self.threads)
            pipe.send((work(share), time.monotonic() - begin, time.process_time()))
        except BaseException as error:
            pipe.send(_portable(error))


def _portable(error: BaseException) -> BaseException:
    """Return an error as the other process can read it, with where it was raised."""
    where = "".join(traceback.format_exception(error))
    if type(error).__module__.partition(".")[0] not in ("builtins", "thaw", "torch"):  # a plug-in's may ask for more
        return RuntimeError(f"{type(error).__name__}: {error}\n{where}")
    error.add_note(where)
    return error


def _answer(fork: BaseProcess, pipe: Connection) -> tuple:
    """Return what a fork sent; raise what it raised."""
    try:
        answer = pipe.recv()
    except EOFError:
        fork.join()
        code = fork.exitcode or 0
        how = f"by signal {-code}, as when memory is full" if code < 0 else f"with exit code {code}"
        raise UserError(f"a process that computed for this one was ended {how}") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer
