"""A head on frozen features, fitted to convergence: its vectors, its strength by validation, its predictions.

N vectors (one a text, or one a word that has a token).
"""

from dataclasses import dataclass

import numpy as np
import torch

from thaw.compute_cost.flops import encoder_flops
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.boundaries import cached_layers_read
from thaw.core.errors import UserError
from thaw.core.runtime import log
from thaw.evaluation.result_files import Predictions, evaluate, scored_training_rows, select_rows
from thaw.evaluation.transfer_sets import TransferSet, with_transfer_scores
from thaw.heads.base import Head
from thaw.heads.convex import Solution, fit_classes, fit_scores
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig
from thaw.training.context import TaskContext
from thaw.training.head_vectors import Reader, Vectors
from thaw.training.inference_cost import inference_cost
from thaw.training.run_inputs import Inputs
from thaw.training.stored_vectors import StoredReader
from thaw.training.task_model import resumed

EVALUATIONS = 100  # of the objective, about, until a head has been fitted with one strength


@dataclass
class FittedHead:
    """What a fit leaves: the head, its solution, its predictions by split (train: all rows), its history and cost.

    `validation` is the main metric there, by which one view is preferred to another.
    """

    head: Head
    solution: Solution
    predictions: dict[str, Predictions]
    transfer: list[tuple[TransferSet, dict[str, Predictions]]]
    validation: float | None
    history: list[dict]
    cost: dict


class HeadFit:
    """The fit of a head-only run. The problem is convex: the seed changes nothing, and all seeds share one fit.

    Args: the spec, which needs no seed; the inputs. Raises UserError for a head that is not linear in its features.
    """

    def __init__(self, spec: dict, inputs: Inputs):
        """Read settings, targets and rows."""
        self.inputs, self.context = inputs, TaskContext(spec, inputs)
        (entry,) = spec["phases"]
        phase = PhaseConfig.of_spec(entry)
        self.phases, self.stages, self.strengths = [phase], [phase.stages(entry)], phase.l2
        self.entry, self.boundary = entry, entry["boundary"]
        self.head = self.context.build_head(HeadConfig.model_validate(spec["head"])).to(self.context.device)
        self.highest, self.shape = self.head.combination.read[-1], self.context.shape_below(self.head)
        if not self.head.fixed:
            raise UserError(
                f"optimizer lbfgs cannot fit a head with pooling: {self.head.entry.pooling}, which is learned too; "
                "take pooling first, mean or max, or a strategy that trains with adamw, such as frozen_sgd"
            )

    @property
    def rows(self) -> np.ndarray:
        """The rows of train to which the head is fitted."""
        return self.context.training_rows

    @property
    def passes(self) -> int:
        """About how often the fit reads all rows."""
        return len(self.strengths) * EVALUATIONS

    def run(self, watch: Stopwatch) -> FittedHead:
        """Fit all strengths, choose one by the main metric on validation (of equals the strongest), and predict."""
        context, rows = self.context, self.context.rows
        with watch("load"):
            read = self.reader(self.head)
            vectors = {
                split: read(context.store, split, chosen, context.word_counts(split, chosen))
                for split, chosen in rows.items()
            }
        log(f"fitting {len(self.strengths)} strengths to {len(vectors['train'].values)} vectors")
        with watch("train"):
            solutions = self._solve(vectors["train"])
        with watch("evaluate"):
            validation = context.validation
            scores = [
                context.main_score(self._predictions(solution, vectors[validation], rows[validation]), validation)
                for solution in solutions
            ]
            best = best_strength(scores, [solution.l2 for solution in solutions])
            chosen = solutions[best]
            predictions = {split: self._predictions(chosen, vectors[split], rows[split]) for split in rows}
            transfer = context.transfer_predictions(
                lambda store, split, rows, words: self._predictions(chosen, read(store, split, rows, words), rows)
            )
        log(f"l2 {chosen.l2:g} chosen on {validation}")
        self.head.load_state_dict(chosen.state())
        history = [
            {"phase": 1, "l2": s.l2, "step": s.steps, "loss": s.objective, "validation": score}
            for s, score in zip(solutions, scores, strict=True)
        ]
        return FittedHead(self.head, chosen, predictions, transfer, scores[best], history, self._cost(solutions))

    def reader(self, head: Head) -> Reader:
        """Return what reads the vectors for a head: stored ones, or through the layers above the stored states."""
        device = self.context.device
        if "vectors" in self.entry:
            return StoredReader(self.entry["vectors"], head, device)
        encoder = resumed(self.context.encoder_folder, self.boundary, self.highest, {}, device)
        return Reader(encoder, head, cached_layers_read([self.entry]), device)

    def outcome(self, fitted: FittedHead, seed: int) -> dict:
        """Return scores, rows, flags and the chosen strength as a seed's metrics.json has them."""
        predictions, task = fitted.predictions["train"], self.context.task
        scored = np.searchsorted(self.rows, scored_training_rows(self.rows, seed))
        sample = Predictions(self.rows[scored], select_rows(predictions.values, scored))
        outcome = evaluate(task, self.context.corpus, {**fitted.predictions, "train": sample})
        outcome = with_transfer_scores(outcome, task, fitted.transfer)
        outcome["flags"] += [] if fitted.solution.converged else ["not_converged"]
        return outcome | {"chosen": {"l2": fitted.solution.l2}}

    @property
    def pairs(self) -> str:
        """The encoding of pairs of texts: joint (cross-encoder) or separate (bi-encoder)."""
        return "separate" if self.context.store.separate_encoding else "joint"

    def _solve(self, train: Vectors) -> list[Solution]:
        targets = torch.as_tensor(train.gold(self.context.gold("train", self.rows)), device=self.context.device)
        if self.head.scores:
            return fit_scores(train.values.unsqueeze(0), targets, self.strengths)[0]
        return fit_classes(train.values.unsqueeze(0), targets, self.head.outputs, self.strengths)[0]

    def _predictions(self, solution: Solution, vectors: Vectors, rows: np.ndarray) -> Predictions:
        logits = solution.logits(vectors.values)
        return vectors.to_predictions(rows, logits.squeeze(1) if self.head.scores else logits, self.head.scores)

    def _cost(self, solutions: list[Solution]) -> dict:
        """Return the cost of the fit with that of the frozen layers that were not in the store.

        The step measures seconds, memory and machine.
        """
        lengths = self.context.store.sequences("train", self.rows)
        flops = encoder_flops(self.shape, lengths, self.boundary) + sum(solution.flops for solution in solutions)
        trained = sum(parameter.numel() for parameter in self.head.parameters())
        return {
            "flops": flops,
            "parameters": {"trained": trained, "total": self.context.encoder_parameters + trained},
            "tokens": int(lengths.sum()),
            "steps": sum(solution.steps for solution in solutions),
            "seeds_share_fit": True,
            "inference": inference_cost(self.context, self.head),
        }


def best_strength(scores: list[float | None], strengths: list[float]) -> int:
    """Return the index of the best score; of equals the one of the strongest penalty."""
    ranks = [(-np.inf if value is None else value, l2) for value, l2 in zip(scores, strengths, strict=True)]
    return ranks.index(max(ranks))
