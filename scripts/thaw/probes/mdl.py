"""Description length by online coding: the bits that tell labels to somebody who has a layer (Voita and Titov 2020).

The training rows are told in portions. The first costs log2 C a label; each further one costs what a probe that was
fitted to all before it gives, section 2.2 of the paper. Compression is the cost without any probe, n log2 C, as a
multiple of that. The strength is chosen anew for each portion, by the cross-entropy on validation.
"""

import math

import numpy as np
import torch

from thaw.heads.convex import Solution
from thaw.probes.reading import Reading, Split
from thaw.runtime import stream


def mdl(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer and portion, and for each layer the length of the code and the compression."""
    train, judge = reading.splits["train"], reading.splits[reading.task["validation"]]
    order = np.random.default_rng(stream(seed, "mdl")).permutation(len(train.rows))
    starts = _starts(reading, train, order)
    classes, rows = len(reading.labels), []
    bits = np.zeros(len(reading.numbers))
    first = len(train.part(order[: starts[0]]).targets()) * math.log2(classes)
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        told, following = train.part(order[:start]), train.part(order[start:stop])
        for layer, solutions in enumerate(reading.fit(told)):
            costs = [_bits(judge, layer, solution, start) for solution in solutions]
            best = int(np.argmin(costs))
            spent = _bits(following, layer, solutions[best], start)
            bits[layer] += spent
            common = {"layer": reading.numbers[layer], "seed": seed, "l2": solutions[best].l2}
            rows.append(common | {"told": start, "following": stop - start, "bits": spent})
    whole = len(train.targets()) * math.log2(classes)
    ends = [
        {
            "layer": number,
            "seed": seed,
            "scores": {"train": {"compression": whole / (first + spent), "bits": first + spent}},
        }
        for number, spent in zip(reading.numbers, bits.tolist(), strict=True)
    ]
    return rows, ends


def _starts(reading: Reading, train: Split, order: np.ndarray) -> list[int]:
    """Return after how many rows a probe is fitted: the portions that hold at least one vector for each label."""
    found = sorted({round(share * len(order)) for share in reading.entry.portions} - {0})
    enough = [n for n in found if len(train.part(order[:n]).targets()) >= len(reading.labels)]
    return enough or [len(order) // 2]


def _bits(split: Split, layer: int, solution: Solution, told: int) -> float:
    """Return the bits that the labels of a split take under a solution that was fitted to so many rows.

    Its probabilities are mixed with equal ones, with a share of 1 / (rows + 1): a label that was never told before
    would else take any number of bits.
    """
    shares = solution.logits(split.layers[layer].values).double().softmax(1)
    mixed = (shares * told + 1 / shares.shape[1]) / (told + 1)
    targets = torch.as_tensor(split.targets(), device=shares.device)
    return -mixed.gather(1, targets.unsqueeze(1)).log2().sum().item()
