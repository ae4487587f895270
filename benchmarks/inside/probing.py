"""Our side of the probes: all layers and strengths by the linear probe's solver, on the features that the peer reads.

K layers, N rows, d width.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

from thaw.core.files import write_json
from thaw.core.runtime import set_threads
from thaw.heads.convex import fit_classes

SPLITS = ("train", "validation", "test")


def main() -> None:
    """Fit all probes of each task, score them on validation and test, and write scores and seconds."""
    job, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    set_threads(job["threads"])
    found, seconds = [], 0.0
    for task in job["tasks"]:
        folder = Path(job["features"])
        states = {split: torch.from_numpy(np.load(folder / f"{task}.{split}.states.npy")) for split in SPLITS}
        labels = {split: torch.from_numpy(np.load(folder / f"{task}.{split}.labels.npy")) for split in SPLITS}
        begin = time.perf_counter()
        classes = int(labels["train"].max()) + 1
        fits = fit_classes(states["train"], labels["train"], classes, job["strengths"], job["gap"])
        for layer, solutions in enumerate(fits):
            for solution in solutions:
                scores = {split: _accuracy(solution, states[split][layer], labels[split]) for split in SPLITS[1:]}
                found.append(
                    {"task": task, "layer": layer, "strength": solution.l2, "scores": scores}
                    | {"objective": solution.objective}
                )
        seconds += time.perf_counter() - begin
    write_json(out, {"cells": found, "seconds": {"train": seconds}})


def _accuracy(solution, vectors: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the share of right answers to vectors [N, d]."""
    return (solution.logits(vectors).argmax(-1) == labels).float().mean().item()


if __name__ == "__main__":
    main()
