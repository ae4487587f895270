"""The merges of an experiment: which runs may be a branch, and what each branch shares. No torch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from thaw.adaptation.selectors import boundary
from thaw.core import layout
from thaw.core.branch_choice import RULE_VERSIONS, BranchSize
from thaw.core.errors import UserError, suggestion
from thaw.core.steps import STEPS, kind_version
from thaw.declarations.heads import EXPORTED
from thaw.planning.run_plan import RunCell, RunPlan, named_points
from thaw.schema.experiment import ExperimentConfig, MergeConfig
from thaw.schema.layers import OneLayerConfig


@dataclass(frozen=True)
class CandidateBranch:
    """The runs of a point of a strategy on a task, one for each seed, and the size of their branches."""

    size: BranchSize
    runs: list[RunPlan]


@dataclass(frozen=True)
class MergePlan:
    """A merge: its key, its entry, and by task the branches that it may take."""

    name: str
    key: str
    entry: MergeConfig
    seed: int
    candidates: dict[str, list[CandidateBranch]]

    @property
    def runs(self) -> list[RunPlan]:
        """All runs that it reads, tasks by name as in canonical JSON, point by point, seed by seed."""
        return [run for _, some in sorted(self.candidates.items()) for one in some for run in one.runs]


def merges(experiment: ExperimentConfig, planner) -> Iterator[MergePlan]:
    """Yield the merges of an experiment, one for each subset. Args: its RunPlanner."""
    for name, entry in experiment.merges.items():
        place = experiment.place("merges", name)
        encoder = entry.encoder or experiment.only_one("encoder", place)
        head = entry.head or experiment.only_one("head", place)
        for kind, one, known in (("encoder", encoder, experiment.encoders), ("head", head, experiment.heads)):
            if one not in known:
                raise UserError(f"{place}: {one} is no {kind} of the experiment{suggestion(one, known)}")
        seed = experiment.seeds[0] if entry.seed is None else entry.seed
        if seed not in experiment.seeds:
            raise UserError(f"{place}: seed {seed} is none of the experiment's; add it to seeds:")
        tasks = experiment.tasks_of(entry.tasks, place)
        for subset in experiment.subsets:
            candidates = {
                task: list(_candidates(entry, (task, subset, encoder, head), experiment, planner, place))
                for task in tasks
            }
            if empty := [task for task, some in candidates.items() if not some]:
                raise UserError(f"{place}: none of its strategies is run on {empty[0]}; add one, or leave the task out")
            key = layout.key("merge", {"subset": subset, "encoder": encoder, "merge": name})
            yield MergePlan(name, key, entry, seed, candidates)


def spec(merge: MergePlan, digests: Mapping[str, str]) -> dict:
    """Return the spec of a merge. Args: the digests of its runs, by folder."""
    tasks = {
        task: [
            {
                "strategy": one.runs[0].strategy,
                "variant": one.runs[0].variant,
                "frozen": one.size.frozen,
                "own": one.size.own,
                "runs": [digests[run.folder] for run in one.runs],
            }
            for one in some
        ]
        for task, some in merge.candidates.items()
    }
    rule = merge.entry.choose
    chosen = {"choose": rule, "margin": merge.entry.margin, "seed": merge.seed}
    chosen |= kind_version("rule_version", RULE_VERSIONS.get(rule, 1))
    seeds = [run.seed for run in next(iter(merge.candidates.values()))[0].runs]
    return {"version": STEPS["merge"].version, "merge": merge.name, **chosen, "seeds": seeds, "tasks": tasks}


def _candidates(
    entry: MergeConfig, names: tuple[str, str, str, str], experiment: ExperimentConfig, planner, place: str
) -> Iterator[CandidateBranch]:
    """Yield the branches that a task may take. Args: names of task, subset, encoder and head."""
    task, subset, encoder, head = names
    for item in entry.strategies:
        name, points = named_points(item)
        planner.catalogue.get("strategies", name, place)
        for value in planner.points(name, encoder) if points is None else points:
            cell = RunCell(task, subset, encoder, head, name, value, 0)
            runs = [planner.run_of(cell._replace(seed=seed)) for seed in experiment.seeds]
            if runs[0]:
                yield CandidateBranch(_size(runs[0], planner, place), runs)


def _size(run: RunPlan, planner, place: str) -> BranchSize:
    """Return the size of a run's branch; a run that can be none is a UserError."""
    head, point = planner.head_under(run), f"{run.strategy} {run.variant}"
    if head.kind not in EXPORTED:
        raise UserError(
            f"{place}: {point} on {run.task} has the head {head.kind}; a branch has {' or '.join(EXPORTED)}"
        )
    if planner.strategy(run).multi_task:
        raise UserError(
            f"{place}: {point} trains several tasks at once, which share all layers; merge its runs with thaw merge"
        )
    read = planner.read(run)
    if len(read) > 1 or not isinstance(head.layers, OneLayerConfig):
        raise UserError(f"{place}: {point} reads several layers; a branch ends in one")
    layers = planner.layers(run.encoder)
    lowest = [boundary(chosen, layers) for chosen in planner.trained_from_start(run)]
    if None in lowest or run.weights.further:
        why = "trains the embeddings" if None in lowest else "starts from further pretraining"
        raise UserError(f"{place}: {point} {why}, so it shares no layer with other tasks; leave it out")
    frozen, shape = min([read[-1], *lowest]), planner.shape(run)
    if shape is None:
        return BranchSize(frozen, read[-1] - frozen)
    frozen = min(frozen, shape.unchanged_below(layers))
    return BranchSize(frozen, sum(layer > frozen for layer in shape.layers))
