"""What is run next under a time budget: cheap cells first, one seed of each; clearly worse ones are pruned.

A cell is a point of a strategy on a task, subset, encoder and head, over all seeds. No torch.
"""

from dataclasses import dataclass

from thaw.core.files import read_json
from thaw.planning.cost_estimate import operations
from thaw.planning.plan import Plan
from thaw.planning.run_plan import RunPlan, needed

PRUNING_MARGIN = 5.0  # points below the best on validation after a seed, beyond which no further seed is run
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
    pending = []
    for run in plan.runs[experiment]:
        number = numbers.setdefault(run.cell, 0)
        numbers[run.cell] += 1
        if run.trial or (run.step == "fit_heads" and number) or plan.is_there(run):
            continue
        jobs = {(one.step, one.key) for one in [*(need.of for need in needed(run)), run]}
        jobs -= counted.setdefault(run.cell, set())
        counted[run.cell] |= jobs
        pending.append(
            PendingRun(run, number, sum(operations(plan, *job) for job in jobs if not plan.is_current(*job)))
        )
    return sorted(pending, key=lambda turn: (turn.number, turn.operations))


def pruned(plan: Plan, experiment: str) -> dict[str, str]:
    """Return {folder of a cell: why} of those whose validation score is far below the best one's of their group.

    Scores are means over the seeds that are there, by the task's main metric.
    """
    groups: dict[tuple, dict[str, list[float]]] = {}
    for run in plan.runs[experiment]:
        if not run.trial and plan.is_there(run):
            subset = plan.catalogue.get("subsets", run.subset, "subsets")
            task = subset.of_runs(plan.catalogue.get("tasks", run.task, "tasks"))
            scores = read_json(plan.table.paths.result(run.folder))["scores"]
            value = scores[task.validation][task.metrics[0]] or 0.0
            cells = groups.setdefault((run.task, run.subset, run.encoder, run.head), {})
            cells.setdefault(run.cell, []).append(100 * value)
    behind_best = {}
    for cells in groups.values():
        means = {cell: sum(values) / len(values) for cell, values in cells.items()}
        best = max(means.values())
        behind = {cell: best - mean for cell, mean in means.items() if best - mean > PRUNING_MARGIN}
        behind_best |= {
            cell: f"pruned, {points:.1f} points below the best on validation" for cell, points in behind.items()
        }
    return behind_best


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
