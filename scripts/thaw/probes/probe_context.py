"""A task as any probe of one encoder reads it: with the probe's options, layers, and rows to fit."""

from typing import Any

import numpy as np

from thaw.core.runtime import derive_seed
from thaw.schema.by_kind import PROBE_CONFIGS
from thaw.training.context import TaskContext
from thaw.training.run_inputs import Inputs

CHOSEN_ON = 0.2  # share of the training rows on which a strength or an epoch is chosen; nothing is fitted to it


class ProbeContext(TaskContext):
    """The context of a probe. A class that derives from it sets `splits`: by split its rows, with a method `part`.

    Attributes: entry, the probe's options; numbers of the layers that are read; phases, where each of them is read.
    """

    def __init__(self, spec: dict, inputs: Inputs):
        """Read the options. Args: the spec of a probe; its inputs."""
        super().__init__(spec, inputs)
        self.entry: Any = PROBE_CONFIGS.model_validate(spec["probe"])  # of the model of its kind
        self.numbers = spec["read"]
        self.phases = phases_of(spec)
        self.splits: dict = {}

    def divided(self, seed: int, part=None) -> tuple:
        """Return the training rows (or a part of them) to fit and those to choose by, drawn by a seed."""
        train = part or self.splits["train"]
        order = np.random.default_rng(derive_seed(seed, "choice")).permutation(len(train.rows))
        count = max(1, round(CHOSEN_ON * len(order)))
        return train.part(np.sort(order[count:])), train.part(np.sort(order[:count]))


def phases_of(spec: dict) -> list[dict]:
    """Return the boundary from which each layer of a probe is read; an adapted store has all layers."""
    return spec["phases"] or [{"boundary": number} for number in spec["read"]]
