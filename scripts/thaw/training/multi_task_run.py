"""Several tasks that train one encoder in turn: an update has a batch of one task, its loss and its head's gradients.

Each task is a TrainingRun with its own head, rows, store and teacher; the encoder is that of the first one's.
Source: Liu et al. 2019, algorithm 1. T tasks, n their training rows.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from thaw.adaptation.optimizers import PROJECTION
from thaw.adaptation.stages import epochs_of
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed
from thaw.encoders.transformers import Encoder
from thaw.schema.multi_task import MultiTaskConfig
from thaw.schema.phases import PhaseConfig
from thaw.training.checkpoints import Start, Trained
from thaw.training.run_inputs import Inputs
from thaw.training.run_state import EpochCost, RunState
from thaw.training.taught import Taught
from thaw.training.training_run import TrainingRun


@dataclass
class TaskOrder:
    """Which task each update of a phase trains.

    `rows` [T] are the training rows of each task, and `batches` [T] those of an epoch of each, both 0 for a task that
    is left out; `epochs` are those of the phase.
    """

    several: MultiTaskConfig
    rows: np.ndarray
    batches: np.ndarray
    epochs: int

    def __post_init__(self):
        """Raise UserError where a power is to fall over epochs and there is one."""
        if self.several.sampling == "annealed" and self.epochs < 2:
            raise UserError(
                "multi_task: sampling: annealed goes over epochs, and the phase has less than two; take power"
            )

    def shares(self, epoch: int) -> np.ndarray:
        """Return how likely each task is drawn in an epoch: in proportion to n to a power."""
        weights = np.where(self.rows, self.rows.astype(float) ** self.several.exponent(epoch, self.epochs), 0.0)
        return weights / weights.sum()

    def of_epoch(self, seed: int, phase: int, epoch: int) -> np.ndarray:
        """Return the task of each update of an epoch. By size each batch of each task is there once, in any order."""
        random = np.random.default_rng(derive_seed(seed, f"tasks:{phase}:{epoch}"))
        if self.several.sampling in (None, "size"):
            return random.permutation(np.repeat(np.arange(len(self.batches)), self.batches))
        return random.choice(len(self.batches), self.batches.sum(), p=self.shares(epoch))


class MultiTaskTrainer:
    """What trains of all tasks, each by its own trainer (see `thaw.training.phase_loop`)."""

    def __init__(self, parts: dict[str, Any], order: TaskOrder):
        """Keep the trainer of each task, which share their encoder, and the order of tasks."""
        self.parts, self.order = parts, order
        self.each = list(parts.values())

    @property
    def encoder(self) -> Encoder | None:
        return self.each[0].encoder

    @property
    def spent(self) -> EpochCost:
        """The cost of the round, of all tasks together."""
        spent = [part.spent for part in self.each]
        lengths = sum((Counter(one.lengths) for one in spent), Counter[int]())
        return EpochCost(sum(one.tokens for one in spent), sum(one.head_flops for one in spent), lengths)

    def thaw(self, names: list[str]) -> None:
        for part in self.each:
            part.thaw(names)

    def components(self, names: list[str]) -> list[dict[str, list]]:
        """Return the named parameters of some components: the encoder's once, the heads' under their task."""
        merged = self.each[0].components(names)[0]
        for own in ("head", PROJECTION):
            named = {task: part.components(names)[0].get(own, []) for task, part in self.parts.items()}
            if any(named.values()):
                merged[own] = [(f"{task}.{name}", value) for task, pairs in named.items() for name, value in pairs]
        return [merged]

    @contextlib.contextmanager
    def drawing(self, streams: list[tuple[int, str]]):
        with contextlib.ExitStack() as stack:
            for part in self.each:
                stack.enter_context(part.drawing(streams))
            yield

    def batches(self, streams: list[tuple[int, str]], size: int) -> list[tuple[int, Any]]:
        """Return an epoch's batches, each with the place of its task.

        A task goes through its rows in the orders that it has alone: after the last batch of one the first of the next.
        """
        ((seed, name),) = streams
        purpose, phase, epoch = name.split(":")
        drawn = [self.order.of_epoch(seed, int(phase), number) for number in range(1, int(epoch) + 1)]
        made = np.bincount(np.concatenate([*drawn[:-1], np.zeros(0, int)]), minlength=len(self.each))
        orders: dict[tuple[int, int], list] = {}
        batches = []
        for place in drawn[-1].tolist():
            passed, number = divmod(int(made[place]), int(self.order.batches[place]))
            if (place, passed) not in orders:
                orders[place, passed] = self.each[place].batches([(seed, f"{purpose}:{phase}:{passed + 1}")], size)
            batches.append((place, orders[place, passed][number]))
            made[place] += 1
        return batches

    def begin(self, batches: list[tuple[int, Any]]) -> None:
        for place, part in enumerate(self.each):
            part.spent = EpochCost()
            if own := [batch for of, batch in batches if of == place]:
                part.begin(own)

    def at_step(self, step: int, steps: int) -> None:
        for part in self.each:
            part.at_step(step, steps)

    def losses(self, batch: tuple[int, Any]) -> torch.Tensor:
        """Return the loss [1] of a batch of one task."""
        place, positions = batch
        self.active = self.each[place]
        return self.active.losses(positions)

    def backward(self, losses: torch.Tensor) -> None:
        self.active.backward(losses)

    def clip(self, largest: float) -> None:
        """Clip gradients by their norm over the encoder and the head of the batch; no other head has any."""
        self.active.clip(largest)

    def predict(self, index: int, *given):
        """Return the predictions of the first task; the others have their own evaluators."""
        return self.each[0].predict(index, *given)


class MultiTaskRun(TrainingRun):
    """The run of the first task, whose encoder the runs of the other tasks train too."""

    def __init__(
        self,
        spec: dict,
        inputs: Inputs,
        others: list[TrainingRun],
        start: Start | None = None,
        taught: Taught | None = None,
    ):
        """Join the runs. Args: as of a TrainingRun, and the runs of the other tasks in the order of the spec."""
        super().__init__(spec, inputs, start, taught=taught)
        self.others = others
        self.by_task = {run.context.task["id"]: run for run in (self, *others)}
        self.several = MultiTaskConfig.model_validate({"tasks": list(self.by_task)} | spec["multi_task"])
        self.drawn = [run for run in self.by_task.values() if run is not self or self.several.own != "left_out"]
        self.several.check_sizes({run.context.task["id"]: len(run.rows) for run in self.drawn}, "multi_task")

    @property
    def heads(self) -> nn.Module:
        return nn.ModuleList(run.head for run in self.by_task.values())

    @property
    def metric(self) -> str:
        return f"mean of {len(self.drawn)} tasks" if len(self.drawn) > 1 else super().metric

    def examples(self, phase: PhaseConfig) -> int:
        """Return the training examples of an epoch, the last batch of each task counted as a whole one."""
        return int(self._batches(phase).sum()) * phase.batch_size

    def _batches(self, phase: PhaseConfig) -> np.ndarray:
        runs = self.by_task.values()
        return np.array([math.ceil(len(run.rows) / phase.batch_size) if run in self.drawn else 0 for run in runs])

    def _order(self, number: int) -> TaskOrder:
        phase, rows = self.phases[number - 1], [len(run.rows) * (run in self.drawn) for run in self.by_task.values()]
        epochs = sum(epochs_of(phase, stage, self.examples(phase)) for stage in self.stages[number - 1])
        return TaskOrder(self.several, np.array(rows), self._batches(phase), math.ceil(epochs))

    def trainable(self, state: RunState, stage: dict, runs: list[TrainingRun], shared: Encoder | None = None) -> Any:
        first = super().trainable(state, stage, [self])
        parts = {self.context.task["id"]: first}
        for run in self.others:
            run.trained, run.inserts = self.trained, self.inserts
            run.evaluator = run.trainable(state, stage, [run], first.encoder)
            run.index, parts[run.context.task["id"]] = 0, run.evaluator
        return MultiTaskTrainer(parts, self._order(state.number))

    def score(self, name: str) -> float | None:
        """Return the mean of the tasks' main metrics, None where one is not defined; note those on validation."""
        scores = {run.context.task["id"]: TrainingRun.score(run, name) for run in self.drawn}
        if name == "validation":
            self.phase_logs[-1].history[-1]["tasks"] = scores
        known = [score for score in scores.values() if score is not None]
        return sum(known) / len(known) if len(known) == len(scores) else None

    def end_stage(self, stage: dict) -> None:
        """Keep what a stage trained, and count it, as of the first task alone."""
        (self.evaluator, *_), self.index = self.evaluator.each, 0  # type: ignore[attr-defined]
        super().end_stage(stage)

    def finish_all(self, watch: Stopwatch) -> list[Trained]:
        """Finish the run of each task, with its share of the cost; where others have none that of the first alone."""
        runs = list(self.by_task.values()) if self.several.own == "member" else [self]
        logs, finished = self.phase_logs, []
        for run, share in zip(runs, self._shares() if len(runs) > 1 else [1.0], strict=True):
            run.phase_logs = [replace(one, history=_own(one.history, run.context.task["id"])) for one in logs]
            run.trained, run.inserts, run.flops = self.trained, self.inserts, self.flops
            run.added, run.matrices = self.added, self.matrices
            if run is not self:
                head = {f"head/{name}": value.numel() for name, value in run.head.named_parameters()}
                trained = any(name.startswith("head/") for name in self.counts)
                run.counts = {name: count for name, count in self.counts.items() if not name.startswith("head/")}
                run.counts |= head if trained else {}
            left = run.finish(watch)
            left.cost |= {"flops": left.cost["flops"] * share, "tokens": round(left.cost["tokens"] * share)}
            left.cost |= {"share_of_training": share}
            finished.append(left)
        return finished

    def _shares(self) -> list[float]:
        """Return the share of the training that each task's batches had, by the tokens of their mean batch."""
        read = np.zeros(len(self.by_task))
        runs = self.by_task.values()
        tokens = np.array([run.context.store.lengths("train")[run.rows].sum() for run in runs], dtype=float)
        for number, (phase, phase_log) in enumerate(zip(self.phases, self.phase_logs, strict=False), start=1):
            order, seed = self._order(number), self.seed if phase.order is None else phase.order
            epochs = range(1, math.ceil(phase_log.steps / order.batches.sum()) + 1)
            drawn = np.concatenate([*(order.of_epoch(seed, number, epoch) for epoch in epochs), np.zeros(0, int)])
            made = np.bincount(drawn[: phase_log.steps], minlength=len(read))
            read += made * tokens / np.maximum(order.batches, 1)
        return (read / read.sum() if read.sum() else np.full(len(read), 1 / len(read))).tolist()


def _own(history: list[dict], task: str) -> list[dict]:
    """Return the rows of a history with the validation scores of one task in the place of the means."""
    rows = [{key: value for key, value in row.items() if key != "tasks"} for row in history]
    for own, row in zip(rows, history, strict=True):
        if "tasks" in row:
            own["validation"] = row["tasks"].get(task)
    return rows


def shared_cost(cost: Mapping, share: float, tasks: int) -> dict:
    """Return a task's share of what a training took. Args: as `measure_cost` gives it; share; number of tasks."""
    seconds = {part: round(value * share, 3) for part, value in cost["seconds"].items()}
    worked = {name: round(cost[name] * share, 3) for name in ("processor_seconds", "processor_train_seconds")}
    return {**cost, "seconds": seconds, **worked, **({"runs_in_job": tasks} if tasks > 1 else {})}
