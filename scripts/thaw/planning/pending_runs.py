"""What `thaw advise` may run next: one seed of each cell, cheap cells first.

A cell is a point of a strategy on a task, subset, encoder and head, over all seeds. No torch.
"""

import re
from dataclasses import dataclass

from thaw.core.errors import UserError
from thaw.planning import cost_estimate
from thaw.planning.plan import Plan
from thaw.planning.run_plan import RunPlan, needed
from thaw.planning.run_progress import operations_of_jobs

UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class PendingRun:
    """The first run of a cell, and its operations with those of what it needs."""

    run: RunPlan
    operations: float

    @property
    def group(self) -> tuple:
        """What it competes with: the cells of the same task, subset, encoder and head."""
        return self.run.task, self.run.subset, self.run.encoder, self.run.head


def seconds_of(budget: str) -> float:
    """Return the seconds of a time such as 90s, 45m or 2h. Raises UserError for another form."""
    if not re.fullmatch(r"\d+(\.\d+)?[smh]", budget):
        raise UserError(f"{budget}: is no time; write 90s, 10m or 2h")
    return float(budget[:-1]) * UNITS[budget[-1]]


def pending_runs(plan: Plan) -> list[PendingRun]:
    """Return the first run of each cell of which no seed is there, cheap first."""
    cells: dict[str, list[RunPlan]] = {}
    for run in (run for run in plan.runs if not run.trial):
        cells.setdefault(run.cell, []).append(run)
    own, pending = operations_of_jobs(plan), []
    for runs in (runs for runs in cells.values() if not any(map(plan.status.is_there, runs))):
        jobs = {(one.step, one.key) for one in [*(need.of for need in needed(runs[0])), runs[0]]}
        left = sum(own.get(job, 0.0) for job in jobs if not plan.status.is_current(*job))
        pending.append(PendingRun(runs[0], left))
    return sorted(pending, key=lambda turn: turn.operations)


class Pace:
    """What a run takes: by its operations and this machine's speed, corrected by what the slices so far took."""

    def __init__(self, plan: Plan):
        self.rate, self.threads = cost_estimate.machine_rate(), plan.threads
        self.said = self.took = 0.0

    def seconds(self, operations: float) -> float:
        expected = cost_estimate.seconds("train", operations, 1, self.threads, self.rate)
        return expected * (self.took / self.said if self.said else 1.0)

    def learn(self, turns: list[PendingRun], took: float) -> None:
        """Take in that some turns took so long together."""
        self.said += sum(cost_estimate.seconds("train", turn.operations, 1, self.threads, self.rate) for turn in turns)
        self.took += took if turns else 0.0
