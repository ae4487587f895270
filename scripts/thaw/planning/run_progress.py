"""The lines that Snakemake's jobs add up to, as `23 of 54 jobs, about 4 min left`, and which jobs start first.

Snakemake starts jobs of equal priority by the size of their inputs. Full fine-tuning reads least, so that it would come
last and run alone. Longest first keeps all cores busy to the end (Graham 1969).
"""

import logging
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from thaw.core.steps import COMPUTING
from thaw.planning import cost_estimate
from thaw.planning.cost_estimate import operations
from thaw.planning.job_request import first_of_cells
from thaw.planning.plan import Plan

SPACING = 5.0  # seconds between two lines
MEASURED = 0.02  # of the work: so much of it says how fast it goes
RATE = 5e10  # operations a second of a usual processor, all cores together
GOES_WELL = ("job_info", "job_started", "job_finished", "progress")  # events of a job that Snakemake speaks of
DEFAULT_LIMIT = (100, 1)  # jobs, in seconds
SELECTS = "Select jobs to execute..."
# What Snakemake says of a failed job in addition to the job's own lines, and at its end.
SAYS_AGAIN = ("CalledProcessError in file", "--keep-incomplete mode is set", "At least one job did not complete")


class RunProgress(logging.Handler):
    """A handler for Snakemake's logger: it writes how many jobs are done and how long the others will take.

    The plan's estimate of each job says how much of the work is done; the clock says how fast the work is. Of jobs that
    fail it notes the logs.
    """

    def __init__(self, seconds: dict[int, float], write: Callable[[str], None], clock=time.monotonic):
        """Start now. Args: each job's estimate by its number, in any unit; what takes a line; a clock in seconds."""
        super().__init__()
        self.seconds = seconds
        self.finished: set[int] = set()
        self.failed: dict[int, list[str]] = {}  # by number of the job its logs
        self.write, self.clock = write, clock
        self.start, self.written = clock(), -SPACING

    def emit(self, record: logging.LogRecord) -> None:
        """Note a job that is done, and write a line unless the last is only seconds old."""
        facts = vars(record)
        match facts.get("event"):
            case "job_finished":
                self.finished.add(facts["job_id"])
                self.failed.pop(facts["job_id"], None)
            case "job_error":
                self.failed[facts["jobid"]] = list(map(str, facts["log"]))
            case "progress":
                now = self.clock() - self.start
                if now - self.written >= SPACING and facts["done"] < facts["total"]:
                    self.written = now
                    left = self.seconds_left()
                    words = "" if left is None else f", about {duration(left)} left"
                    self.write(f"{facts['done']} of {facts['total']} jobs{words}")

    def mistakes(self) -> list[str]:
        """Return the sentences with which jobs failed, each once, with the log that has it."""
        said: dict = {}
        for path in (Path(log) for logs in self.failed.values() for log in logs if Path(log).is_file()):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            if sentence := next((line for line in reversed(lines) if line.startswith("error: ")), None):
                said.setdefault(sentence, f"{sentence} ({path})")
        return list(said.values())

    def seconds_left(self) -> float | None:
        """Return how long what is left will take if it goes on as it went so far; None where nothing is measured."""
        total = sum(self.seconds.values())
        left = sum(seconds for job, seconds in self.seconds.items() if job not in self.finished)
        done = total - left
        return left * (self.clock() - self.start) / done if done >= MEASURED * total > 0 else None


def is_shown(record: logging.LogRecord) -> bool:
    """Return whether a line of Snakemake is shown where steps print theirs: not on jobs that go well, nothing again."""
    again = isinstance(record.msg, str) and any(words in record.msg for words in SAYS_AGAIN)
    return getattr(record, "event", None) not in GOES_WELL and record.msg != SELECTS and not again


def is_default_limit(limit) -> bool:
    """Return whether Snakemake's limit on jobs a second, a MaxJobsPerTimespan or None, is what it has by default."""
    return limit is not None and (limit.max_jobs, limit.timespan) == DEFAULT_LIMIT


def estimated(plan: Plan, outputs: dict[int, list[str]], threads: int) -> dict[int, float]:
    """Return about how long each job takes, by its number, on a machine of `RATE`; how long here, the clock says.

    Args: the declared files of each job by its number, where a job that the plan does not know, as a target, takes no
    time; the threads of a job here.
    """
    own = operations_of_jobs(plan)
    by_file = {file: (step, key) for step, keys in plan.jobs.items() for key in keys for file in plan.files(step, key)}
    seconds = {}
    for number, files in outputs.items():
        job = next((by_file[file] for file in files if file in by_file), None)
        seconds[number] = cost_estimate.seconds(job[0], own.get(job, 0.0), 1, threads, RATE) if job else 0.0
    return seconds


def duration(seconds: float) -> str:
    """Return a time in one unit, as `40 s`, `4 min`, `2.5 h`."""
    if seconds < 90:
        return f"{10 * max(1, round(seconds / 10))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


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
