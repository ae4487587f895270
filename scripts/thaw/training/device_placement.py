"""Devices of runs: what is prepared before a run has its device, and what is moved off it afterwards."""

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
import torch

from thaw.adaptation.peft_modules import import_peft
from thaw.core.boundaries import computes_layers, resumes
from thaw.encoders.parity import check_once
from thaw.encoders.registry import import_code
from thaw.evaluation.metrics import import_for
from thaw.heads.base import Head
from thaw.schema.phases import PhaseConfig
from thaw.training.context import TaskContext
from thaw.training.run_inputs import Inputs
from thaw.training.training_run import Trained, TrainingRun


class RunOnDevice(Protocol):
    """What is asked of a run that gets a device, whether it trains or fits."""

    context: TaskContext
    inputs: Inputs
    phases: list[PhaseConfig]
    stages: list[list[dict]]  # of each phase
    highest: int  # the highest boundary that the head reads

    @property
    def head(self) -> Head: ...

    @property
    def rows(self) -> np.ndarray:
        """The rows of train."""

    @property
    def passes(self) -> float:
        """How often it goes over the rows, forward and backward; about."""


Run = TypeVar("Run", bound=RunOnDevice)


def prepare(run: RunOnDevice) -> None:
    """Import the modules that a run will need, read its tokens, and prove an encoder that is about to be resumed."""
    for store in run.inputs.stores:
        for split in {"train", *run.context.scored} & set(store.splits):
            store.sizes(split)
    if _computes_layers(run):
        import_code(run.context.encoder_folder)
    if any(resumes(stage["boundary"], run.highest) for stages in run.stages for stage in stages):
        check_once(run.context.encoder_folder)
    if any(phase.insert for phase in run.phases):
        import_peft()
    import_for(run.context.task["metrics"])


def operations(runs: Sequence[RunOnDevice]) -> float:
    """Estimate the operations of heads on stored states; infinite where layers are computed too."""
    return math.inf if any(map(_computes_layers, runs)) else float(sum(map(_operations, runs)))


def _operations(run: RunOnDevice) -> float:
    """Estimate those of one head: forward, and twice as many backward, for each vector and update."""
    vectors = run.context.store.lengths("train")[run.rows].sum() if run.head.words else len(run.rows)
    return 6.0 * vectors * sum(parameter.numel() for parameter in run.head.parameters()) * run.passes


def _computes_layers(run: RunOnDevice) -> bool:
    return any(computes_layers(stage["boundary"], run.highest) for stages in run.stages for stage in stages)


def to_device(run: Run, device: torch.device) -> Run:
    """Move a run to a device; a GPU must first pass the parity check of the resumed encoder. Return the same run."""
    if device.type == "cuda" and _computes_layers(run):
        check_once(run.context.encoder_folder, device)
    run.inputs.on(device)
    run.head.to(device)
    return run


def to_cpu(runs: list[TrainingRun], trained: list[Trained]) -> list[Trained]:
    """Move what runs leave to the CPU, and free all else that they hold on a device."""
    for run, left in zip(runs, trained, strict=True):
        left.head.cpu()
        left.encoder = {name: tensor.cpu() for name, tensor in left.encoder.items()}
        run.release()
    return trained
