"""Runs: their phases in turn, what each leaves to the next, and the answers at the end.

L layers, d width, C outputs.
"""

import functools
from dataclasses import replace

import numpy as np
import torch

from thaw.adaptation.peft_modules import add_inserts
from thaw.compute_cost.flops import Shape, training_flops
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.boundaries import cached_layers_read
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.runtime import log, seeded
from thaw.data.corpus import subset_rows
from thaw.encoders.loading import load_pooler
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
from thaw.heads.base import word_targets
from thaw.heads.pooling import Pooler
from thaw.heads.registry import build
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.training.batched_heads import BatchedHeadTrainer
from thaw.training.checkpoints import Start, Trained
from thaw.training.head_vectors import Reader
from thaw.training.model_trainer import ModelTrainer
from thaw.training.phase_loop import PhaseTraining
from thaw.training.progress import Progress
from thaw.training.run_inputs import Inputs
from thaw.training.run_state import PhaseLog, RunState
from thaw.training.task_model import Feed, TaskModel, resumed


class TrainingRun:
    """A run in the making.

    Args: its spec; what it reads; what an earlier run left, where it starts after one; the settings that a search
    chose, with the number of the trial.
    """

    def __init__(self, spec: dict, inputs: Inputs, start: Start | None = None, chosen: dict | None = None):
        """Read targets and rows, and make the head: new from its own random stream, or the earlier run's."""
        self.spec, self.inputs, self.corpus, self.store = spec, inputs, inputs.corpus, inputs.store
        self.chosen = chosen or {}
        settings_chosen = {key: value for key, value in self.chosen.items() if key != "trial"}
        phases = enumerate(spec["phases"], start=1)
        self.phases = [entry | of_phase(settings_chosen, number) for number, entry in phases]
        self.folder, self.device, corpus = inputs.encoder, inputs.device, inputs.corpus
        self.task = task_with_defaults(spec["task"])
        self.rows = subset_rows(corpus, self.task, spec["subset"])
        self.scored = scored_rows(self.task, corpus, spec["subset"])
        self.shape = Shape.of(read_json(self.folder / "config.json"))
        self.labels = corpus.labels(self.task["target"])
        entry = HeadConfig.model_validate(spec["head"])
        with seeded(spec["seed"], "initialisation"):
            outputs, layers = len(self.labels) or 1, spec["layers"]
            self.head = build(entry, self.shape.width, outputs, self.task["type"], self.store.separate_encoding, layers)
        self.highest = self.head.combination.read[-1]
        self.shape = replace(self.shape, layers=self.highest)
        self.gold = corpus.targets(self.task, "train")
        self.head.name_outputs(self.labels)
        self.head.start(select_rows(self.gold, self.rows))
        for module in self.head.modules():
            if isinstance(module, Pooler):
                module.dense.load_state_dict(load_pooler(self.folder))
        if start is not None and start.head:
            self.head.load_state_dict(start.head)
        self.head.to(self.device)
        self.trained = dict(start.encoder) if start is not None else {}
        self.inserts = start.inserts if start is not None else None
        self.courses: list[PhaseLog] = []
        self.flops, self.added = 0.0, 0
        self.counts: dict[str, int] = {}

    def finish(self, watch: Stopwatch) -> Trained:
        """Answer all splits after the last phase, and return what the run leaves."""
        with watch("evaluate"):
            answers, further = self._answers(), [(f, self._further(f, store)) for f, store in self.inputs.further]
        outcome = evaluate(self.task, self.corpus, answers, self.courses[-1].diverged)
        outcome = with_transfer_scores(outcome, self.task, further)
        outcome["chosen"] = self.chosen | {"epochs": [course.epoch for course in self.courses]}
        if any("stop" in entry for entry in self.phases):
            outcome["chosen"]["stopped"] = [course.stopped for course in self.courses]
        history = [note for course in self.courses for note in course.history]
        main = self.task["metrics"][0]
        if history[-1]["validation"] is None:
            history[-1]["validation"] = outcome["scores"][self.task["validation"]][main]
        return Trained(self.head, self.trained, self.inserts, answers, further, outcome, history, self._cost())

    def trainee(self, member: RunState, stage: dict, runs: list["TrainingRun"]) -> ModelTrainer | BatchedHeadTrainer:
        """Return what trains in a stage, with all that trained before it: the heads of several runs, or this model.

        A fixed head on a frozen encoder trains on vectors that are computed once, alone or beside others.
        """
        components, boundary, phase = stage["components"], stage["boundary"], member.phase
        self.inserts = add_inserts(self.inserts, phase, components, self.spec["seed"])
        encoder = resumed(self.folder, boundary, self.highest, self.trained, self.device, self.inserts)
        plain = not self.inserts and not phase.frozen_dropout
        if plain and components == ["head"] and self.head.fixed:
            known = None if self.trained else self.inputs.vectors
            reader = Reader(encoder, self.head, cached_layers_read([stage]), self.device, known)
            gold, words = select_rows(self.gold, self.rows), self._words("train", self.rows)
            return BatchedHeadTrainer([run.head for run in runs], reader, self.store, self.rows, gold, words)
        if phase.reinit_top:
            with seeded(self.spec["seed"], f"reinitialisation:{member.number}"):
                encoder.reinitialise(phase.reinit_top)
        if "embeddings" in components:
            encoder.keep_rows(self.inputs.tokens())
        model, feed = (
            TaskModel(encoder, self.head, phase.precision),
            Feed(self.store, cached_layers_read([stage]), self.device),
        )
        return ModelTrainer(model, feed, self.rows, self.targets, phase.frozen_dropout)

    def answer_with(self, trainee: ModelTrainer | BatchedHeadTrainer, place: int) -> None:
        """Answer with what trains now. Args: what trains; the run's place there."""
        self.answering, self.place = trainee, place

    def keep(self, stage: dict) -> None:
        """Keep what a stage trained, and count it."""
        components, encoder = stage["components"], self.answering.encoder
        for part, named in self.answering.components(components)[self.place].items():
            prefix = "head/" if part == "head" else "encoder/"
            self.counts.update({prefix + name: value.numel() for name, value in named})
        inserted = encoder.inserted() if encoder else []
        if encoder is not None:
            if encoder.unused:
                self.counts["unused"] = encoder.unused
            self.trained.update(encoder.tensors([part for part in components if part != "head"]))
        self.added = sum(parameter.numel() for _, parameter in inserted)
        matrices = sum(p.numel() for name, p in inserted if p.ndim > 1 and ".ia3_" not in name)
        lengths = self.courses[-1].lengths
        self.flops += training_flops(self.shape, lengths, stage["boundary"], components, matrices)

    def end_phase(self) -> None:
        """Count what the head did in the phase."""
        if not self.courses[-1].head_flops:
            raise UserError(f"head {self.head.entry.kind} counts 0 operations; give it a method flops(batch)")
        self.flops += 3 * self.courses[-1].head_flops

    def targets(self, rows, batch) -> torch.Tensor:
        """Return the targets of a batch of training rows, on its device: [B], or [B, W] for words."""
        chosen = select_rows(self.gold, rows)
        if self.head.words:
            return word_targets(chosen, batch.first_pieces)
        return torch.as_tensor(chosen, device=batch.mask.device)

    def score(self, name: str) -> float | None:
        """Return the main metric on "validation" or on the scored rows of "train", None where it is not defined."""
        if name == "train":
            split, rows = name, scored_training_rows(self.rows, self.spec["seed"])
        else:
            split = self.task["validation"]
            rows = self.scored[split]
        gold = select_rows(self.corpus.targets(self.task, split), rows)
        return score(self.task, gold, self._answer(split, rows).values, self.labels)[self.task["metrics"][0]]

    def _answers(self) -> dict[str, Predictions]:
        """Return the answers to the scored rows of train, validation and test; of a trial none to test."""
        wanted = {"train": scored_training_rows(self.rows, self.spec["seed"])}
        for split in [self.task["validation"]] if self.spec.get("trial") else self.scored:
            wanted[split] = self.scored[split]
        return {split: self._answer(split, rows) for split, rows in wanted.items()}

    def _answer(self, split: str, rows) -> Predictions:
        """Return the model's answers to some rows; tags are cut to each sentence's words."""
        rows = np.asarray(rows)
        return self.answering.answers(self.place, self.store, split, rows, self._words(split, rows))

    def _words(self, split: str, rows) -> list[int] | None:
        """Return the word counts of some rows, None where the task has none."""
        if not self.head.words:
            return None
        return [len(tags) for tags in select_rows(self.corpus.targets(self.task, split), rows)]

    def _further(self, further: TransferSet, store: FeatureStore) -> dict[str, Predictions]:
        """Return the model's answers to the test splits of another corpus, by split."""
        return {
            split: self.answering.answers(self.place, store, split, rows, further.words(split))
            for split, rows in further.rows().items()
        }

    def _cost(self) -> dict:
        """Return what the run cost, but for its seconds, memory and machine, which the step measures."""
        size = read_json(self.folder / "card.json")["parameters"]
        total = size + self.added + sum(parameter.numel() for parameter in self.head.parameters())
        return {
            "flops": self.flops,
            "parameters": {"trained": sum(self.counts.values()), "total": total},
            "tokens": sum(course.tokens for course in self.courses),
            "steps": sum(course.steps for course in self.courses),
        }


def train(runs: list[TrainingRun], watch: Stopwatch, progress: Progress | None = None) -> list[Trained]:
    """Train runs side by side and return what each leaves; a run alone is a list of one, and may keep its progress.

    Several runs read the same inputs, have a fixed head and one phase, in which the head alone trains, and differ in
    seed and rates, not in batches and epochs.
    """
    if progress:
        progress.restore(runs[0])
    for number in range(progress.phase if progress else 1, len(runs[0].phases) + 1):
        _train_phase(runs, number, watch, progress)
        if all(run.courses[-1].diverged for run in runs):
            break
    for run in runs:
        if run.courses[-1].diverged:
            log(f"seed {run.spec['seed']} diverged: the loss of phase {len(run.courses)} is not finite")
    return [run.finish(watch) for run in runs]


def _train_phase(runs: list[TrainingRun], number: int, watch: Stopwatch, progress: Progress | None) -> None:
    """Train one phase, stage by stage, or what is left of it, and keep what each stage trained for the next."""
    first, entries = runs[0], [run.phases[number - 1] for run in runs]
    stages = PhaseConfig.stages_of_spec(entries[0])
    pairs = zip(runs, entries, strict=True)
    noted = first.spec.get("gradients", False)
    members = [RunState(number, PhaseConfig.of_spec(entry), run.spec["seed"], noted) for run, entry in pairs]
    training = PhaseTraining(members, [stage["epochs"] for stage in stages])
    goes_on = progress is not None and progress.stands_in(number)
    if goes_on:
        members[0].course, training.stage = first.courses[-1], progress.state["stage"] - 1
    else:
        for run, member in zip(runs, members, strict=True):
            run.courses.append(member.course)
    for stage in stages[training.stage + 1 :]:
        with watch("load"):
            trainee = first.trainee(members[0], stage, runs)
            lengths = members[0].course.lengths
            training.enter(trainee, stage["components"], first.highest)
            if goes_on:
                progress.resume(training)
                members[0].course.lengths, goes_on = lengths, False
        origin = "text" if stage["boundary"] is None else f"boundary {stage['boundary']}"
        beside = f"; {len(runs)} runs side by side" if len(runs) > 1 else ""
        what = f"trains {', '.join(stage['components'])}; starts from {origin}; {len(first.rows)} rows{beside}"
        log(f"phase {number}: {what}")
        for place, run in enumerate(runs):
            run.answer_with(trainee, place)
        after = functools.partial(progress.write, first, training) if progress else lambda: None
        further = training.run([run.score for run in runs], watch, after)
        for run in runs:
            run.keep(stage)
        if not further:
            break
    for run in runs:
        run.end_phase()


def train_heads(runs: list[TrainingRun], watch: Stopwatch) -> list[Trained]:
    """Train runs in which a fixed head alone trains: side by side where they have batches and epochs in common.

    Words are trained one run after the other, since sentences differ in length.
    """
    groups: dict[tuple, list[int]] = {}
    for place, run in enumerate(runs):
        phase = PhaseConfig.of_spec(run.phases[0])
        groups.setdefault((phase.batch_size, phase.epochs, place if run.head.words else None), []).append(place)
    found = {}
    for places in groups.values():
        found |= dict(zip(places, train([runs[place] for place in places], watch), strict=True))
    return [found[place] for place in range(len(runs))]
