"""How many jobs are done and how long the others will take: from the plan's estimate, corrected by the clock."""

import inspect
import logging

import pytest
from snakemake.cli import get_argument_parser
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.settings.types import MaxJobsPerTimespan

from plans import plan_of
from thaw.planning.run_progress import RunProgress, duration, estimated, is_default_limit, is_shown


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def record(event: str | None = None, msg: str | None = None, **facts) -> logging.LogRecord:
    """Return a record as Snakemake logs it."""
    return logging.makeLogRecord({"msg": msg, **({"event": event} if event else {}), **facts})


def finish(progress: RunProgress, job: int, done: int, total: int) -> None:
    """Log the end of a job as Snakemake's scheduler does."""
    progress.handle(record("job_finished", "Finished jobid", job_id=job))
    progress.handle(record("progress", done=done, total=total))


def test_the_time_left_goes_by_the_clock_and_by_the_work_that_is_done():
    clock, lines = Clock(), []
    progress = RunProgress({1: 60.0, 2: 60.0, 3: 120.0, 4: 1.0}, lines.append, clock)
    assert progress.seconds_left() is None, "nothing was measured yet"
    clock.now += 6
    finish(progress, 4, 1, 4)
    clock.now += 594
    finish(progress, 1, 2, 4)
    clock.now += 1200
    finish(progress, 2, 3, 4)
    assert lines == ["1 of 4 jobs", "2 of 4 jobs, about 30 min left", "3 of 4 jobs, about 30 min left"]
    assert progress.seconds_left() == pytest.approx(120 * 1800 / 121)
    finish(progress, 3, 4, 4)
    assert progress.seconds_left() == 0 and len(lines) == 3, "that the last is done is seen"


def test_jobs_that_end_together_give_one_line():
    clock, lines = Clock(), []
    progress = RunProgress({n: 10.0 for n in range(10)}, lines.append, clock)
    for number in range(5):
        clock.now += 1
        finish(progress, number, number + 1, 10)
    assert len(lines) == 1 and lines[0].startswith("1 of 10 jobs, ")
    clock.now += 5
    finish(progress, 5, 6, 10)
    assert len(lines) == 2 and lines[1].startswith("6 of 10 jobs, ")


@pytest.mark.parametrize(
    "seconds, words", [(0, "10 s"), (44, "40 s"), (89, "90 s"), (240, "4 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_a_duration_has_one_unit(seconds, words):
    assert duration(seconds) == words


def test_jobs_that_go_well_are_not_shown_and_all_else_is():
    events = ("job_info", "job_started", "job_finished", "progress")
    hidden = [*(record(event) for event in events), record(msg="Select jobs to execute...")]
    shown = [*(record(event) for event in ("job_error", "group_error", "run_info", "error")), record(msg="anything")]
    again = "RuleException:\nCalledProcessError in file x.smk", "WorkflowError:\nAt least one job did not complete it."
    hidden += [record("error", msg) for msg in again]
    assert not any(map(is_shown, hidden)) and all(map(is_shown, shown))


def test_of_jobs_that_failed_at_last_the_sentence_is_kept_with_its_log(tmp_path):
    progress = RunProgress({}, print, Clock())
    for number, name in enumerate(("prepare", "other", "again", "silent"), start=1):
        log = tmp_path / f"{name}.log"
        log.write_text("reading\nerror: no label\nerror: a.csv:3\n" if name != "silent" else "killed\n")
        progress.handle(record("job_error", jobid=number, log=[log]))
    progress.handle(record("job_error", jobid=5, log=[]))
    finish(progress, 1, 1, 5)  # its second attempt went well
    assert progress.mistakes() == [f"error: a.csv:3 ({tmp_path}/other.log)"], "each sentence once"


def test_training_is_estimated_to_take_longer_than_a_table():
    plan = plan_of()
    full = next(key for key in plan.jobs["train"] if "/full/" in key)
    files = {1: plan.files("train", full), 2: plan.files("table", "demo/main_table"), 3: [], 4: ["my/target"]}
    seconds = estimated(plan, files, 1)
    assert seconds[1] > seconds[2] > 0 and seconds[3] == seconds[4] == 0


def test_snakemake_has_the_limit_on_jobs_that_is_taken_away():
    """Where it is renamed, each job that starts or ends leaves a timer again (`cli/workflow_events.py`)."""
    source = inspect.getsource(JobScheduler)
    assert "if self.job_rate_limiter is not None:" in source and "self._schedule_reevalutation(" in source
    parsed = get_argument_parser().parse_args([])
    assert is_default_limit(parsed.max_jobs_per_timespan) and not is_default_limit(MaxJobsPerTimespan(5, "1m"))
    assert not is_default_limit(None)


def test_snakemake_has_these_events():
    from snakemake_interface_logger_plugins.common import LogEvent

    from thaw.planning.run_progress import GOES_WELL

    assert set(GOES_WELL) <= set(LogEvent)
