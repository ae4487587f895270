"""Description length by online coding: the bits that transmit labels, given a layer (Voita and Titov 2020).

The labels of the training rows are sent in portions. The first costs log2 C a label; each further one costs what a
probe gives that was fitted to all before it, section 2.2 of the paper. Compression is the cost without any probe,
n log2 C, as a multiple of that. The strength is chosen for each portion, by the cross-entropy on validation. The
receiver has no validation rows, so the choice is sent too: log2 S bits for one of S strengths.
"""

import math

import numpy as np

from thaw.core.runtime import derive_seed
from thaw.probes.code_length import code_length
from thaw.probes.reading import Reading, Split


def mdl(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer and portion, and for each layer the length of the code and the compression."""
    train, judge = reading.splits["train"], reading.splits[reading.task["validation"]]
    order = np.random.default_rng(derive_seed(seed, "mdl")).permutation(len(train.rows))
    starts = _starts(reading, train, order)
    classes, rows = len(reading.labels), []
    bits = np.zeros(len(reading.numbers))
    first = len(train.part(order[: starts[0]]).targets()) * math.log2(classes)
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        sent, following = train.part(order[:start]), train.part(order[start:stop])
        for layer, solutions in enumerate(reading.fit(sent)):
            costs = [code_length(judge, layer, solution, start) for solution in solutions]
            best = int(np.argmin(costs))
            more = math.log2(len(costs)) + code_length(following, layer, solutions[best], start)
            bits[layer] += more
            common = {"layer": reading.numbers[layer], "seed": seed, "l2": solutions[best].l2}
            rows.append(common | {"told": start, "following": stop - start, "bits": more})
    whole = len(train.targets()) * math.log2(classes)
    layer_scores = [
        {
            "layer": number,
            "seed": seed,
            "scores": {"train": {"compression": whole / (first + more), "bits": first + more}},
        }
        for number, more in zip(reading.numbers, bits.tolist(), strict=True)
    ]
    return rows, layer_scores


def _starts(reading: Reading, train: Split, order: np.ndarray) -> list[int]:
    """Return after how many rows a probe is fitted: the portions that hold at least one vector for each label."""
    starts = sorted({round(share * len(order)) for share in reading.entry.portions} - {0})
    enough = [n for n in starts if len(train.part(order[:n]).targets()) >= len(reading.labels)]
    return enough or [len(order) // 2]
