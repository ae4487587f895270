"""The matrix products of fine-tuning alone: the shapes, the order and the type of the real batches, and nothing else.

S sequences, T tokens, n = S x T, d width, f feed-forward width, h heads.
"""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from thaw.core.files import read_json, write_json
from thaw.core.runtime import derive_seed, set_threads
from thaw.features.store import FeatureStore
from thaw.training.model_trainer import shuffled_batches

from ..measuring import median_seconds

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def shapes(sequences: int, tokens: int, config: dict) -> list[tuple[int, int, int, int]]:
    """Return the products of one layer forward and backward over a batch: (how many, rows, inner, columns).

    Each forward product [m, k] [k, n] has two of the same size on the way back: for its input and for its weights, or
    for both states that it multiplied.
    """
    width, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    n, part = sequences * tokens, width // heads
    forward = [(1, n, width, width)] * 4 + [(1, n, width, inner), (1, n, inner, width)]
    forward += [(sequences * heads, tokens, part, tokens), (sequences * heads, tokens, tokens, part)]
    return [shape for b, m, k, n in forward for shape in ((b, m, k, n), (b, m, n, k), (b, k, m, n))]


def operations(products: list[tuple[int, int, int, int]]) -> int:
    """Return the floating-point operations of some products."""
    return sum(2 * b * m * k * n for b, m, k, n in products)


def work(products: list[tuple[int, int, int, int]], dtype: torch.dtype, device: str) -> Callable[[], None]:
    """Return what carries out these products once, on operands that are made now."""
    operands = {shape: _operands(shape, dtype, device) for shape in set(products)}

    def once() -> None:
        for shape in products:
            left, right = operands[shape]
            torch.matmul(left, right)

    return once


def _operands(shape: tuple[int, int, int, int], dtype: torch.dtype, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two matrices, or two stacks of them, that have a product of this shape."""
    b, m, k, n = shape
    sizes = ((m, k), (k, n)) if b == 1 else ((b, m, k), (b, k, n))
    return tuple(torch.randn(size, device=device).to(dtype) for size in sizes)


def main() -> None:
    """Time the products of all epochs of a run, for each seed, and write the median."""
    job, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    set_threads(job["threads"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    config, store = read_json(Path(job["encoder"]) / "config.json"), FeatureStore(job["features"])
    taken, counted = [], []
    for seed in job["seeds"]:
        seconds = flops = 0.0
        for epoch in range(1, job["epochs"] + 1):
            sizes = store.sizes("train")
            for rows in shuffled_batches(sizes, job["batch_size"], derive_seed(seed, f"order:1:{epoch}")):
                layer = shapes(len(rows), int(sizes[rows].max()), config)
                once = work(layer, TYPES[job["precision"]], device)
                seconds += median_seconds(once, 3, wait) * config["num_hidden_layers"]
                flops += operations(layer) * config["num_hidden_layers"]
        taken.append(seconds)
        counted.append(flops)
    found = {"seconds": statistics.median(taken), "flops": statistics.median(counted)}
    write_json(out, found | {"precision": job["precision"], "device": device})


if __name__ == "__main__":
    main()
