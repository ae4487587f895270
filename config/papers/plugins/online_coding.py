"""Description length by online coding: the bits that transmit labels, given a layer (Voita and Titov 2020).

The labels of the training rows are sent in portions. The first costs log2 C a label; each further one costs what a
probe gives that was fitted to all before it, section 2.2 of the paper. Compression is the cost without any probe,
n log2 C, as a multiple of that. The strength is chosen for each portion, by the cross-entropy on validation. The
receiver has no validation rows, so the choice is sent too: log2 S bits for one of S strengths.
"""

from typing import Annotated

from pydantic import Field, field_validator

from thaw.declarations.probe_options import PoolingOptions, StrengthOptions
from thaw.declarations.probes import CURVES, LABELLED, VECTORS, ProbeKind

# Shares of the training rows after which online coding fits again: those of Voita and Titov 2020, section 4.1.
PORTIONS = [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5]


class MdlOptions(PoolingOptions, StrengthOptions):
    """Online coding."""

    portions: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        PORTIONS, min_length=1, description="shares of the training rows after which the probe is fitted again"
    )

    @field_validator("portions")
    @classmethod
    def _rising(cls, portions: list[float]) -> list[float]:
        if sorted(set(portions)) != portions:
            raise ValueError("portions must rise")
        return portions


PROBES = {
    "mdl": ProbeKind("thaw.papers.online_coding:mdl", MdlOptions, VECTORS, CURVES, "compression", version=2, **LABELLED)
}


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
