"""Which jobs start first: those with the most left to compute in them and in what waits for them. No torch.

Snakemake starts jobs of equal priority by the size of their inputs. Full fine-tuning reads least, so that it would come
last and run alone while the other cores have nothing to do. Longest first keeps them busy to the end (Graham 1969).
"""

from functools import cache

from thaw.core.steps import COMPUTING
from thaw.planning.cost_estimate import operations
from thaw.planning.job_request import first_of_cells
from thaw.planning.plan import Plan

MOST = 9.0  # below the priority of what all runs wait for: data, encoders, features


def priorities(plan: Plan) -> dict[tuple[str, str], float]:
    """Return by step and key the priority of each job, from 0 to MOST: its share of the longest chain of jobs."""
    left = operations_left(plan)
    most = max(left.values(), default=0.0) or 1.0
    return {job: MOST * own / most for job, own in left.items()}


def operations_left(plan: Plan) -> dict[tuple[str, str], float]:
    """Return by step and key the operations of each job and of the longest chain of jobs that wait for it."""
    jobs = [(step, key) for step, keys in plan.jobs.items() for key in keys]
    makers = {file: job for job in jobs for file in plan.files(*job)}
    waiting: dict[tuple[str, str], set[tuple[str, str]]] = {job: set() for job in jobs}
    for job in jobs:
        for files in plan.job(*job).inputs.values():
            for file in files:
                if file in makers:
                    waiting[makers[file]].add(job)
    own = operations_of_jobs(plan)

    @cache
    def left(job: tuple[str, str]) -> float:
        return own.get(job, 0.0) + max(map(left, waiting[job]), default=0.0)

    return {job: left(job) for job in jobs}


def operations_of_jobs(plan: Plan) -> dict[tuple[str, str], float]:
    """Return by step and key the operations of each job that computes; all seeds of a cell have as many."""
    first = first_of_cells(plan)
    counted: dict[tuple[str, str], float] = {}
    for step in COMPUTING:
        for key in plan.jobs[step]:
            same = first.get(key, key) if step == "train" else key
            counted[step, key] = counted[step, same] if same != key else operations(plan, step, key)
    return counted
