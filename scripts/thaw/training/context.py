"""A task as runs and probes read it: its labels and targets, the rows of each split, the store and the encoder.

L layers of the encoder, d width of its states, C outputs of a head.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from thaw.adaptation.selectors import renumbered
from thaw.compute_cost.flops import Shape, encoder_flops
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.declarations.task_types import EXTRACTION_TYPES, WORD_TYPES
from thaw.encoders.parameter_counts import parameters_of_layers
from thaw.evaluation.metrics import score
from thaw.evaluation.result_files import Predictions, decided, joined, read_rows, scored_splits, select_rows, whole_task
from thaw.evaluation.transfer_sets import TransferSet
from thaw.features.batch import pieces
from thaw.features.store import FeatureStore
from thaw.heads.base import Head
from thaw.heads.linear import LinearHead
from thaw.heads.registry import build
from thaw.schema.head import HeadConfig
from thaw.schema.student import kept_layers
from thaw.training.run_inputs import Inputs


class TaskContext:
    """What the spec of a run or of a probe, and the inputs that it names, say of the task.

    Attributes: inputs; task, with its defaults; labels in the order of the outputs, none for scores; words, whether
    each word has a target; rows by split, of train those of the subset; layers L; kept, those that the run's encoder
    has, None for all; shape of the encoder; corpus; store of its tokens and states; folder of the pretrained encoder.
    Settings and epochs are chosen by `main_metric` on the split `validation`; `scored` are the splits that are scored.
    """

    def __init__(self, spec: dict, inputs: Inputs):
        """Read task, labels, rows and the encoder's configuration."""
        self.inputs, self.layers = inputs, spec["layers"]
        self.corpus, self.store, self.encoder_folder = inputs.corpus, inputs.store, inputs.encoder
        self.kept = kept_layers(spec)
        self.task = whole_task(spec)
        self.labels = self.corpus.labels(self.task["target"])
        self.words = self.task["type"] in WORD_TYPES
        self.rows = read_rows(spec, self.corpus)
        self.training_rows, self.scored = self.rows["train"], scored_splits(self.task)
        self.validation: str = self.task["validation"]
        self.main_metric: str = self.task["metrics"][0]
        self.shape = Shape.of(read_json(self.encoder_folder / "config.json"))

    @property
    def balanced(self) -> bool:
        """Whether the loss weighs classes by how rare they are."""
        return self.task.get("class_weight") == "balanced"

    @property
    def device(self) -> torch.device:
        return self.inputs.device

    @property
    def joint_rows(self) -> dict[str, np.ndarray]:
        """The rows of train and those of validation, by split."""
        return {split: self.rows[split] for split in ("train", self.validation)}

    @property
    def joint_gold(self) -> np.ndarray | list:
        """The encoded targets of these rows, one split after the other."""
        return joined([self.gold(split, rows) for split, rows in self.joint_rows.items()])

    @property
    def encoder_parameters(self) -> int:
        """The number of parameters of the pretrained encoder, in the layers that are kept."""
        every = read_json(self.encoder_folder / "card.json")["parameters"]
        dropped = set(range(1, self.layers + 1)) - set(self.kept or range(1, self.layers + 1))
        return every - parameters_of_layers(self.encoder_folder, dropped) if dropped else every

    def counted(self, boundary: int | None, components: list[str]) -> tuple[int | None, list[str]]:
        """Return a boundary and components with layers counted among those that there are, as operations are."""
        if not self.kept:
            return boundary, components
        return boundary and len(self.layers_up_to(boundary)), [renumbered(name, self.kept) for name in components]

    def layers_up_to(self, boundary: int) -> list[int]:
        """Return the layers that are computed up to a boundary, ascending."""
        return [n for n in (self.kept or range(1, self.layers + 1)) if n <= boundary]

    def gold(self, split: str, rows) -> np.ndarray | list:
        return select_rows(self.corpus.targets(self.task, split), rows)

    def word_counts(self, split: str, rows) -> list[int] | None:
        """Return the number of words of some rows, None where a target belongs to a whole text."""
        return [len(tags) for tags in self.gold(split, rows)] if self.words else None

    def main_score(self, predictions: Predictions, split: str) -> float | None:
        """Return the main metric of predictions on a split, None where it is not defined.

        What validation decides of predictions is decided on these.
        """
        decide, _ = decided(self.task, self.corpus, {split: predictions}, split)
        predictions = decide(predictions)
        gold = self.gold(split, predictions.rows)
        return score(self.task, gold, predictions.values, self.labels)[self.main_metric]

    def build_head(self, entry: HeadConfig) -> Head:
        """Return a new head on the CPU; what is random in it comes from the current stream of random numbers."""
        task_type = self.task["type"]
        outputs = 2 if task_type in EXTRACTION_TYPES else len(self.labels) or 1
        return build(entry, self.shape.width, outputs, task_type, self.store.separate_encoding, self.layers)

    def build_linear(self, entry: HeadConfig) -> LinearHead:
        """Return a new head that can be fitted to constant vectors. Raises UserError for another."""
        head = self.build_head(entry)
        if isinstance(head, LinearHead) and head.constant_vectors:
            return head
        raise UserError(
            f"optimizer lbfgs cannot fit a head with pooling: {entry.pooling}, which is learned too; "
            "take pooling first, mean or max, or a strategy that trains with adamw, such as frozen_sgd"
        )

    def shape_below(self, head: Head) -> Shape:
        """Return the shape of the encoder up to the highest layer that a head reads."""
        return replace(self.shape, layers=len(self.layers_up_to(head.combination.read[-1])))

    def transfer_predictions(self, predict: Callable) -> list[tuple[TransferSet, dict[str, Predictions]]]:
        """Return the predictions on the test splits of the transfer sets, each set with its own by split.

        Args: predict(corpus, store, split, rows, word counts).
        """
        sets = self.inputs.transfer_sets
        return [
            (other, {split: predict(other.corpus, store, split, rows, other.words(split)) for split, rows in rows_of})
            for other, store, rows_of in ((other, store, other.rows().items()) for other, store in sets)
        ]


def inference_cost(context: TaskContext, head: Head, inserted: int = 0) -> dict:
    """Return the layers of the encoder that a prediction needs, and the mean operations of one test example.

    They are those of a trained model that is given one text or pair at a time, each sequence by itself and nothing from
    a cache: of the embeddings and the layers up to the highest one that the head reads, of inserted matrices (each
    parameter is multiplied once a token), of what combines the layers, as a side network, and of the head. The examples
    are the scored ones of the task's first test split.
    """
    shape, store, split = context.shape_below(head), context.store, context.task["test"][0]
    rows, counts = _distinct(store, split, context.rows[split])
    total = 0.0
    for row, count in zip(rows, counts, strict=True):
        batch = store.batch(split, [row])
        lengths = batch.mask.sum(1).tolist()
        alone = [replace(batch, mask=batch.mask[[place], :tokens]) for place, tokens in enumerate(lengths)]
        encoder = encoder_flops(shape, lengths) + 2 * inserted * sum(lengths)
        total += count * (encoder + sum(map(head.combination.flops, alone)) + head.flops(batch))
    return {"layers": shape.layers, "flops": float(total / counts.sum())}


def _distinct(store: FeatureStore, split: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one row of each shape among some rows, and how many have it: operations depend on lengths alone."""
    lengths = np.concatenate([_lengths(store, split, piece) for piece in pieces(rows)])
    _, first, counts = np.unique(lengths, axis=0, return_index=True, return_counts=True)
    return rows[first], counts


def _lengths(store: FeatureStore, split: str, rows: np.ndarray) -> np.ndarray:
    """Return the tokens of each sequence and of each text in it, the words, and those with a token, int [N, ...]."""
    batch = store.batch(split, rows)
    tokens = torch.stack([batch.mask.sum(1), (batch.texts == 1).sum(1), (batch.texts == 2).sum(1)], 1)
    counts = store.counts(split)
    each = np.zeros((len(rows), counts.max(), 3), np.int64)
    each[np.arange(counts.max()) < counts[rows][:, None]] = tokens.numpy()
    numbers = [each.reshape(len(rows), -1)]
    if batch.first_pieces.numel():
        numbers += [store.has_word(split)[1][rows][:, None], (batch.first_pieces >= 0).sum(1).numpy()[:, None]]
    return np.concatenate(numbers, axis=1)
