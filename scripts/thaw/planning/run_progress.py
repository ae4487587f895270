"""The lines that Snakemake's jobs add up to: `23 of 54 jobs, about 4 min left`."""

import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

from thaw.planning import cost_estimate
from thaw.planning.plan import Plan
from thaw.planning.start_order import operations_of_jobs

SPACING = 5.0  # seconds between two lines
UNTIMED = 15.0  # seconds until the machine is timed, which takes half a second of both cores from the first jobs
TRUST = 0.1  # of the estimate: so much of it is as good as time that was measured
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

    def __init__(
        self,
        estimate: Callable[[], dict[int, float]],
        write: Callable[[str], None],
        clock=time.monotonic,
        untimed: float = UNTIMED,
    ):
        """Start now.

        Args: `estimate()`, seconds by number of the job, which runs in a thread of its own, since it times this
        machine; what takes a line; a clock in seconds; seconds until the estimate, which a shorter run does without.
        """
        super().__init__()
        self.seconds: dict[int, float] = {}  # none as long as the estimate is not there
        self.finished: set[int] = set()
        self.failed: dict[int, list[str]] = {}  # by number of the job its logs
        self.write, self.clock = write, clock
        self.start, self.written = clock(), -SPACING
        self.estimating = threading.Timer(untimed, self._keep, (estimate,))
        self.estimating.daemon = True
        self.estimating.start()

    def _keep(self, estimate: Callable[[], dict[int, float]]) -> None:
        try:
            self.seconds = estimate()
        except Exception as error:  # no job fails because nobody knows how long it takes
            self.write(f"how long the jobs will take is not known: {error}")

    def emit(self, record: logging.LogRecord) -> None:
        """Note a job that is done, and write a line unless the last is only seconds old."""
        match getattr(record, "event", None):
            case "job_finished":
                self.finished.add(record.job_id)
                self.failed.pop(record.job_id, None)
            case "job_error":
                self.failed[record.jobid] = list(map(str, record.log))
            case "progress":
                now = self.clock() - self.start
                if now - self.written >= SPACING and record.done < record.total:
                    self.written = now
                    left = f", about {duration(self.seconds_left())} left" if self.seconds else ""
                    self.write(f"{record.done} of {record.total} jobs{left}")

    def mistakes(self) -> list[str]:
        """Return the sentences with which jobs failed, each once, with the log that has it."""
        said: dict = {}
        for path in (Path(log) for logs in self.failed.values() for log in logs if Path(log).is_file()):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            if sentence := next((line for line in reversed(lines) if line.startswith("error: ")), None):
                said.setdefault(sentence, f"{sentence} ({path})")
        return list(said.values())

    def seconds_left(self) -> float:
        """Return the estimate of what is left, times how much slower than estimated the jobs were so far."""
        total = sum(self.seconds.values())
        left = sum(seconds for job, seconds in self.seconds.items() if job not in self.finished)
        trusted, done = TRUST * total, total - left
        return left * (self.clock() - self.start + trusted) / (done + trusted) if left else 0.0


def is_shown(record: logging.LogRecord) -> bool:
    """Return whether a line of Snakemake is shown where steps print theirs: not on jobs that go well, nothing again."""
    again = isinstance(record.msg, str) and any(words in record.msg for words in SAYS_AGAIN)
    return getattr(record, "event", None) not in GOES_WELL and record.msg != SELECTS and not again


def is_default_limit(limit) -> bool:
    """Return whether Snakemake's limit on jobs a second, a MaxJobsPerTimespan or None, is what it has by default."""
    return limit is not None and (limit.max_jobs, limit.timespan) == DEFAULT_LIMIT


class TimeEstimate:
    """Each job's share of the whole time, with all cores busy, by its number: `seconds()`, which times this machine.

    What the jobs compute is read off the plan at once, since a job may remove what an earlier run left.
    """

    def __init__(self, plan: Plan, outputs: dict[int, list[str]], threads: int):
        """Read the plan.

        Args: the declared files of each job by its number, where a job that the plan does not know, as a target, takes
        no time; the threads of a job here.
        """
        jobs = [(step, key) for step, keys in plan.jobs.items() for key in keys]
        by_file = {file: job for job in jobs for file in plan.files(*job)}
        self.plan, self.threads = plan, threads
        self.jobs = {n: {by_file[file] for file in files if file in by_file} for n, files in outputs.items()}
        counted = [operations_of_jobs(plan, gain) for gain in (1.0, math.inf)]
        self.work = {n: [sum(own.get(job, 0.0) for job in known) for own in counted] for n, known in self.jobs.items()}

    def seconds(self) -> dict[int, float]:
        """Time this machine's cores, and bf16 where a job trains in it, and return the estimates."""
        rate = cost_estimate.machine_rate()
        gain = cost_estimate.bf16_gain(self.plan, [one for known in self.jobs.values() for one in known], self.threads)
        seconds = {}
        for number, (whole, in_fp32) in self.work.items():
            step = next(iter(self.jobs[number]))[0] if self.jobs[number] else ""
            work = in_fp32 + (whole - in_fp32) / gain
            seconds[number] = cost_estimate.seconds(step, work, 1, self.threads, rate) if step else 0.0
        return seconds


def duration(seconds: float) -> str:
    """Return a time in one unit, as `40 s`, `4 min`, `2.5 h`."""
    if seconds < 90:
        return f"{10 * max(1, round(seconds / 10))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
