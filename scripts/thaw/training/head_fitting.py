"""A head on frozen features, fitted to convergence: its vectors, the choice of its strength, its predictions.

N vectors (one a text, or one a word that has a token).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from thaw.adaptation.stages import stages_of
from thaw.compute_cost.flops import encoder_flops
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.boundaries import cached_layers_read
from thaw.core.phrases import listing
from thaw.core.runtime import log
from thaw.encoders.transformers import Encoder
from thaw.evaluation.result_files import Predictions, evaluate, scored_training_rows, select_rows
from thaw.evaluation.transfer_sets import TransferSet, with_transfer_scores
from thaw.heads.convex import Solution
from thaw.heads.linear import LinearHead
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig
from thaw.training.context import TaskContext, inference_cost
from thaw.training.head_candidates import CrossValidated, Folds, HeadCandidate, best_strength, candidates, choose
from thaw.training.head_vectors import StoredReader, VectorReader, Vectors
from thaw.training.run_inputs import Inputs
from thaw.training.task_model import resumed

EVALUATIONS = 100  # of the objective, about, until a head has been fitted with one strength


@dataclass
class FittedHead:
    """What a fit leaves: the head, its solution, its predictions by split (train: all rows), its history and cost.

    `chosen` is what validation or cross-validation chose: the strength, and the layer or the features where there is a
    choice. `choice_score` is the main metric there, by which one view is preferred to another.
    """

    head: LinearHead
    solution: Solution
    chosen: dict
    predictions: dict[str, Predictions]
    transfer: list[tuple[TransferSet, dict[str, Predictions]]]
    choice_score: float | None
    history: list[dict]
    cost: dict
    cross_validated: CrossValidated


class HeadFit:
    """The fit of a head-only run. The problem is convex: the seed changes nothing, and all seeds share one fit.

    Args: the spec, which needs no seed; the inputs. Raises UserError for a head that is not linear in its features.
    """

    def __init__(self, spec: dict, inputs: Inputs):
        self.inputs, self.context, self.subset = inputs, TaskContext(spec, inputs), spec["subset"]
        (entry,) = spec["phases"]
        self.phase = PhaseConfig.of_spec(entry)
        self.phases, self.stages = [self.phase], [stages_of(self.phase, entry)]
        self.entry, self.boundary = entry, entry["boundary"]
        head = HeadConfig.model_validate(spec["head"])
        self.head = self.context.build_linear(head).to(self.context.device)
        self.layers, self.heads = head.layers, [self.head]
        if self.layers.searched:
            self.heads = [self.context.build_linear(head.at_layer(n)) for n in self.head.combination.read]
        self.highest, self.shape = self.head.combination.read[-1], self.context.shape_below(self.head)

    @property
    def rows(self) -> np.ndarray:
        return self.context.training_rows

    @property
    def passes(self) -> int:
        """About how often the fit reads all rows."""
        fits = 1 + (self.folds.number if self.folds else 0)
        return fits * len(self.heads) * len(self.phase.l2) * EVALUATIONS

    @cached_property
    def folds(self) -> Folds | None:
        """The folds by which settings are chosen, None where validation chooses."""
        return Folds.of(self.context, self.subset, self.phase, self._named)

    def run(self, watch: Stopwatch) -> FittedHead:
        """Fit all candidates, choose one by the main metric on validation or over folds (see `choose`), and predict."""
        context, rows, validation = self.context, self.context.rows, self.context.validation
        with watch("load"):
            readers = [self.reader(head.to(context.device)) for head in self.heads]
            layers = [self._vectors(read) for read in readers]
        log(f"fitting {len(self.phase.l2)} strengths to {len(layers[0]['train'].values)} vectors")
        with watch("train"):
            gold = layers[0]["train"].gold(context.gold("train", self.rows))
            targets = torch.as_tensor(gold, device=context.device)
            tried = candidates(
                [vectors["train"].values for vectors in layers],
                targets,
                self.classes,
                self.phase,
                lambda position, solution: self._score(solution, layers[position][validation]),
                context.balanced,
            )
            if folds := self.folds:
                joint = [vectors["train"].followed_by(vectors[validation]) for vectors in layers]
                left_out, fits = folds.outputs(joint, self.classes, self.phase)
        with watch("evaluate"):
            scores = [self._score(one.solution, layers[one.position][validation]) for one in tried]
            main = [context.main_metric]
            over_folds = [folds.scores(joint[0], outputs, main)[main[0]] for outputs in left_out] if folds else []
            best = choose(tried, over_folds or scores, self.layers)
            position = tried[best].position
        with watch("train"):
            values = layers[position]["train"].values
            chosen_head = tried[best].converged(values, targets, self.classes, context.balanced)
            solution = chosen_head.solution
        with watch("evaluate"):
            predictions = {split: self._predictions(solution, layers[position][split], rows[split]) for split in rows}
            transfer = context.transfer_predictions(
                lambda _, store, split, rows, words: self._predictions(
                    solution, readers[position](store, split, rows, words), rows
                )
            )
        chosen, head = self._settings(tried[best]), self.heads[position]
        by = f"by cross-validation in {folds.number} folds" if folds else f"on {validation}"
        log(f"{listing(f'{key} {value:g}' for key, value in chosen.items())} chosen {by}")
        crossed, every = CrossValidated(), tried if chosen_head is tried[best] else [*tried, chosen_head]
        if folds:
            with watch("train"):
                (half,), more = folds.outputs([joint[position]], self.classes, self._phase_of(chosen), half=True)
            crossed, every = folds.record(joint[position], left_out[best], half), [*every, *fits, *more]
        head.load_state_dict(solution.state())
        cost, history = self._cost(every, tried[best]), self._history(tried, scores, over_folds)
        choice = (over_folds or scores)[best]
        return FittedHead(head, solution, chosen, predictions, transfer, choice, history, cost, crossed)

    def refit(self, chosen: dict) -> tuple[LinearHead, dict[str, Predictions]]:
        """Fit the head that was chosen to the rows of train and validation together.

        Args: what metrics.json says was chosen. Returns the head with its predictions for the test splits.
        """
        head = self.heads[self.head.combination.read.index(chosen["layer"]) if self.layers.searched else 0]
        vectors = self._vectors(self.reader(head))
        joint = vectors["train"].followed_by(vectors[self.context.validation])
        targets = torch.as_tensor(joint.gold(self.context.joint_gold), device=self.context.device)
        phase, balanced = self._phase_of(chosen), self.context.balanced
        (one,) = candidates([joint.values], targets, self.classes, phase, lambda *_: None, balanced)
        one = one.converged(joint.values, targets, self.classes, balanced)
        head.load_state_dict(one.solution.state())
        rows, tests = self.context.rows, self.context.task["test"]
        return head, {split: self._predictions(one.solution, vectors[split], rows[split]) for split in tests}

    def by_layer(self) -> list[tuple[Solution, dict[str, Vectors]]]:
        """Return for each layer that is read its own head, with the strength that validation chose, and its vectors."""
        layers = [self._vectors(self.reader(head)) for head in self.heads]
        gold = layers[0]["train"].gold(self.context.gold("train", self.rows))
        targets = torch.as_tensor(gold, device=self.context.device)
        validation, found = self.context.validation, []
        for vectors in layers:
            values = vectors["train"].values
            tried = candidates([values], targets, self.classes, self.phase, lambda *_: None, self.context.balanced)
            scores = [self._score(one.solution, vectors[validation]) for one in tried]
            best = tried[best_strength(scores, self.phase.l2)]
            found.append((best.converged(values, targets, self.classes, self.context.balanced).solution, vectors))
        return found

    def _vectors(self, read: VectorReader) -> dict[str, Vectors]:
        context = self.context
        return {
            split: read(context.store, split, rows, context.word_counts(split, rows))
            for split, rows in context.rows.items()
        }

    @property
    def classes(self) -> int:
        return 0 if self.head.scores else self.head.outputs

    def _phase_of(self, chosen: dict) -> PhaseConfig:
        fraction = chosen.get("fraction")
        select = self.phase.select and self.phase.select.model_dump(exclude_unset=True) | {"fractions": [fraction]}
        return self.phase.changed({"l2": [chosen["l2"]], "select": select})

    def reader(self, head: LinearHead) -> VectorReader:
        """Return what reads the vectors for a head: stored ones, or through the layers above the stored states."""
        device = self.context.device
        if "vectors" in self.entry:
            return StoredReader(self.entry["vectors"], head, device)
        return VectorReader(self._encoder, head, cached_layers_read([self.entry]), device)

    @cached_property
    def _encoder(self) -> Encoder | None:
        return resumed(self.context.encoder_folder, self.boundary, self.highest, {}, self.context.device)

    def outcome(self, fitted: FittedHead, seed: int) -> dict:
        """Return scores, rows, flags and the chosen strength as a seed's metrics.json has them."""
        predictions, task = fitted.predictions["train"], self.context.task
        scored = np.searchsorted(self.rows, scored_training_rows(self.rows, seed))
        sample = Predictions(self.rows[scored], select_rows(predictions.values, scored))
        outcome = evaluate(task, self.context.corpus, {**fitted.predictions, "train": sample})
        outcome = with_transfer_scores(outcome, task, fitted.transfer)
        outcome["flags"] += [] if fitted.solution.converged else ["not_converged"]
        folds = {"folds": fitted.cross_validated.record} if fitted.cross_validated.record else {}
        return outcome | {"chosen": dict(fitted.chosen)} | folds

    @property
    def pairs(self) -> str:
        """The encoding of pairs of texts: joint (cross-encoder) or separate (bi-encoder)."""
        return "separate" if self.context.store.separate_encoding else "joint"

    def _settings(self, candidate: HeadCandidate) -> dict:
        settings: dict[str, float | None] = {"l2": candidate.solution.l2}
        if self.layers.searched:
            settings["layer"] = self.head.combination.read[candidate.position]
        if candidate.features is not None:
            settings |= {"fraction": candidate.fraction, "features": len(candidate.features)}
        return settings

    def _history(self, tried: list[HeadCandidate], scores: list[float | None], over_folds: list) -> list[dict]:
        rows = [
            {"phase": 1}
            | self._settings(one)
            | {"step": one.solution.steps, "loss": one.solution.objective, "validation": score}
            for one, score in zip(tried, scores, strict=True)
        ]
        return [row | {"folds": score} for row, score in zip(rows, over_folds, strict=True)] if over_folds else rows

    def _score(self, solution: Solution, vectors: Vectors) -> float | None:
        validation = self.context.validation
        return self.context.main_score(self._predictions(solution, vectors, self.context.rows[validation]), validation)

    def _predictions(self, solution: Solution, vectors: Vectors, rows: np.ndarray) -> Predictions:
        return self._named(solution.logits(vectors.values), vectors, rows)

    def _named(self, logits: torch.Tensor, vectors: Vectors, rows: np.ndarray) -> Predictions:
        return vectors.to_predictions(rows, logits.squeeze(1) if self.head.scores else logits, self.head.target)

    def _cost(self, tried: list[HeadCandidate], chosen: HeadCandidate) -> dict:
        """Return the cost of all fits with that of the frozen layers that were not in the store.

        Weights of features that were left out are not trained. The step measures seconds, memory and machine.
        """
        lengths = self.context.store.sequences("train", self.rows)
        flops = encoder_flops(self.shape, lengths, self.boundary) + sum(one.solution.flops for one in tried)
        width = self.head.output.in_features if chosen.features is None else len(chosen.features)
        trained = self.head.outputs * (width + 1)
        return {
            "flops": flops,
            "parameters": {"trained": trained, "total": self.context.encoder_parameters + trained},
            "tokens": int(lengths.sum()),
            "steps": sum(one.solution.steps for one in tried),
            "seeds_share_fit": True,
            "inference": inference_cost(self.context, self.heads[chosen.position]),
        }
