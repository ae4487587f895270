"""Rates of the store: batches of an epoch as training reads them, and payloads as the extraction writes them.

A batch is handed over as float32, padded. Its bytes are those that a memory copy of the same bytes copies, batch by
batch, into one place, from a source as large as the epoch. One thread on both sides, so that the processor's seconds
can be counted, which other programs do not lengthen; of writing they leave out what the disk takes.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from thaw.core.files import write_json
from thaw.core.runtime import set_threads
from thaw.features.payload import Payload
from thaw.features.row_sets import batches
from thaw.features.store import FeatureStore
from thaw.training.model_trainer import shuffled_batches

from ..measuring import median_seconds

REPEATS = 9
MOST = 2**30  # bytes of the source of a copy


def main() -> None:
    """Measure reading and writing, and write what was found."""
    job, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    set_threads(1)
    store, boundary = FeatureStore(job["features"]), job["boundary"]
    write_json(out, reading(store, boundary, job["batch_size"]) | writing(store, boundary))


def _seconds(action: Callable[[], object]) -> float:
    """Return the processor's seconds of what one thread does."""
    return median_seconds(action, REPEATS, clock=time.process_time)


def reading(store: FeatureStore, boundary: int, size: int) -> dict:
    """Return the rates of reading an epoch of training batches, of bytes handed over and of bytes in the file."""
    states = store.states(boundary, "train")
    epoch = [(rows, store.batch("train", rows)) for rows in shuffled_batches(store.sizes("train"), size, 1)]
    handed = [states.gather(rows, batch).numel() for rows, batch in epoch]
    stored = [int(store.lengths("train")[rows].sum()) * store.part_card(boundary)["width"] for rows, _ in epoch]

    def read() -> None:
        for rows, batch in epoch:  # one batch at a time is held, as in training
            states.gather(rows, batch)

    seconds = _seconds(read)
    copied = _seconds(copies(handed, torch.float32))
    raw = _seconds(copies(stored, torch.int16))
    bytes_handed, bytes_stored = 4 * sum(handed), states.flat.itemsize * sum(stored)
    return {
        "read_vs_copy": copied / seconds,
        "read_vs_copy_of_stored_bytes": raw / seconds,
        "read_gb_s": bytes_handed / seconds / 1e9,
        "read_stored_gb_s": bytes_stored / seconds / 1e9,
        "copy_gb_s": bytes_handed / copied / 1e9,
        "tokens_s": int(store.lengths("train").sum()) / seconds,
        "bytes_handed": bytes_handed,
    }


def copies(sizes: list[int], dtype: torch.dtype):
    """Return what copies so many numbers at a time, from one end of a long source to the other, to one place."""
    source = torch.ones(min(sum(sizes), MOST // dtype.itemsize), dtype=dtype)
    place = torch.empty(max(sizes), dtype=dtype)

    def once() -> None:
        start = 0
        for size in sizes:
            start = start if start + size <= len(source) else 0
            place[:size].copy_(source[start : start + size])
            start += size

    return once


def writing(store: FeatureStore, boundary: int) -> dict:
    """Return the rate of writing a payload in the extraction's batches, to disk and flushed, beside a copy's."""
    card = store.part_card(boundary)
    shapes = {split: (store.tokens(split), card["width"]) for split in store.splits}
    parts = [(split, store.places(split, rows)) for split in store.splits for rows in batches(store.sizes(split))]
    most = max(len(places) for _, places in parts)
    states = torch.randn(most, card["width"])

    def once() -> None:
        with tempfile.TemporaryDirectory(dir=store.folder) as folder:
            payload = Payload.create(Path(folder) / "b.safetensors", card["dtype"], shapes)
            for split, places in parts:
                payload.put(split, places, states[: len(places)])
            payload.flush()

    seconds = _seconds(once)
    copied = _seconds(copies([len(places) * card["width"] for _, places in parts], torch.int16))
    size = sum(int(np.prod(shape)) for shape in shapes.values()) * 2
    return {"write_gb_s": size / seconds / 1e9, "write_vs_copy": copied / seconds}


if __name__ == "__main__":
    main()
