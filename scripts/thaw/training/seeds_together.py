"""Heads of several runs, of other seeds or learning rates, trained together where they can be."""

from dataclasses import fields

import torch
from safetensors.torch import load, save

from thaw.compute_cost.stopwatch import Stopwatch, claimed, measure_cost
from thaw.core.processes import Processes
from thaw.training.checkpoints import Trained
from thaw.training.device_placement import operations, prepare, to_cpu, to_device
from thaw.training.training_run import TrainingRun, train


def train_on_device(
    runs: list[TrainingRun], watch: Stopwatch, processes: Processes, shares: int = 1
) -> tuple[list[Trained], dict]:
    """Train heads on the job's device; return what each leaves, on the CPU, and the cost of one of so many shares."""
    with watch("load"):
        prepare(runs[0])
    with claimed(watch, True, operations(runs)) as device:
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
