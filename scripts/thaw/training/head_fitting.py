"""A head on frozen features, fitted to convergence: its vectors, its strength by validation, its answers.

N vectors (one a text, or one a word that has a piece), d width, C outputs, L layers.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from thaw.compute_cost.flops import Shape, encoder_flops
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.boundaries import cached_layers_read
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.runtime import log
from thaw.data.corpus import subset_rows
from thaw.evaluation.metrics import score
from thaw.evaluation.result_files import (
    Predictions,
    evaluate,
    scored_rows,
    scored_training_rows,
    select_rows,
    task_with_defaults,
)
from thaw.evaluation.transfer_sets import TransferSet, with_transfer_scores
from thaw.features.store import FeatureStore
from thaw.heads.base import Head
from thaw.heads.convex import Solution, fit_classes, fit_scores
from thaw.heads.registry import build
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig
from thaw.training.head_vectors import Reader, Vectors
from thaw.training.run_inputs import Inputs
from thaw.training.task_model import resumed


@dataclass
class FittedHead:
    """What a fit leaves: the head, its solution, its answers by split (train: all rows), and what is told about it.

    `validation` is the main metric there, by which one view is preferred to another.
    """

    head: Head
    solution: Solution
    answers: dict[str, Predictions]
    further: list[tuple[TransferSet, dict[str, Predictions]]]
    validation: float | None
    history: list[dict]
    cost: dict


class HeadFit:
    """A head-only run in the making. The problem is convex: no seed has a part in it, and all seeds share one fit.

    Args: the spec, which needs no seed; what it reads. Raises UserError for a head that is not linear in its features.
    """

    def __init__(self, spec: dict, inputs: Inputs):
        """Read settings, targets and rows."""
        self.inputs, self.corpus, self.store = inputs, inputs.corpus, inputs.store
        self.folder, self.device, corpus = inputs.encoder, inputs.device, inputs.corpus
        self.task = task_with_defaults(spec["task"])
        self.labels = corpus.labels(self.task["target"])
        self.rows = subset_rows(corpus, self.task, spec["subset"])
        self.scored = scored_rows(self.task, corpus, spec["subset"])
        self.shape = Shape.of(read_json(self.folder / "config.json"))
        (phase,) = spec["phases"]
        self.boundary, self.stored = phase["boundary"], cached_layers_read([phase])
        self.strengths = PhaseConfig.of_spec(phase).l2
        entry = HeadConfig.model_validate(spec["head"])
        outputs = len(self.labels) or 1
        head = build(entry, self.shape.width, outputs, self.task["type"], self.store.separate_encoding, spec["layers"])
        self.head = head.to(self.device)
        self.highest = head.combination.read[-1]
        self.shape = replace(self.shape, layers=self.highest)
        if not self.head.fixed:
            raise UserError(
                f"optimizer lbfgs cannot fit a head with pooling: {entry.pooling}, which is learned too; "
                "take pooling first, mean or max, or a strategy that trains with adamw, such as frozen_sgd"
            )

    def run(self, watch: Stopwatch) -> FittedHead:
        """Fit all strengths, choose one by the main metric on validation (of equals the strongest), and answer."""
        rows = self.scored | {"train": self.rows}
        with watch("load"):
            encoder = resumed(self.folder, self.boundary, self.highest, {}, self.device)
            read = Reader(encoder, self.head, self.stored, self.device)
            vectors = {
                split: read(self.store, split, found, self._words(split, found)) for split, found in rows.items()
            }
        log(f"fitting {len(self.strengths)} strengths to {len(vectors['train'].values)} vectors")
        with watch("train"):
            solutions = self._solve(vectors["train"])
        with watch("evaluate"):
            found = [self._validate(solution, vectors) for solution in solutions]
            ranks = [(-np.inf if v is None else v, s.l2) for v, s in zip(found, solutions, strict=True)]
            place = ranks.index(max(ranks))
            chosen = solutions[place]
            answers = {split: self._answers(chosen, vectors[split], rows[split]) for split in rows}
            further = [(f, self._further(chosen, read, f, store)) for f, store in self.inputs.further]
        log(f"l2 {chosen.l2:g} chosen on {self.task['validation']}")
        self.head.load_state_dict(chosen.state())
        history = [
            {"phase": 1, "l2": s.l2, "step": s.steps, "loss": s.objective, "validation": v}
            for s, v in zip(solutions, found, strict=True)
        ]
        return FittedHead(self.head, chosen, answers, further, found[place], history, self._cost(solutions))

    def outcome(self, fitted: FittedHead, seed: int) -> dict:
        """Return scores, rows, flags and the chosen strength, as they stand in a seed's metrics.json."""
        answers = fitted.answers["train"]
        scored = np.searchsorted(self.rows, scored_training_rows(self.rows, seed))
        sample = Predictions(self.rows[scored], select_rows(answers.values, scored))
        outcome = evaluate(self.task, self.corpus, {**fitted.answers, "train": sample})
        outcome = with_transfer_scores(outcome, self.task, fitted.further)
        outcome["flags"] += [] if fitted.solution.converged else ["not_converged"]
        return outcome | {"chosen": {"l2": fitted.solution.l2}}

    @property
    def pairs(self) -> str:
        """How pairs of texts are read: joint or separate."""
        return "separate" if self.store.separate_encoding else "joint"

    def _words(self, split: str, rows: np.ndarray) -> list[int] | None:
        """Return the word counts of some rows, None where the task has none."""
        if not self.head.words:
            return None
        return [len(tags) for tags in select_rows(self.corpus.targets(self.task, split), rows)]

    def _further(
        self, solution: Solution, read: Reader, further: TransferSet, store: FeatureStore
    ) -> dict[str, Predictions]:
        """Return a solution's answers to the test splits of another corpus, by split."""
        answers = {}
        for split, rows in further.rows().items():
            vectors = read(store, split, rows, further.words(split))
            answers[split] = self._answers(solution, vectors, rows)
        return answers

    def _solve(self, train: Vectors) -> list[Solution]:
        """Fit the head to the training vectors with every strength."""
        gold = train.gold(select_rows(self.corpus.targets(self.task, "train"), self.rows))
        targets = torch.as_tensor(gold, device=self.device)
        if self.head.scores:
            return fit_scores(train.values.unsqueeze(0), targets, self.strengths)[0]
        return fit_classes(train.values.unsqueeze(0), targets, self.head.outputs, self.strengths)[0]

    def _validate(self, solution: Solution, vectors: dict[str, Vectors]) -> float | None:
        """Return the main metric on validation, None where it is not defined."""
        split = self.task["validation"]
        gold = select_rows(self.corpus.targets(self.task, split), self.scored[split])
        answers = self._answers(solution, vectors[split], self.scored[split])
        return score(self.task, gold, answers.values, self.labels)[self.task["metrics"][0]]

    def _answers(self, solution: Solution, vectors: Vectors, rows: np.ndarray) -> Predictions:
        """Return a solution's answers."""
        logits = solution.logits(vectors.values)
        return vectors.answers(rows, logits.squeeze(1) if self.head.scores else logits, self.head.scores)

    def _cost(self, solutions: list[Solution]) -> dict:
        """Return what the fit cost, the frozen layers that were not in the store included.

        Seconds, memory and machine are not in it: the step measures them.
        """
        lengths = self.store.sequences("train", self.rows)
        flops = encoder_flops(self.shape, lengths, self.boundary) + sum(solution.flops for solution in solutions)
        trained = sum(parameter.numel() for parameter in self.head.parameters())
        return {
            "flops": flops,
            "parameters": {"trained": trained, "total": read_json(self.folder / "card.json")["parameters"] + trained},
            "tokens": int(lengths.sum()),
            "steps": sum(solution.steps for solution in solutions),
            "seeds_share_fit": True,
        }
