"""What is run next under a time budget: cheap cells first, one seed of each; those that are worse for sure are pruned.

A cell is a point of a strategy on a task, subset, encoder and head, over all seeds. No torch.
"""

from dataclasses import dataclass, field
from math import inf, sqrt
from statistics import NormalDist, mean, variance

from thaw.core.files import read_json
from thaw.declarations.output_kind import Use
from thaw.declarations.output_options import AdviceOptions
from thaw.declarations.outputs import kinds_for
from thaw.planning.jobs import Result
from thaw.planning.plan import Plan
from thaw.planning.run_jobs import result_of
from thaw.planning.run_plan import RunPlan, needed
from thaw.planning.start_order import operations_of_jobs

NORMAL = NormalDist().inv_cdf(0.975)
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class PendingRun:
    """The run of a cell with one seed: how many seeds of the cell come before it, and its operations with those
    of what it needs and no seed before it.
    """

    run: RunPlan
    number: int
    operations: float

    @property
    def group(self) -> tuple:
        """What it competes with: the cells of the same task, subset, encoder and head."""
        return self.run.task, self.run.subset, self.run.encoder, self.run.head


def seconds_of(budget: str) -> float:
    """Return the seconds of a budget such as 90s, 45m or 2h."""
    return float(budget[:-1]) * UNITS[budget[-1]]


def pending_runs(plan: Plan, experiment: str) -> list[PendingRun]:
    """Return the runs of an experiment that are not there: the first seed of each cell, then the second, cheap first.

    A head that is fitted for all seeds in one job has one turn.
    """
    numbers: dict[str, int] = {}
    counted: dict[str, set[tuple[str, str]]] = {}  # by cell the jobs that an earlier seed has brought with it
    own, pending = operations_of_jobs(plan), []
    for run in plan.runs[experiment]:
        number = numbers.setdefault(run.cell, 0)
        numbers[run.cell] += 1
        if run.trial or (run.step == "fit_heads" and number) or plan.is_there(run):
            continue
        jobs = {(one.step, one.key) for one in [*(need.of for need in needed(run)), run]}
        jobs -= counted.setdefault(run.cell, set())
        counted[run.cell] |= jobs
        pending.append(PendingRun(run, number, sum(own.get(job, 0.0) for job in jobs if not plan.is_current(*job))))
    return sorted(pending, key=lambda turn: (turn.number, turn.operations))


def missing(plan: Plan, experiment: str) -> int:
    """Return how many results a report lacks: runs of every seed, baselines, external predictions, ensembles."""
    shown = [*plan.shown[experiment], *(run for _, run in plan.baseline_runs[experiment])]
    wanted = {run.folder: result_of(run) for run in shown}
    wanted |= {folder: Result(step, key) for folder, (step, key) in plan.extra_results[experiment].items()}
    return sum(not plan.records.is_made(result) for result in wanted.values())


def pruned(plan: Plan, experiment: str) -> dict[str, str]:
    """Return {folder of a cell: why} of those that are worse on validation than the best of their group, for sure.

    Scores are means over the seeds that are there, by the task's main metric. A cell is pruned where the whole 95 %
    interval of its difference to the best is below minus the margin that a recommendation may lose.
    """
    groups: dict[tuple, dict[str, SeedScores]] = {}
    for run in plan.runs[experiment]:
        if not run.trial and plan.is_there(run):
            subset = plan.catalogue.get("subsets", run.subset, "subsets")
            task = subset.of_runs(plan.catalogue.get("tasks", run.task, "tasks"))
            record = read_json(plan.table.paths.result(run.folder))
            value = record["scores"][task.validation][task.metrics[0]] or 0.0
            cells = groups.setdefault((run.task, run.subset, run.encoder, run.head), {})
            fitted = plan.job(run.step, run.key).fits_to_convergence
            cell = cells.setdefault(run.cell, SeedScores(fitted, record["rows"][task.validation]))
            cell.values.append(100 * value)
    why, margin = {}, _margin(plan, experiment)
    for cells in groups.values():
        best = max(cells.values(), key=lambda cell: mean(cell.values))
        for name, cell in cells.items():
            behind, noise = mean(best.values) - mean(cell.values), _noise(cell, best, list(cells.values()))
            if behind - noise > margin:
                why[name] = f"pruned, {behind:.1f} ± {noise:.1f} points below the best on validation"
    return why


def _margin(plan: Plan, experiment: str) -> float:
    """Return the points that a recommendation may lose in some table of the experiment; what is worse gets none."""
    entries = [plan.catalogue.get("outputs", name, "outputs") for name in plan.experiment(experiment).outputs]
    margins = [entry.margin for entry in entries if entry.kind in kinds_for(Use.ADVICE)]
    return max(margins, default=AdviceOptions.model_fields["margin"].default)


@dataclass
class SeedScores:
    """The scores of a cell x 100 by seed, whether they are fits to convergence, and the rows that are scored."""

    fitted: bool
    rows: int
    values: list[float] = field(default_factory=list)

    @property
    def known(self) -> bool:
        """Whether its deviation over seeds is known: a fit has none but that which its seeds show."""
        return self.fitted or len(self.values) > 1

    def by_seed(self, pooled: float) -> float:
        """Return the variance of its mean over seeds. Args: that of a seed, pooled over what is trained."""
        own = variance(self.values) if len(self.values) > 1 else 0.0
        return (own if self.fitted else max(own, pooled)) / len(self.values)


def _noise(cell: SeedScores, best: SeedScores, group: list[SeedScores]) -> float:
    """Return the half width of the 95 % interval of a difference; infinite where no seed says how seeds differ.

    Seeds: by Student's t with the deviation of all cells that have several seeds, or of these two if that is larger.
    Validation rows: 100 / sqrt(4 N) points for each, as of an accuracy of a half, and as if the two were not paired.
    """
    from scipy.stats import t

    if not (cell.known and best.known):
        return inf
    several = [one for one in group if len(one.values) > 1 and not one.fitted]
    freedom = sum(len(one.values) - 1 for one in several)
    pooled = sum((len(one.values) - 1) * variance(one.values) for one in several) / max(1, freedom)
    seeds = cell.by_seed(pooled) + best.by_seed(pooled)
    rows = 100**2 / (4 * cell.rows) + 100**2 / (4 * best.rows)
    times = float(t.ppf(0.975, freedom)) if freedom else NORMAL
    return sqrt(times**2 * seeds + NORMAL**2 * rows)


def affordable(
    waiting: list[PendingRun], pruned: dict[str, str], left: float, most: float, seconds
) -> list[PendingRun]:
    """Return the turns of the next slice in their order: those that fit into `most` seconds together, one at least.

    Args: turns that wait; pruned cells; seconds left of the budget; `seconds(operations)`, what a turn takes.
    One that does not fit into what is left is passed over, [] where none fits. A slice has one seed of a cell: one that
    is pruned after it gets no other.
    """
    chosen, spent = [], 0.0
    for turn in waiting:
        takes = seconds(turn.operations)
        fits = spent + takes <= (min(most, left) if chosen else left)
        fits = fits and (not chosen or turn.number == chosen[0].number)
        if turn.run.cell not in pruned and fits:
            chosen.append(turn)
            spent += takes
    return chosen
