"""What a phase minimises, by what its settings name."""

from thaw.core.boundaries import cached_layers_read
from thaw.declarations.objective_kinds import objectives_of
from thaw.schema.phases import PhaseConfig
from thaw.training.auxiliary_tasks import AuxiliaryTask, MultiTask
from thaw.training.distilled import Distilled
from thaw.training.objectives import Objective, Supervised


def phase_objective(run, phase: PhaseConfig, stage: dict | None, number: int) -> Objective:
    """Return what a phase minimises, in one of its stages where it reads another dataset's stored states.

    One with parameters of its own is made once for all stages. Args: the TrainingRun; settings of the phase; the stage;
    its number in the run.
    """
    if phase.distil:
        distilled = _once(run, number, lambda: _distilled(run, phase, number))
        return distilled.in_stage(stage["components"] if stage else None, run.context.layers)
    for name, kind in objectives_of(phase).items():
        return kind.load()(run, getattr(phase, name), stage, number)
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


def _multi_task(run, phase: PhaseConfig, number: int) -> MultiTask:
    entries = [one for one in run.spec["auxiliary"] if one["task"]["id"] in phase.auxiliary.tasks]
    tasks = [AuxiliaryTask.of(entry, run, number) for entry in entries]
    return MultiTask(run.gold, tasks, phase.auxiliary, run.spec["seed"])
