"""Seconds by part, peak memory and hardware: what a job notes about its own cost."""

import contextlib
import resource
import sys
import time
from datetime import UTC, datetime

from thaw.core.devices import claim_device, deterministic_is_required
from thaw.core.home import release
from thaw.core.runtime import hardware, versions


class Stopwatch:
    """Seconds by part: `with watch("train"): ...` adds to a part, `seconds()` gives all and their total."""

    def __init__(self):
        self.start, self.device = time.perf_counter(), None
        self.processes = 1  # that computed side by side
        self.worked: dict[str, float] = {}  # seconds that the threads of this process worked, by part
        self.parts: dict[str, float] = {"load": 0.0, "train": 0.0, "evaluate": 0.0}

    @contextlib.contextmanager
    def __call__(self, part: str):
        """Add the time spent inside to a part; CUDA work is waited for."""
        begin, worked = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            wait_for_device()
            self.worked[part] = self.worked.get(part, 0.0) + time.process_time() - worked
            self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - begin

    def add(self, others: list["Stopwatch"], spared: float) -> None:
        """Add what other processes did while this one waited, as if it had done all. Args: seconds that they spared."""
        self.start, self.processes = self.start - spared, len(others)
        for other in others:
            for mine, added in ((self.parts, other.parts), (self.worked, other.worked)):
                for part, seconds in added.items():
                    mine[part] = mine.get(part, 0.0) + seconds

    @property
    def processor(self) -> float:
        """The seconds that threads worked in all parts together."""
        return sum(self.worked.values())

    @contextlib.contextmanager
    def paused(self):
        """Count nothing of the time spent inside."""
        begin = time.perf_counter()
        yield
        self.start += time.perf_counter() - begin

    def seconds(self, runs: int = 1) -> dict[str, float]:
        """Return a run's share of the seconds of each part, to the millisecond, and of the total since the start."""
        parts = self.parts | {"total": time.perf_counter() - self.start}
        return {part: round(seconds / runs, 3) for part, seconds in parts.items()}


def measure_cost(watch: Stopwatch, device, runs: int = 1) -> dict:
    """Return the cost of a run as cost.json has it: seconds, peak memory, versions, hardware, date.

    The processor's seconds are those of all threads of this process: far fewer than those by the clock where other work
    had the cores.

    Of several runs in one job each has an equal share of its seconds, and says how many they were. Seconds of several
    processes are added up: about what one would take. On a GPU it says
    whether all kernels were deterministic; on the CPU all are.
    """
    return {
        **({"runs_in_job": runs} if runs > 1 else {}),
        **({"processes": watch.processes} if watch.processes > 1 else {}),
        "seconds": watch.seconds(runs),
        "processor_seconds": round(watch.processor / runs, 3),
        "processor_train_seconds": round(watch.worked.get("train", 0.0) / runs, 3),
        "peak_memory_mb": peak_memory_mb(device),
        "versions": {"thaw": release(), **versions(device)},
        "hardware": hardware(device),
        **({"deterministic": deterministic_is_required()} if device.type == "cuda" else {}),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def peak_memory_mb(device) -> float:
    """Return the largest memory in MiB: of a GPU since it was claimed, else of a process of this job since it began."""
    if device.type == "cuda":
        import torch

        return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    unit = 1 if sys.platform == "darwin" else 1024
    most = max(resource.getrusage(whose).ru_maxrss for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(most * unit / 2**20, 1)


def wait_for_device() -> None:
    """Wait until all CUDA work queued so far is done; on CPU there is nothing to wait for."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


@contextlib.contextmanager
def claimed(watch: Stopwatch, *arguments):
    """Give a device as `claim_device` does; the wait for it is none of the job's seconds."""
    with contextlib.ExitStack() as held:
        with watch.paused():
            device = held.enter_context(claim_device(*arguments))
        watch.device = device
        yield device
