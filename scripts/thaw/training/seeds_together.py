"""Runs on devices: what is prepared before and moved off afterwards, and heads of several runs trained together."""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

import torch
from safetensors.torch import load, save

from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
from thaw.core.boundaries import computes_layers, resumes
from thaw.core.processes import Processes
from thaw.encoders.parity import check_once
from thaw.encoders.registry import import_code
from thaw.evaluation.metrics import import_for
from thaw.training.checkpoints import Trained
from thaw.training.head_fitting import HeadFit
from thaw.training.training_run import TrainingRun, train

Run = TypeVar("Run", TrainingRun, HeadFit)


def prepare(run: TrainingRun | HeadFit) -> None:
    """Import the modules that a run will need, read its tokens, and prove an encoder that is about to be resumed."""
    for store in run.inputs.stores:
        for split in {"train", *run.context.scored} & set(store.splits):
            store.sizes(split)
    if _computes_layers(run):
        import_code(run.context.encoder_folder)
    if any(resumes(stage["boundary"], run.highest) for stages in run.stages for stage in stages):
        check_once(run.context.encoder_folder)
    if any(phase.insert for phase in run.phases):
        import peft  # noqa: F401
    import_for(run.context.task["metrics"])


def operations(runs: Sequence[TrainingRun | HeadFit]) -> float:
    """Estimate the operations of heads on stored states; infinite where layers are computed too."""
    return math.inf if any(map(_computes_layers, runs)) else float(sum(map(_operations, runs)))


def _operations(run: TrainingRun | HeadFit) -> float:
    """Estimate those of one head: forward, and twice as many backward, for each vector and update."""
    vectors = run.context.store.lengths("train")[run.rows].sum() if run.head.words else len(run.rows)
    return 6.0 * vectors * sum(parameter.numel() for parameter in run.head.parameters()) * run.passes


def _computes_layers(run: TrainingRun | HeadFit) -> bool:
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


def train_on_device(
    runs: list[TrainingRun], watch: Stopwatch, processes: Processes, shares: int = 1
) -> tuple[list[Trained], dict]:
    """Train heads on the job's device; return what each leaves, on the CPU, and the cost of one of so many shares."""
    with watch("load"):
        prepare(runs[0])
    with claimed(watch, operations(runs)) as device:
        trained = to_cpu(runs, train_heads([to_device(run, device) for run in runs], watch, processes))
        return trained, measure_cost(watch, device, shares)


def train_heads(runs: list[TrainingRun], watch: Stopwatch, processes: Processes) -> list[Trained]:
    """Train heads alone on constant vectors, and return what each leaves; processes share them where there are several.

    A run's numbers do not depend on the others, nor on which of them are in its process. Each process has the
    threads of the spec, and this one has them afterwards.
    """
    processes = processes.on(runs[0].device)
    if processes.count == 1:
        torch.set_num_threads(processes.threads)
        return _train(runs, watch)
    shares = min(processes.count, len(runs))

    def work(share: int) -> tuple[list, Stopwatch]:
        own = Stopwatch()
        return [_without_inputs(left) for left in _train(runs[share::shares], own)], own

    trained, answers = dict[int, tuple](), processes.run(work, shares)
    watch.add([own for _, own in answers], processes.spared)
    for share, (left, _) in enumerate(answers):
        trained |= dict(zip(range(share, len(runs), shares), left, strict=True))
    torch.set_num_threads(processes.threads)
    return [_with_inputs(trained[n], run) for n, run in enumerate(runs)]


def _without_inputs(left: Trained) -> tuple[dict, bytes, list]:
    """Return what a run leaves as a process can send it: its head as bytes, of transfer sets the predictions.

    torch would send tensors as memory that the process shares, and that ends with it.
    """
    values = {name: tensor.contiguous() for name, tensor in left.head.state_dict().items()}
    others = {field.name: getattr(left, field.name) for field in fields(left)} | {"head": None, "transfer": []}
    return others, save(values), [predictions for _, predictions in left.transfer]


def _with_inputs(sent: tuple[dict, bytes, list], run: TrainingRun) -> Trained:
    others, head, transfer = sent
    run.head.load_state_dict(load(head))
    sets = [other for other, _ in run.context.inputs.transfer_sets]
    return Trained(**others | {"head": run.head, "transfer": list(zip(sets, transfer, strict=True))})


def _train(runs: list[TrainingRun], watch: Stopwatch) -> list[Trained]:
    """Train the runs in one batch where batch size and length are the same.

    Heads of words are trained one run after the other, since sentences differ in length; so are all with an objective
    that has no loss of vectors.
    """
    groups: dict[tuple, list[int]] = {}
    for index, run in enumerate(runs):
        phase = run.phases[0]
        batched = not run.head.words and run.objective_of(phase).on_vectors and phase.schedule != "plateau"
        length = (phase.batch_size, phase.epochs, phase.updates, phase.judge)
        groups.setdefault((length, None if batched else index), []).append(index)
    trained: dict = {}
    for group in groups.values():
        trained |= dict(zip(group, train([runs[index] for index in group], watch), strict=True))
    return [trained[index] for index in range(len(runs))]
