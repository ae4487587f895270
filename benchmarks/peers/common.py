"""What the peers share: their job as JSON, the rows of a task, the device, and what is written back.

A peer is run as `python -m benchmarks.peers.<name> job.json found.json` in the environment of requirements.txt.
"""

import contextlib
import importlib.metadata
import json
import resource
import sys
import time
from pathlib import Path

LIBRARIES = ("torch", "transformers", "accelerate", "sentence-transformers", "scikit-learn", "datasets", "numpy")


def read_rows(task: dict, split: str) -> tuple[list, list[int]]:
    """Return the texts of a split, or pairs of texts, and the positions of their labels.

    `task` has `folder`, `columns` and `labels`.
    """
    lines = (Path(task["folder"]) / f"{split}.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    texts = [[row[column] for column in task["columns"]] for row in rows]
    return [text[0] if len(text) == 1 else text for text in texts], [task["labels"].index(row["label"]) for row in rows]


def device() -> str:
    """Return the device that a peer computes on: CUDA's first where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def compute(job: dict):
    """Return the context of products: autocast to bf16 where the job asks for it."""
    import torch

    return torch.autocast(device(), torch.bfloat16) if job["bf16"] else contextlib.nullcontext()


class Clock:
    """Seconds by part, with the work of a GPU waited for: `with clock("train"): ...`."""

    def __init__(self):
        self.parts: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, part: str):
        """Add the time spent inside to a part."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            _wait()
            self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - begin


def _wait() -> None:
    """Wait for what a GPU still has to do."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


class Reused:
    """Weights after phases that a later cell has too, as the frozen run's that stack-then-fine-tune starts from."""

    def __init__(self, cells: list[dict]):
        """Find what will be wanted again."""
        self.wanted = {_beginning(cell, count) for cell in cells for count in range(1, len(cell["phases"]))}
        self.kept: dict[str, dict] = {}

    def start(self, cell: dict, model) -> int:
        """Load what is kept of the cell's first phases; return how many these are."""
        for count in range(len(cell["phases"]) - 1, 0, -1):
            if (found := self.kept.get(_beginning(cell, count))) is not None:
                model.load_state_dict(found)
                return count
        return 0

    def keep(self, cell: dict, count: int, model) -> None:
        """Keep the weights after so many phases, if they are wanted again."""
        if (name := _beginning(cell, count)) in self.wanted:
            self.kept[name] = {key: value.clone() for key, value in model.state_dict().items()}


def _beginning(cell: dict, count: int) -> str:
    """Return what tells the first phases of a cell from those of others."""
    return json.dumps([*(cell[key] for key in ("task", "head", "seed", "batch_size")), cell["phases"][:count]])


def run(main) -> None:
    """Give a peer its job, and write what it returns with its clock, peak memory and versions."""
    job, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    clock = Clock()
    found = main(job, clock)
    found["seconds"] = clock.parts
    found["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        found["device_memory_mb"] = torch.cuda.max_memory_allocated() / 2**20
    found["versions"] = {name: _version(name) for name in LIBRARIES}
    out.write_text(json.dumps(found))


def _version(name: str) -> str | None:
    """Return a library's version, None where it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
