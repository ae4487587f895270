"""Comparisons of a pretrained encoder with the encoders that runs of several seeds adapted.

Each number comes with the same number between two of the runs, which is the difference of seeds alone. Rows are those
of validation, on which no run has trained.

N tokens, d width, L layers.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed
from thaw.data.corpus import scored_part
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import whole_task
from thaw.schema.by_kind import PROBE_CONFIGS
from thaw.training.run_inputs import Inputs

BETWEEN = "between_seeds"  # the name of the score between two runs
PRETRAINED = None  # the pretrained encoder among `sides`, which are by seed
BATCH = 2048  # tokens of a batch


class EncoderComparison:
    """A pretrained encoder and the encoders that runs adapted.

    Args: the spec of a probe; the inputs of the pretrained encoder, and by seed those of the adapted ones.
    """

    def __init__(self, spec: dict, pretrained: Inputs, adapted: dict[int, Inputs]):
        """Keep the sides. Raises UserError for fewer than two seeds."""
        if len(adapted) < 2:
            raise UserError(f"{spec['of']['probe']}: {len(adapted)} run; the comparison of seeds needs two or more")
        self.task = whole_task(spec)
        self.entry: Any = PROBE_CONFIGS.model_validate(spec["probe"])  # of the model of its kind
        self.numbers, self.split, self.layers = spec["read"], self.task["validation"], spec["layers"]
        self.sides: dict[int | None, Inputs] = {PRETRAINED: pretrained}
        self.sides.update((seed, one) for seed, one in adapted.items())
        self.seeds = list(adapted)
        self._scored = scored_part(pretrained.corpus, self.split, self.task, spec["subset"])

    @property
    def pairs(self) -> Iterator[tuple[int, str, tuple[int | None, int]]]:
        """Yield (seed, name of the score, two sides): each run with the pretrained encoder, and with the next run."""
        for seed, following in zip(self.seeds, [*self.seeds[1:], self.seeds[0]], strict=True):
            yield seed, self.entry.kind, (PRETRAINED, seed)
            yield seed, BETWEEN, (seed, following)

    def token_positions(self) -> np.ndarray:
        """Return the positions of the tokens that are compared among those of the rows, without special tokens.

        They ascend. If there are more than the probe's entry allows, the same ones are drawn each time.
        """
        total = len(self.sides[PRETRAINED].store.in_texts(self.split, self._scored))
        order = np.random.default_rng(derive_seed(0, "compared tokens")).permutation(total)
        return np.sort(order[: self.entry.tokens])

    def states(self, side: int | None, layer: int, positions: np.ndarray) -> torch.Tensor:
        """Return the states of a layer at some positions, float32 [N, d]; a store may hold other rows than another."""
        store = self.sides[side].store
        return store.states(layer, self.split).at(store.in_texts(self.split, self._scored)[positions])

    def rows(self) -> np.ndarray:
        """Return the rows of validation that encoders read, at most as many as the entry allows, the same each time."""
        order = np.random.default_rng(derive_seed(0, "compared rows")).permutation(len(self._scored))
        return self._scored[np.sort(order[: self.entry.examples])]

    def encoder(self, side: int | None) -> Encoder:
        """Return the encoder of a side, from text, frozen and in eval mode."""
        return self.sides[side].whole_encoder().eval()

    def by_layer(self, measure: Callable) -> tuple[list[dict], list[dict]]:
        """Return rows and layer scores of a kind that has one number for each layer and pair.

        `measure(layer)` gives {(one side, other side): {score: value}}, with the kind's name among the scores.
        """
        rows, layer_scores = [], []
        for layer in self.numbers:
            values = measure(layer)
            scores: dict[int, dict] = {seed: {} for seed in self.seeds}
            for seed, name, pair in self.pairs:
                other = "pretrained" if pair[0] is PRETRAINED else pair[1]
                rows.append({"layer": layer, "seed": seed, "with": other, **values[pair]})
                scores[seed][name] = values[pair][self.entry.kind]
            layer_scores += [{"layer": layer, "seed": s, "scores": {self.split: one}} for s, one in scores.items()]
        return rows, layer_scores
