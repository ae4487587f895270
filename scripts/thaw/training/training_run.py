"""Training runs: their phases in turn, what each leaves to the next, and the predictions at the end."""

import functools
from typing import Any

import numpy as np
import torch
from torch import nn

from thaw.adaptation.peft_modules import add_inserts
from thaw.adaptation.stages import epochs_of, stages_of
from thaw.compute_cost.flops import training_flops
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.boundaries import cached_layers_read
from thaw.core.devices import computed_in, use_precision
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.runtime import log, seeded
from thaw.declarations.objective_kinds import objectives_of
from thaw.encoders.loading import load_pooler
from thaw.encoders.shortening import starting_tensors
from thaw.encoders.transformers import Encoder
from thaw.evaluation.answers import of_contexts
from thaw.evaluation.result_files import Predictions, decided, epoch_line, evaluate, scored_training_rows, select_rows
from thaw.evaluation.transfer_sets import with_transfer_scores
from thaw.features.store import FeatureStore
from thaw.heads.linear import LinearHead
from thaw.heads.pooling import Pooler
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig, of_phase
from thaw.training.batched_heads import BatchedHeadTrainer
from thaw.training.checkpoints import Start, Trained
from thaw.training.context import TaskContext, inference_cost
from thaw.training.distilled import Distilled
from thaw.training.head_vectors import VectorReader
from thaw.training.model_trainer import ModelTrainer
from thaw.training.objectives import Objective, Supervised
from thaw.training.phase_loop import PhaseTraining, Trainable
from thaw.training.progress import Progress
from thaw.training.run_inputs import Inputs
from thaw.training.run_state import PhaseLog, RunState
from thaw.training.task_model import BatchLoader, TaskModel, bytes_left, resumed
from thaw.training.taught import Taught


class TrainingRun:
    """A run in training.

    Args: its spec; its inputs; what an earlier run left, where it starts after one; the settings that a search chose,
    with the number of the trial; what its teacher gave, where it has one.
    """

    others: list["TrainingRun"] = []  # those of other tasks that train its encoder too
    evaluator: Trainable  # what gives its predictions: what trains in the stage, and after the last one what trained
    index: int  # of the run among those that it trains

    def __init__(
        self,
        spec: dict,
        inputs: Inputs,
        start: Start | None = None,
        chosen: dict | None = None,
        taught: Taught | None = None,
    ):
        """Read targets and rows, and make the head: new from its own random stream, or the earlier run's."""
        self.spec, self.inputs, self.context = spec, inputs, TaskContext(spec, inputs)
        self.seed, self.chosen, self.taught = spec["seed"], chosen or {}, taught
        self.objectives: dict[int, Objective] = {}  # by phase
        if taught:
            taught.check_rows(self.rows, self.context.store)
        settings_chosen = {key: value for key, value in self.chosen.items() if key != "trial"}
        entries = [entry | of_phase(settings_chosen, n) for n, entry in enumerate(spec["phases"], start=1)]
        self.phases = [PhaseConfig.of_spec(entry) for entry in entries]
        self.stages = [stages_of(phase, entry) for phase, entry in zip(self.phases, entries, strict=True)]
        self.gold = self.context.corpus.targets(self.context.task, "train")
        with seeded(self.seed, "initialisation"):
            self.head = self.context.build_head(HeadConfig.model_validate(spec["head"]))
        self.highest, self.shape = self.head.combination.read[-1], self.context.shape_below(self.head)
        self.head.set_labels(self.context.labels)
        # a student that reads no label begins at its teacher's mean score, not at that of the labels
        unlabelled = taught if spec.get("unlabelled") else None
        targets = unlabelled.scores(self.rows) if unlabelled else select_rows(self.gold, self.rows)
        self.head.init_from_targets(targets)
        if self.context.balanced:
            self.head.balance(torch.as_tensor(select_rows(self.gold, self.rows)))
        self.trained = self.predecessor = dict(start.encoder) if start is not None else {}
        if "student" in spec:
            self.trained = starting_tensors(self.context.encoder_folder, spec["student"], self.trained, self.seed)
        self.inserts = start.inserts if start is not None else None
        if start is not None and start.head:
            self.head.load_state_dict(start.head)
        else:
            for pooler in (module for module in self.head.modules() if isinstance(module, Pooler)):
                pooler.dense.load_state_dict(load_pooler(self.context.encoder_folder))
        self.head.to(self.device)
        self.phase_logs: list[PhaseLog] = []
        self.flops, self.added, self.matrices = 0.0, 0, 0
        self.counts: dict[str, int] = {}

    @property
    def device(self) -> torch.device:
        return self.context.device

    @property
    def rows(self) -> np.ndarray:
        return self.context.training_rows

    @property
    def heads(self) -> nn.Module:
        """What is kept of its heads while it trains."""
        return self.head

    @property
    def metric(self) -> str:
        """What the scores of its epochs are, as the log says it."""
        return self.context.main_metric

    def examples(self, phase: PhaseConfig) -> int:
        """Return the training examples of an epoch of a phase."""
        return len(self.rows)

    @property
    def passes(self) -> float:
        """About how often it goes over the rows, forward and backward."""
        pairs = zip(self.phases, self.stages, strict=True)
        return sum(epochs_of(phase, stage, len(self.rows)) for phase, stages in pairs for stage in stages)

    def objective_of(self, phase: PhaseConfig, stage: dict | None = None, number: int = 1) -> Objective:
        """Return what a phase minimises; one with parameters of its own is made once, and goes on from stage to stage.

        Args: its settings; the stage, None where it is not known yet; its number in the run.
        """
        for name, kind in objectives_of(phase).items():
            return kind.load()(self, getattr(phase, name), stage, number)
        if number not in self.objectives:
            self.objectives[number] = Supervised(self.gold)
            if phase.distil and self.taught:
                entry, width = self.spec["phases"][number - 1], self.context.shape.width
                distilled = Distilled(self.gold, phase.distil, self.taught, entry, width, self.seed, number)
                self.objectives[number] = distilled
        return self.objectives[number].in_stage(stage, self.context.layers)

    def finish_all(self, watch: Stopwatch) -> list[Trained]:
        """Finish the run, and those of other tasks that it has trained."""
        return [self.finish(watch)]

    def finish(self, watch: Stopwatch) -> Trained:
        """Predict all splits after the last phase, and return what the run leaves."""
        with watch("evaluate"):
            predictions, transfer = self._predict_all(), self.context.transfer_predictions(self._predict)
            decide, note = decided(self.context.task, self.context.corpus, predictions, self.context.validation)
            predictions = {split: decide(predicted) for split, predicted in predictions.items()}
            transfer = [(other, {name: decide(one) for name, one in by.items()}) for other, by in transfer]
        outcome = evaluate(self.context.task, self.context.corpus, predictions, self.phase_logs[-1].diverged)
        outcome = with_transfer_scores(outcome, self.context.task, transfer)
        outcome["chosen"] = self.chosen | note | {"epochs": [phase_log.epoch for phase_log in self.phase_logs]}
        if any(phase.stop for phase in self.phases):
            outcome["chosen"]["stopped"] = [phase_log.stopped for phase_log in self.phase_logs]
        history = [row for phase_log in self.phase_logs for row in phase_log.history]
        if history[-1]["validation"] is None:
            history[-1]["validation"] = outcome["scores"][self.context.validation][self.context.main_metric]
        return Trained(self.head, self.trained, self.inserts, predictions, transfer, outcome, history, self._cost())

    def release(self) -> None:
        """Let go of all that a finished run holds on its device apart from its head, which it leaves."""
        self.trained, self.taught, self.objectives = {}, None, {}
        if hasattr(self, "evaluator"):  # a run whose head another process trained has none
            del self.evaluator
        self.inputs.vectors.clear()

    def trainable(self, state: RunState, stage: dict, runs: list["TrainingRun"], shared: Encoder | None = None) -> Any:
        """Return what trains in a stage, with all that trained before it: the heads of several runs, or this model.

        Constant vectors of a frozen encoder are computed once, and their head trains on them, alone or in a batch.
        Args: what the run is trained by; the stage; the runs of the batch; the encoder where another run has made it.
        """
        components, boundary, phase = stage["components"], stage["boundary"], state.phase
        objective = self.objective_of(phase, stage, state.number)
        folder, store = self.context.encoder_folder, self.context.store
        self.inserts = add_inserts(self.inserts, phase, components, self.seed)
        encoder = shared or resumed(
            folder, boundary, self.highest, self.trained, self.device, self.inserts, self.context.kept
        )
        alone = components == ["head"] and not self.inserts and not phase.frozen_dropout
        if alone and self.head.constant_vectors and objective.on_vectors:
            use_precision("fp32", self.device)
            heads = [run.head for run in runs if isinstance(run.head, LinearHead)]
            known = None if self.trained else self.inputs.vectors
            reader = VectorReader(encoder, heads[0], cached_layers_read([stage]), self.device, known)
            words = self.context.word_counts("train", self.rows)
            return BatchedHeadTrainer(heads, reader, store, self.rows, objective, words)
        precision = computed_in(phase.precision, self.device)
        if precision != phase.precision:
            log(f"bf16 would be emulated here: phase {state.number} is computed in {precision}")
        use_precision(precision, self.device)
        if encoder and phase.reinit_top and not shared:
            with seeded(self.seed, f"reinitialisation:{state.number}"):
                encoder.reinitialise(phase.reinit_top)
        if encoder and "embeddings" in components and not shared:
            encoder.keep_rows(self.inputs.tokens())
        if encoder and phase.batch_gib:
            encoder.most_bytes = phase.batch_gib * 2**30
            longest = int(store.longest("train")[self.rows].max())
            if (least := bytes_left(encoder, self.highest, longest)) > encoder.most_bytes:
                raise UserError(
                    f"batch_gib: {phase.batch_gib:g} holds no text of {longest} tokens, which takes "
                    f"{least / 2**30:.2g} GiB; write more than that, or a smaller max_length in the task's view"
                )
        model = TaskModel(encoder, self.head, precision)
        objective.join(model, self)
        loader = BatchLoader(store, cached_layers_read([stage]), self.device)
        ways = phase.frozen_dropout, phase.clip_over == "all", phase.batches == "by_length"
        return ModelTrainer(model, loader, self.rows, objective, *ways)

    def end_stage(self, stage: dict) -> None:
        """Keep the tensors that a stage trained, and count its parameters and operations."""
        components, encoder = stage["components"], self.evaluator.encoder
        for part, named in self.evaluator.components(components)[self.index].items():
            prefix = "head/" if part == "head" else "encoder/"
            self.counts.update({prefix + name: value.numel() for name, value in named})
        inserted = encoder.inserted() if encoder else []
        if encoder is not None:
            if encoder.unused:
                self.counts["unused"] = encoder.unused
            self.trained.update(encoder.tensors([part for part in components if part != "head"]))
        self.added = sum(parameter.numel() for _, parameter in inserted)
        self.matrices = sum(p.numel() for name, p in inserted if p.ndim > 1 and ".ia3_" not in name)
        lengths = self.phase_logs[-1].lengths
        boundary, components = self.context.counted(stage["boundary"], components)
        self.flops += training_flops(self.shape, lengths, boundary, components, self.matrices)
        if self.taught:
            self.flops += self.taught.flops(lengths)

    def end_phase(self) -> None:
        """Count the operations of the head in a phase. Raises UserError for a head that counts none."""
        if not self.phase_logs[-1].head_flops:
            raise UserError(f"head {self.head.entry.kind} counts 0 operations; give it a method flops(batch)")
        self.flops += 3 * self.phase_logs[-1].head_flops

    def score(self, name: str) -> float | None:
        """Return the main metric on "validation" or on the scored rows of "train", None where it is not defined."""
        if name == "train":
            split, rows = name, scored_training_rows(self.rows, self.seed)
        else:
            split = self.context.validation
            rows = self.context.rows[split]
        return self.context.main_score(self._predict_rows(split, rows), split)

    def _predict_all(self) -> dict[str, Predictions]:
        rows = {"train": scored_training_rows(self.rows, self.seed)}
        for split in [self.context.validation] if self.spec.get("trial") else self.context.scored:
            rows[split] = self.context.rows[split]
        return {split: self._predict_rows(split, chosen) for split, chosen in rows.items()}

    def _predict_rows(self, split: str, rows) -> Predictions:
        rows = np.asarray(rows)
        words = self.context.word_counts(split, rows)
        return self._predict(self.context.corpus, self.context.store, split, rows, words)

    def _predict(self, corpus, store: FeatureStore, split: str, rows: np.ndarray, words) -> Predictions:
        predicted = self.evaluator.predict(self.index, store, split, rows, words)
        if self.head.extracts:
            predicted.values = of_contexts(list(predicted.values), corpus, split, rows)
        return predicted

    def _cost(self) -> dict:
        head = sum(parameter.numel() for parameter in self.head.parameters())
        return {
            "flops": self.flops,
            "precision": "+".join(sorted({computed_in(phase.precision, self.device) for phase in self.phases})),
            "parameters": {
                "trained": sum(self.counts.values()),
                "total": self.context.encoder_parameters + self.added + head,
            },
            "tokens": sum(phase_log.tokens for phase_log in self.phase_logs),
            "steps": sum(phase_log.steps for phase_log in self.phase_logs),
            **({} if self.spec.get("trial") else self._inference()),
        }

    def _inference(self) -> dict:
        """Return what a prediction costs, counted once for all runs on the same inputs that differ in seed alone."""
        key, known = (canonical(self.spec | {"seed": None}), self.matrices), self.inputs.inference
        if key not in known:
            known[key] = inference_cost(self.context, self.head, self.matrices)
        return {"inference": known[key]}


def train(runs: list[TrainingRun], watch: Stopwatch, progress: Progress | None = None) -> list[Trained]:
    """Train a batch of runs and return what each leaves; a single run is a list of one, and may write its progress.

    Several runs read the same inputs, have a head with constant vectors and one phase, in which the head alone trains,
    and differ in seed and learning rates, not in batches and length.
    """
    if progress:
        progress.restore(runs[0])
    for number in range(progress.phase if progress else 1, len(runs[0].phases) + 1):
        _train_phase(runs, number, watch, progress)
        if all(run.phase_logs[-1].diverged for run in runs):
            break
    for run in runs:
        if run.phase_logs[-1].diverged:
            log(f"seed {run.seed} diverged: the loss of phase {len(run.phase_logs)} is not finite")
    return [left for run in runs for left in run.finish_all(watch)]


def _train_phase(runs: list[TrainingRun], number: int, watch: Stopwatch, progress: Progress | None) -> None:
    """Train one phase stage by stage, or the rest of it where the progress file is within it."""
    first, place = runs[0], number - 1
    stages = first.stages[place]
    states = [RunState(number, run.phases[place], run.seed, run.score) for run in runs]
    training = PhaseTraining(states, stages, first.examples(first.phases[place]))
    resumed_from = progress if progress and progress.state and progress.phase == number else None
    if resumed_from:
        states[0].phase_log, training.stage = first.phase_logs[-1], resumed_from.state["stage"] - 1
    else:
        for run, state in zip(runs, states, strict=True):
            run.phase_logs.append(state.phase_log)
    for stage in stages[training.stage + 1 :]:
        with watch("load"):
            trainable = first.trainable(states[0], stage, runs)
            training.enter(trainable, stage["components"], first.shape.layers, first.context.kept)
            if resumed_from:
                resumed_from.resume(training)
                resumed_from = None
        origin = "text" if stage["boundary"] is None else f"boundary {stage['boundary']}"
        batch = f"; {len(runs)} runs in one batch" if len(runs) > 1 else ""
        rows = sum(len(run.rows) for run in (first, *first.others))
        log(f"phase {number}: trains {', '.join(stage['components'])}; starts from {origin}; {rows} rows{batch}")
        for index, run in enumerate(runs):
            run.evaluator, run.index = trainable, index
        continues = training.run(watch, functools.partial(after_epoch, first, training, progress))
        for run in runs:
            run.end_stage(stage)
        if not continues:
            break
    for run in runs:
        run.end_phase()


def after_epoch(run, training: PhaseTraining, progress: Progress | None) -> None:
    """Log a round of a batch, and write the progress of a run that is alone. Args: the first run; its phase."""
    phase_logs = [state.phase_log for state in training.states if state.phase_log.rows(training.epoch)]
    losses = [phase_log.mean_loss(training.epoch) for phase_log in phase_logs]
    scores = [phase_log.history[-1]["validation"] for phase_log in phase_logs] if training.scored else []
    phase = f"phase {training.states[0].number}, " if len(run.phases) > 1 else ""
    log(phase + epoch_line(training.place, losses, run.metric, scores))
    if progress:
        progress.write(run, training)
