"""The lines that Snakemake's jobs add up to: `23 of 54 jobs, about 4 min left`."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from thaw.planning import cost_estimate
from thaw.planning.plan import Plan
from thaw.planning.start_order import operations_of_jobs

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
