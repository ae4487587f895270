"""Auxiliary tasks: the encoder trains on the run's task and on others, each with a head of its own (Caruana 1997).

Each update has the loss of a batch of the task, and that of a batch of one auxiliary task. B examples of a batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from thaw.core.boundaries import cached_layers_read
from thaw.core.runtime import derive_seed, seeded
from thaw.evaluation.result_files import select_rows
from thaw.features.batch import Batch
from thaw.heads.base import Head
from thaw.schema.head import HeadConfig
from thaw.schema.phases import AuxiliaryConfig
from thaw.training.context import TaskContext, start_head
from thaw.training.objectives import Supervised
from thaw.training.rows_read import auxiliary_rows
from thaw.training.task_model import BatchLoader, TaskModel


@dataclass
class AuxiliaryTask:
    """An auxiliary task in training: its corpus and store, the rows that train, its new head, its encoded targets."""

    context: TaskContext
    rows: np.ndarray
    head: Head
    supervised: Supervised

    @classmethod
    def of(cls, entry: dict, run, number: int) -> "AuxiliaryTask":
        """Return a task with a new head. Args: entry of a spec's `auxiliary`; the TrainingRun; the phase's number."""
        inputs = run.inputs.auxiliary[entry["task"]["id"]]
        context = TaskContext(run.spec | {"task": entry["task"]}, inputs)
        with seeded(run.spec["seed"], f"auxiliary:{number}:{entry['task']['id']}"):
            head = context.build_head(HeadConfig.model_validate(entry["head"]))
        gold, rows = context.corpus.targets(context.task, "train"), auxiliary_rows(run.spec, entry, context.corpus)
        head.set_labels(context.labels)
        head.init_from_targets(select_rows(gold, rows))
        if context.balanced:
            head.balance(torch.as_tensor(select_rows(gold, rows)))
        start_head(head, context.encoder_folder, run.trained, run.inserts is not None)
        return cls(context, rows, head.to(run.device), Supervised(gold))


class MultiTask(Supervised):
    """The task's loss plus `weight` times that of one auxiliary task, drawn for each batch, on as many of its rows."""

    on_vectors = False

    def __init__(self, gold, tasks: list[AuxiliaryTask], auxiliary: AuxiliaryConfig, seed: int):
        """Keep encoded targets of all rows of train; the auxiliary tasks; the phase's settings of them; the seed."""
        super().__init__(gold)
        self.tasks, self.weight, self.seed = tasks, auxiliary.weight, seed
        sizes = np.array([len(task.rows) for task in tasks], dtype=float) ** auxiliary.power
        self.shares = sizes / sizes.sum()
        self.heads = nn.ModuleList(task.head for task in tasks)
        self.boundaries: list[int] = []

    def in_stage(self, stage: dict | None, layers: int) -> "MultiTask":
        """Read what a stage reads from the stores; the heads train on."""
        self.boundaries = cached_layers_read([stage]) if stage else []
        return self

    def join(self, model: TaskModel, run) -> None:
        model.projections = self.heads

    def loss(self, model: TaskModel, rows, batch: Batch, stored: dict[int, torch.Tensor]) -> torch.Tensor:
        own, (task, chosen) = super().loss(model, rows, batch, stored), self.drawn(rows)
        other, states = BatchLoader(task.context.store, self.boundaries, batch.mask.device)("train", chosen)
        self.read = [other.mask.shape[1]] * len(other.mask)
        shared = TaskModel(model.encoder, task.head, model.precision)
        return own + self.weight * task.supervised.loss(shared, chosen, other, states)

    def drawn(self, rows) -> tuple[AuxiliaryTask, np.ndarray]:
        """Return an auxiliary task and as many of its rows as these, or all, ascending; the same for the same rows."""
        numbers = np.asarray(rows, dtype=np.int64)
        random = np.random.default_rng(derive_seed(self.seed, f"auxiliary:{numbers.tobytes().hex()}"))
        task = self.tasks[random.choice(len(self.tasks), p=self.shares)]
        return task, np.sort(random.choice(task.rows, min(len(numbers), len(task.rows)), replace=False))
