"""What a probe reads: the vectors of every layer on every split that it needs and their targets, or a run's model.

K layers that are read, N vectors (one a text, or one a word that has a token), d width, C classes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thaw.core.boundaries import cached_layers_read
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.core.runtime import derive_seed
from thaw.declarations.task_types import TARGET_OF_TYPE
from thaw.evaluation.metrics import score
from thaw.evaluation.result_files import select_rows
from thaw.evaluation.target_kinds import target_of
from thaw.heads.convex import Solution, fit_classes, fit_scores
from thaw.heads.linear import LinearHead
from thaw.schema.by_kind import PROBE_CONFIGS
from thaw.schema.head import HeadConfig
from thaw.training.context import TaskContext
from thaw.training.head_candidates import best_strength
from thaw.training.head_vectors import VectorReader, Vectors
from thaw.training.run_inputs import Inputs
from thaw.training.task_model import BatchLoader, TaskModel, resumed

CHOSEN_ON = 0.2  # share of the training rows on which a strength or an epoch is chosen; nothing is fitted to it
GAP = 3e-4  # how near to the least objective a probe is fitted, as a share of it
TOGETHER = 2**31  # bytes of vectors up to which layers are solved at once


class ProbeContext(TaskContext):
    """A task as any probe of one encoder reads it, with its rows to fit.

    A class that derives from it sets `splits`: by split its rows, with a method `part`.

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


@dataclass
class Split:
    """The rows of a split, their targets as the task encodes them, and by layer their vectors, in that order."""

    rows: np.ndarray
    gold: list | np.ndarray
    layers: list[Vectors]

    def part(self, positions: np.ndarray) -> "Split":
        layers = [vectors.of(positions) for vectors in self.layers]
        return Split(self.rows[positions], select_rows(self.gold, positions), layers)

    def targets(self) -> np.ndarray:
        """Return the target [N] of each vector."""
        return self.layers[0].gold(self.gold)


class Reading(ProbeContext):
    """A task as a probe sees it: splits, layers, and how a solution is scored.

    Args: the spec of a probe; its inputs. Raises UserError where the training rows have a single label.
    """

    def __init__(self, spec: dict, inputs: Inputs):
        """Read the vectors of all layers on train (see `read_rows`), validation and test."""
        super().__init__(spec, inputs)
        gold = {split: self.gold(split, rows) for split, rows in self.rows.items()}
        self._check(gold["train"])
        layers: dict[str, list[Vectors]] = {split: [] for split in self.rows}
        for number, phase in zip(self.numbers, self.phases, strict=True):
            encoder = resumed(self.encoder_folder, phase["boundary"], number, {}, self.device)
            read = VectorReader(encoder, self._head(number), cached_layers_read([phase]), self.device)
            for split, rows in self.rows.items():
                layers[split].append(read(self.store, split, rows, self.word_counts(split, rows)))
        self.splits = {split: Split(rows, gold[split], layers[split]) for split, rows in self.rows.items()}

    def fit(self, split: Split) -> list[list[Solution]]:
        """Return the solutions of each layer and strength on some rows; fewer vectors than labels are a UserError."""
        targets = torch.as_tensor(split.targets(), device=self.device)
        if len(targets) < len(self.labels):
            raise UserError(
                f"task {self.task['id']}: {len(targets)} examples to fit for {len(self.labels)} labels; a probe needs "
                "at least one for each: take a larger subset"
            )
        values = [vectors.values for vectors in split.layers]
        if not self.labels:
            return [fit_scores(value.unsqueeze(0), targets, self.entry.l2)[0] for value in values]
        at_once = max(1, TOGETHER // (4 * values[0].numel()))
        groups = (torch.stack(values[start : start + at_once]) for start in range(0, len(values), at_once))
        classes, strengths = len(self.labels), self.entry.l2
        return [solutions for group in groups for solutions in fit_classes(group, targets, classes, strengths, GAP)]

    def scores(self, split: Split, layer: int, solution: Solution) -> dict[str, float | None]:
        """Return the task's metrics of a solution, by its layer's position."""
        vectors = split.layers[layer]
        logits = solution.logits(vectors.values)
        target = TARGET_OF_TYPE[self.task["type"]]
        predictions = vectors.to_predictions(split.rows, logits if self.labels else logits.squeeze(1), target)
        return score(self.task, split.gold, predictions.values, self.labels)

    def main(self, split: Split, layer: int, solution: Solution) -> float | None:
        """Return the task's main metric of a solution."""
        return self.scores(split, layer, solution)[self.main_metric]

    def best(self, held: Split, layer: int, solutions: list[Solution]) -> Solution:
        """Return the solution of a layer that scores highest on held-out rows; of equals the strongest penalty."""
        scores = [self.main(held, layer, solution) for solution in solutions]
        return solutions[best_strength(scores, self.entry.l2)]

    def majority(self) -> dict[str, dict[str, float | None]]:
        """Return what the most frequent label in train (or the mean, or the shares of labels) scores on each split."""
        target, scores = target_of(self.task), {}
        constant = target.constant(self.splits["train"].gold)
        for name in self.scored:
            gold = self.splits[name].gold
            scores[name] = score(self.task, gold, target.repeated(constant, gold), self.labels)
        return scores

    def whole(self) -> VectorReader:
        """Return what reads the last layer's vectors from text, through the frozen encoder, pretrained or adapted."""
        encoder = self.inputs.whole_encoder()
        encoder.thaw(set())
        return VectorReader(encoder, self._head(self.layers), [], self.device)

    def _head(self, number: int) -> LinearHead:
        """Return the head whose pooling makes one vector of the states of a layer."""
        pooling = self.entry.pooling
        head = HeadConfig(kind="linear", pooling=pooling, separate_pooling=pooling, layers={"layer": number})
        return self.build_linear(head).to(self.device)

    def _check(self, gold) -> None:
        """Raise UserError where there are no two labels, or no two rows, one to fit and one to choose by."""
        flat = np.concatenate([np.asarray(tags, dtype=np.int64) for tags in gold]) if self.words else np.asarray(gold)
        if self.labels and len(np.unique(flat, axis=0)) < 2:
            only = f"the label {self.labels[int(flat[0])]!r}" if flat.ndim == 1 else "the same labels"
            raise UserError(
                f"task {self.task['id']}: all training rows of the subset have {only}; a probe needs two labels or "
                "more: take a larger subset"
            )
        if len(gold) < 2:
            raise UserError(
                f"task {self.task['id']}: a probe needs two training rows, to fit and to choose by; take a larger "
                "subset"
            )


def finished(reading: Reading) -> TaskModel:
    """Return the model of the run whose encoder is read: its encoder and its own head, in eval mode."""
    from safetensors.torch import load_file

    adapted = reading.inputs.adapted
    assert adapted and adapted.run  # a probe of runs reads one
    folder = adapted.run
    record, file = read_json(folder / "metrics.json"), folder / "head.safetensors"
    head = reading.build_head(HeadConfig.of_run(record["spec"], record["chosen"]))
    with wrap_corruption(file, folder / "metrics.json"):
        head.load_state_dict(load_file(file))
    model = TaskModel(adapted.encoder(), head, "fp32").to(reading.device)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.eval()


@torch.no_grad()
def validation_score(reading: Reading, model: TaskModel) -> float | None:
    """Return the main metric on the first `examples` rows of validation."""
    split = reading.task["validation"]
    rows = reading.rows[split][: reading.entry.examples]
    loader = BatchLoader(reading.inputs.store, [], reading.device)
    return reading.main_score(model.predict(loader, split, rows, reading.word_counts(split, rows)), split)
