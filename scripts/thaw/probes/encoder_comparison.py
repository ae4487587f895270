"""What is compared with what: an encoder as it was pretrained, and what runs of several seeds made of it.

Beside each number stands the same between two of the runs: how far two seeds alone are apart. Rows are those of
validation, on which no run has trained.

N tokens, d width, L layers.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import task_with_defaults
from thaw.schema.probe import PROBE_CONFIGS
from thaw.training.run_inputs import Inputs

BETWEEN = "between_seeds"  # the name of the score between two runs
PRETRAINED = None  # stands for a seed where the pretrained encoder is meant
BATCH = 2048  # tokens that are added at once


class EncoderComparison:
    """Encoders side by side.

    Args: the spec of a probe; what is read of the pretrained encoder, and by seed of those that runs left.
    """

    def __init__(self, spec: dict, pretrained: Inputs, adapted: dict[int, Inputs]):
        """Take what is compared. Raises UserError for fewer than two seeds."""
        if len(adapted) < 2:
            raise UserError(
                f"{spec['of']['probe']}: {len(adapted)} run; two seeds are due, since they are compared too"
            )
        self.task, self.entry = task_with_defaults(spec["task"]), PROBE_CONFIGS.model_validate(spec["probe"])
        self.numbers, self.split, self.layers = spec["read"], self.task["validation"], spec["layers"]
        self.sides: dict[int | None, Inputs] = {PRETRAINED: pretrained, **adapted}
        self.seeds = list(adapted)

    @property
    def pairs(self) -> Iterator[tuple[int, str, tuple[int | None, int]]]:
        """Yield (seed, name of the score, two sides): each run with the pretrained encoder, and with the next run."""
        for seed, following in zip(self.seeds, [*self.seeds[1:], self.seeds[0]], strict=True):
            yield seed, self.entry.kind, (PRETRAINED, seed)
            yield seed, BETWEEN, (seed, following)

    def places(self) -> np.ndarray:
        """Return where the tokens that are compared lie in the store, rising; special tokens are none of them.

        Where there are more than the probe's entry says, they are drawn, always the same.
        """
        found = self.sides[PRETRAINED].store.in_texts(self.split)
        order = np.random.default_rng(derive_seed(0, "compared tokens")).permutation(len(found))
        return np.sort(found[order[: self.entry.tokens]])

    def states(self, side: int | None, layer: int, places: np.ndarray) -> torch.Tensor:
        """Return the states of a layer at some places, float32 [N, d]."""
        return self.sides[side].store.states(layer, self.split).at(places)

    def rows(self) -> np.ndarray:
        """Return the rows of validation that are read anew, at most as many as the entry says, always the same."""
        total = len(self.sides[PRETRAINED].corpus.frame(self.split))
        order = np.random.default_rng(derive_seed(0, "compared rows")).permutation(total)
        return np.sort(order[: self.entry.examples])

    def encoder(self, side: int | None) -> Encoder:
        """Return the encoder of a side, from text, frozen and in eval mode."""
        inputs = self.sides[side]
        encoder = inputs.adapted.encoder() if inputs.adapted else Encoder.load(inputs.encoder).eval()
        return encoder.to(inputs.device)

    def told(self, measure: Callable) -> tuple[list[dict], list[dict]]:
        """Return rows and layer scores of a kind that has one number for each layer and pair.

        `measure(layer)` gives {(one side, other side): {score: value}}, with the kind's name among the scores.
        """
        rows, layer_scores = [], []
        for layer in self.numbers:
            found = measure(layer)
            scores: dict[int, dict] = {seed: {} for seed in self.seeds}
            for seed, name, pair in self.pairs:
                beside = "pretrained" if pair[0] is PRETRAINED else pair[1]
                rows.append({"layer": layer, "seed": seed, "with": beside, **found[pair]})
                scores[seed][name] = found[pair][self.entry.kind]
            layer_scores += [{"layer": layer, "seed": s, "scores": {self.split: found}} for s, found in scores.items()]
        return rows, layer_scores
