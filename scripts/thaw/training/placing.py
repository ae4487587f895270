"""Devices of runs: what is prepared before a run has its device, and what is moved off it afterwards."""

import math

import torch

from thaw.adaptation.peft_modules import import_peft
from thaw.encoders.parity import check_once
from thaw.encoders.registry import import_code
from thaw.evaluation.metrics import import_for
from thaw.schema.phases import PhaseConfig
from thaw.training.head_fitting import HeadFit
from thaw.training.training_run import Trained, TrainingRun

EVALUATIONS = 100  # of the objective, about, until a head has been fitted with one strength


def prepare(run: TrainingRun | HeadFit) -> None:
    """Import the modules that a run will need, and read its tokens."""
    for store in (run.context.store, *(store for _, store in run.inputs.transfer_sets)):
        for split in {"train", *run.context.scored} & set(store.splits):
            store.sizes(split)
    if _computes_layers(run):
        import_code(run.context.encoder_folder)
    if any(entry.get("insert") for entry in run.phases):
        import_peft()
    import_for(run.context.task["metrics"])


def operations(runs: list[TrainingRun] | list[HeadFit]) -> float:
    """Estimate the operations of heads on stored states; infinite where layers are computed too."""
    return math.inf if any(map(_computes_layers, runs)) else float(sum(map(_operations, runs)))


def _operations(run: TrainingRun | HeadFit) -> float:
    """Estimate those of one head: forward, and twice as many backward, for each vector and update."""
    vectors = run.context.store.lengths("train")[run.rows].sum() if run.head.words else len(run.rows)
    passes = len(run.strengths) * EVALUATIONS if isinstance(run, HeadFit) else sum(s["epochs"] for s in _stages(run))
    return 6.0 * vectors * sum(parameter.numel() for parameter in run.head.parameters()) * passes


def _computes_layers(run: TrainingRun | HeadFit) -> bool:
    """Return whether a run reads more of the encoder than its stored states."""
    return any(stage["boundary"] != run.highest for stage in _stages(run))


def _stages(run: TrainingRun | HeadFit) -> list[dict]:
    return [stage for entry in run.phases for stage in PhaseConfig.stages_of_spec(entry)]


def send(run: TrainingRun | HeadFit, device: torch.device) -> TrainingRun | HeadFit:
    """Move a run to a device; a GPU must first pass the parity check of the resumed encoder. Return the same run."""
    if device.type == "cuda" and _computes_layers(run):
        check_once(run.context.encoder_folder, device)
    run.inputs.on(device)
    run.head.to(device)
    return run


def hand_over(runs: list[TrainingRun], trained: list[Trained]) -> list[Trained]:
    """Move what runs leave to the CPU, and free all else that they hold on a device."""
    for run, left in zip(runs, trained, strict=True):
        left.head.cpu()
        left.encoder = {name: tensor.cpu() for name, tensor in left.encoder.items()}
        run.evaluator, run.trained = None, {}
        run.inputs.vectors.clear()
    return trained
