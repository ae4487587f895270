"""The encoder's part of a training step, forward and backward, resumed at each boundary and from text.

The same training batches go through all depths in turn, each batch beginning with another depth, so that a change of
the machine's load meets all of them. Reading states, head and optimizer are left out.

S sequences, T tokens, d width, L layers.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch

from thaw.core.files import write_json
from thaw.core.runtime import derive_seed, set_threads
from thaw.encoders.transformers import Encoder
from thaw.features.store import FeatureStore
from thaw.training.model_trainer import shuffled_batches

REPEATS = 3


def resumed(folder: str, boundary: int | None, used: torch.Tensor, device) -> Encoder:
    """Return the encoder in training mode with all trained above a boundary, or with everything where it is None."""
    encoder = Encoder.load(folder)
    layers = len(encoder.components()) - 1
    below = 0 if boundary is None else boundary
    components = {f"layer.{n}" for n in range(below + 1, layers + 1)} | ({"embeddings"} if boundary is None else set())
    if boundary is None:
        encoder.keep_rows(used)
    encoder = encoder.resume_at(boundary).to(device)
    encoder.thaw(components)
    return encoder.train()


def main() -> None:
    """Time all depths and write the seconds of an epoch of batches at each: `full`, or the boundary's number."""
    job, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    set_threads(job["threads"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    store = FeatureStore(job["features"])
    epoch = shuffled_batches(store.sizes("train"), job["batch_size"], derive_seed(1, "order:1:1"))[: job["most"]]
    boundaries = store.boundaries()
    used = torch.cat([store.batch("train", rows).input_ids.flatten() for rows in epoch]).unique()
    encoders = {str(n): resumed(job["encoder"], n, used, device) for n in boundaries}
    encoders["full"] = resumed(job["encoder"], None, used, device)
    seconds = dict.fromkeys(encoders, 0.0)
    for turn, rows in enumerate(epoch):
        batch = store.batch("train", rows)
        states = {str(n): store.states(n, "train").gather(rows, batch).to(device) for n in boundaries}
        names = list(encoders)
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            seconds[name] += _step(encoders[name], batch.to(device), states.get(name), job["precision"])
    found = {"seconds": seconds, "batches": len(epoch), "device": device.type}
    if device.type == "cuda":
        found["device_memory_mb"] = torch.cuda.max_memory_allocated() / 2**20
    write_json(out, found)


def _step(encoder: Encoder, batch, state: torch.Tensor | None, precision: str) -> float:
    """Return the median seconds of going forward and backward through an encoder, after one that is not counted."""
    taken = []
    for _ in range(REPEATS + 1):
        _wait()
        begin = time.perf_counter()
        with torch.autocast(batch.mask.device.type, torch.bfloat16, enabled=precision == "bf16"):
            last = encoder(batch, state)
        last.float().sum().backward()
        _wait()
        taken.append(time.perf_counter() - begin)
        encoder.zero_grad(set_to_none=True)
    return statistics.median(taken[1:])


def _wait() -> None:
    """Wait for what a GPU still has to do."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
