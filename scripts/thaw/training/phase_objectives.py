"""What a phase minimises, by what its settings name."""

from thaw.core.boundaries import cached_layers_read
from thaw.core.errors import UserError
from thaw.heads.base import VectorHead
from thaw.schema.phases import PhaseConfig
from thaw.training.auxiliary_tasks import AuxiliaryTask, MultiTask
from thaw.training.distilled import Distilled
from thaw.training.domain_alignment import Coral
from thaw.training.module_replacement import Replacing
from thaw.training.objectives import Objective, Supervised
from thaw.training.task_model import BatchLoader


def phase_objective(run, phase: PhaseConfig, stage: dict | None, number: int) -> Objective:
    """Return what a phase minimises, in one of its stages where it reads another dataset's stored states.

    One with parameters of its own is made once for all stages. Args: the TrainingRun; settings of the phase; the stage;
    its number in the run.
    """
    if phase.distil:
        distilled = _once(run, number, lambda: _distilled(run, phase, number))
        return distilled.in_stage(stage["components"] if stage else None, run.context.layers)
    if phase.replace:
        return Replacing(run.gold, phase.replace, run.spec["seed"], number)
    if phase.coral:
        return _coral(run, phase, stage)
    if phase.auxiliary:
        several = _once(run, number, lambda: _multi_task(run, phase, number))
        return several.in_stage(cached_layers_read([stage]))
    return Supervised(run.gold)


def _once(run, number: int, make) -> Objective:
    if number not in run.objectives:
        run.objectives[number] = make()
    return run.objectives[number]


def _distilled(run, phase: PhaseConfig, number: int) -> Distilled:
    entry, width = run.spec["phases"][number - 1], run.context.shape.width
    return Distilled(run.gold, phase.distil, run.taught, entry, width, run.spec["seed"], number)


def _coral(run, phase: PhaseConfig, stage: dict) -> Coral:
    if run.head.words or not isinstance(run.head, VectorHead):
        raise UserError(f"coral compares texts by a head that ends in one matrix, not by {run.head.entry.kind}")
    other, store = run.inputs.transfer_set(phase.coral.to)
    loader = BatchLoader(store, cached_layers_read([stage]), run.device)
    return Coral(run.gold, loader, other.corpus.size("train"), phase.coral.weight, run.spec["seed"])


def _multi_task(run, phase: PhaseConfig, number: int) -> MultiTask:
    entries = [one for one in run.spec["auxiliary"] if one["task"]["id"] in phase.auxiliary.tasks]
    tasks = [AuxiliaryTask.of(entry, run, number) for entry in entries]
    return MultiTask(run.gold, tasks, phase.auxiliary, run.spec["seed"])
