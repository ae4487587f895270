"""What a run of the benchmark can be told; every part takes the same options."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from thaw.core.devices import cards

HOME = Path(__file__).parents[1]


def _gpus() -> int:
    """Return the number of GPUs that CUDA_VISIBLE_DEVICES leaves, 1 where there is none."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return max(1, len(visible.split(",") if visible else cards()))


@dataclass(frozen=True)
class Options:
    """How much work is measured, and where."""

    rows: int = 1000  # training rows of each task; validation and test have a quarter each
    seeds: int = 3
    rounds: int = 3  # times that every side runs; medians are taken
    data_dir: Path = HOME.parent / "shared" / "data"  # SST-2 and MRPC as published; else synthetic tasks stand in
    out: Path = HOME / "results" / "bench"
    peers: str = sys.executable  # the Python in which the peers are installed
    setfit: str = sys.executable  # that of SetFit, which needs an older transformers
    cores: int = os.cpu_count() or 1
    threads: int = 1  # of each of Thaw's jobs; so many jobs run side by side as the cores allow
    gpus: int = _gpus()  # each does one job at a time; counts where a job ran on one
    quick: bool = False  # one task, and fewer points in the parts that have many

    @property
    def seed_list(self) -> list[int]:
        """The seeds 1 to n."""
        return list(range(1, self.seeds + 1))

    def folder(self, name: str) -> Path:
        """Return the folder in which a part works."""
        return self.out.resolve() / "work" / name

    def part(self, name: str) -> Path:
        """Return the file that holds what a part measured."""
        return self.out / "parts" / f"{name}.json"


QUICK = {"rows": 80, "seeds": 1, "rounds": 1, "quick": True}
