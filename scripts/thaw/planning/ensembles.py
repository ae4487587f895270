"""The ensembles of an experiment: which runs each combines. No torch."""

from collections.abc import Sequence
from itertools import product

from thaw.core import layout, plugins
from thaw.core.errors import UserError
from thaw.core.steps import STEPS
from thaw.declarations.task_types import EXTRACTION_TYPES, WORD_TYPES
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_plan import RunCell, RunPlan
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.schema.experiment import EnsembleConfig, EnsembleMemberConfig, ExperimentConfig

OF_WEIGHTS = ("weights", "interpolation")


def ensembles(experiment: ExperimentConfig, planner: RunPlanner) -> dict[str, tuple[str, list[RunPlan]]]:
    """Return {key: (id, runs)} of the ensembles, one for each task that all members are run on and each subset."""
    chosen = {}
    for name, entry in experiment.ensembles.items():
        place = experiment.place("ensembles", name)
        for task, subset in product(ensemble_tasks(entry, experiment, planner, place), experiment.subsets):
            of_each = [_members(member, task, subset, experiment, planner, place) for member in entry.members]
            runs = [run for members in of_each for run in members if run]
            if len(runs) < 2 or len(set(runs)) < len(runs):
                raise UserError(f"{place}: an ensemble needs two runs or more, each once")
            _check_way(entry, planner.catalogue.get("tasks", task, place).type, task, place)
            if entry.by in OF_WEIGHTS:
                _check_weights(runs, planner, place)
            chosen[layout.key("ensemble", {"task": task, "subset": subset, "ensemble": name})] = (name, runs)
    return chosen


def ensemble_tasks(entry: EnsembleConfig, experiment: ExperimentConfig, planner: RunPlanner, place: str) -> list[str]:
    """Return the experiment's tasks that an ensemble is for: those that it names, of which all members are run on."""
    named = experiment.tasks_of(entry.tasks, place)
    subset = experiment.subsets[0]
    run_on = [
        task
        for task in named
        if all(None not in _members(member, task, subset, experiment, planner, place) for member in entry.members)
    ]
    if (entry.tasks or not run_on) and run_on != named:
        lacking = next(task for task in named if task not in run_on)
        raise UserError(f"{place}: not all its members are run on {lacking}; leave the task out, or add the runs")
    return run_on


def _members(
    member: EnsembleMemberConfig, task: str, subset: str, experiment: ExperimentConfig, planner: RunPlanner, place: str
) -> list[RunPlan | None]:
    """Return a member's runs, one for each of its seeds, None where it has none on a task.

    Encoder and head are by default the experiment's only.
    """
    encoder = member.encoder or experiment.only_one("encoder", place)
    head = member.head or experiment.only_one("head", place)
    if more := sorted(set(member.seeds) - set(experiment.seeds)):
        raise UserError(f"{place}: seed {more[0]} is none of the experiment's; add it to seeds:")
    return [
        planner.run_of(RunCell(task, subset, encoder, head, member.strategy, member.value, seed))
        for seed in member.seeds or experiment.seeds
    ]


def _check_way(entry: EnsembleConfig, kind: str, task: str, place: str) -> None:
    """Find out whether runs on a type of task can be combined in this way."""
    if entry.by == "interpolation" and len(entry.members) != 2:
        raise UserError(f"{place}: by: interpolation is between two members; there are {len(entry.members)}")
    if entry.by in OF_WEIGHTS and kind in EXTRACTION_TYPES:
        raise UserError(f"{place}: by: {entry.by} predicts no answers ({task}); leave the task out")
    if entry.by == "mean" and kind in WORD_TYPES:
        raise UserError(f"{place}: by: mean needs probabilities, which no run keeps of tags ({task}); use weights")
    if entry.by == "mean" and kind in EXTRACTION_TYPES:
        raise UserError(f"{place}: by: mean needs probabilities, and {task} has answers; leave the task out")


def _check_weights(runs: list[RunPlan], planner: RunPlanner, place: str) -> None:
    """Have runs keep their encoders. Raises UserError where these or the heads have no common mean."""
    alike = [(run.weights, run.views, planner.head_under(run)) for run in runs]
    for run, one in zip(runs, alike, strict=True):
        why = "has another encoder, head or view of pairs than the first" if one != alike[0] else ""
        why = "reads pairs in two views" if len(run.views) > 1 else why
        if why := "has inserts" if any(phase.insert for phase in planner.strategy(run).phases) else why:
            raise UserError(f"{place}: {run.strategy} {why}, so that no mean of weights is made; leave it out")
        planner.mark_kept(run)


def ensemble_spec(
    name: str, experiment: ExperimentConfig, catalogue: Catalogue, member: RunPlan, digests: Sequence[str]
) -> dict:
    """Return the spec of an ensemble, without the digest of its corpus. Args: one of its members; digests of all."""
    task, subset = catalogue.get("tasks", member.task, "tasks"), catalogue.get("subsets", member.subset, "subsets")
    entry = experiment.ensembles[name]
    counts = [len(one.seeds or experiment.seeds) for one in entry.members]
    ends = {"weights": [[0, sum(counts)]], "interpolation": [[0, counts[0]], [counts[0], sum(counts)]]}
    return {
        "version": STEPS["ensemble"].version,
        "ensemble": name,
        "task": task_spec(member.task, task),
        "subset": spec_of(subset),
        "by": entry.by,
        "members": digests,
        **({"ends": ends[entry.by]} if entry.by in ends else {}),
        **plugins.in_spec(task.metrics),
    }
