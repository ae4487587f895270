"""How many jobs are done and how long the others will take: from the plan's estimate, corrected by the clock."""

import logging
import threading

import pytest

from thaw.core.home import HOME
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.run_progress import RunProgress, duration, estimated_seconds, is_shown


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def record(event: str | None = None, msg: str | None = None, **facts) -> logging.LogRecord:
    """Return a record as Snakemake logs it."""
    return logging.makeLogRecord({"msg": msg, **({"event": event} if event else {}), **facts})


def started(seconds: dict[int, float], lines: list[str], clock: Clock) -> RunProgress:
    """Return the handler when it has its estimate."""
    progress = RunProgress(lambda: seconds, lines.append, clock)
    progress.estimating.join()
    return progress


def finish(progress: RunProgress, job: int, done: int, total: int) -> None:
    """Log the end of a job as Snakemake's scheduler does."""
    progress.handle(record("job_finished", "Finished jobid", job_id=job))
    progress.handle(record("progress", done=done, total=total))


def test_the_estimate_is_corrected_by_the_clock():
    clock, lines = Clock(), []
    progress = started({1: 600.0, 2: 600.0, 3: 1200.0}, lines, clock)
    assert progress.seconds_left() == 2400, "nothing was measured yet"
    clock.now += 600
    finish(progress, 1, 1, 3)
    clock.now += 1200
    finish(progress, 2, 2, 3)
    assert lines == ["1 of 3 jobs, about 30 min left", "2 of 3 jobs, about 28 min left"]
    assert progress.seconds_left() == pytest.approx(1200 * (1800 + 240) / (1200 + 240))
    finish(progress, 3, 3, 3)
    assert progress.seconds_left() == 0 and len(lines) == 2, "that the last is done is seen"


def test_jobs_that_end_together_give_one_line():
    clock, lines = Clock(), []
    progress = started({n: 10.0 for n in range(10)}, lines, clock)
    for number in range(5):
        clock.now += 1
        finish(progress, number, number + 1, 10)
    assert len(lines) == 1 and lines[0].startswith("1 of 10 jobs, ")
    clock.now += 5
    finish(progress, 5, 6, 10)
    assert len(lines) == 2 and lines[1].startswith("6 of 10 jobs, ")


def test_no_job_waits_for_the_estimate():
    """Until the machine is timed a line has no time, and what ended before counts as done afterwards."""
    clock, lines, timed = Clock(), [], threading.Event()

    def estimate() -> dict[int, float]:
        timed.wait()
        return {1: 600.0, 2: 600.0}

    progress = RunProgress(estimate, lines.append, clock)
    finish(progress, 1, 1, 2)
    assert lines == ["1 of 2 jobs"]
    timed.set()
    progress.estimating.join()
    clock.now += 600
    assert progress.seconds_left() == 600


@pytest.mark.parametrize(
    "seconds, words", [(0, "10 s"), (44, "40 s"), (89, "90 s"), (240, "4 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_a_duration_has_one_unit(seconds, words):
    assert duration(seconds) == words


def test_jobs_that_go_well_are_not_shown_and_all_else_is():
    events = ("job_info", "job_started", "job_finished", "progress")
    hidden = [*(record(event) for event in events), record(msg="Select jobs to execute...")]
    shown = [*(record(event) for event in ("job_error", "group_error", "run_info", "error")), record(msg="anything")]
    assert not any(map(is_shown, hidden)) and all(map(is_shown, shown))


def test_training_is_estimated_to_take_longer_than_a_table():
    plan = load_plan(read_config([str(HOME / "tests/base.yaml")], {}), HOME)
    full = next(key for key in plan.jobs["train"] if "/full/" in key)
    files = {1: plan.files("train", full), 2: plan.files("table", "demo/main_table"), 3: [], 4: ["my/target"]}
    seconds = estimated_seconds(plan, files)
    assert seconds[1] > seconds[2] > 0 and seconds[3] == seconds[4] == 0


def test_snakemake_has_these_events():
    from snakemake_interface_logger_plugins.common import LogEvent

    from thaw.planning.run_progress import GOES_WELL

    assert set(GOES_WELL) <= set(LogEvent)
