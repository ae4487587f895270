"""Seconds by part, peak memory and hardware: what a job notes about its own cost."""

import contextlib
import resource
import sys
import time
from datetime import UTC, datetime

from thaw.compute_cost.flops import _wait_for_device
from thaw.core.runtime import hardware, versions


class Stopwatch:
    """Seconds by part: `with watch("train"): ...` adds to a part, `seconds()` gives all and their total."""

    def __init__(self):
        self.start = time.perf_counter()
        self.parts: dict[str, float] = {"load": 0.0, "train": 0.0, "evaluate": 0.0}

    @contextlib.contextmanager
    def __call__(self, part: str):
        """Add the time spent inside to a part; CUDA work is waited for."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            _wait_for_device()
            self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - begin

    def seconds(self, runs: int = 1) -> dict[str, float]:
        """Return a run's share of the seconds of each part, to the millisecond, and of the total since the start."""
        parts = self.parts | {"total": time.perf_counter() - self.start}
        return {part: round(seconds / runs, 3) for part, seconds in parts.items()}


def measure_cost(watch: Stopwatch, device, runs: int = 1) -> dict:
    """Return the cost of a run as cost.json has it: seconds, peak memory, versions, hardware, date.

    Of several runs in one job each has an equal share of its seconds, and says how many they were.
    """
    return {
        **({"runs_in_job": runs} if runs > 1 else {}),
        "seconds": watch.seconds(runs),
        "peak_memory_mb": peak_memory_mb(),
        "versions": versions(),
        "hardware": hardware(device),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def peak_memory_mb() -> float:
    """Return the largest memory in MiB since the start, CUDA's if it is used, else the process's."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return round(torch.cuda.max_memory_allocated() / 2**20, 1)
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)
