"""Seconds by the clock against those of the processor: what a busy machine makes of costs."""

import time

import pytest

from thaw.compute_cost.stopwatch import Stopwatch
from thaw.outputs.frame.busy_machine import busy_note


def test_a_stopwatch_counts_work_and_no_waiting():
    watch = Stopwatch()
    with watch("load"):
        time.sleep(0.3)
    waited = watch.processor
    with watch("train"):
        begin = time.process_time()
        while time.process_time() - begin < 0.3:
            pass
    time.sleep(0.1)  # outside all parts
    assert waited < 0.15 and 0.3 <= watch.processor - waited < 0.4


@pytest.fixture
def timed(invented_frame):
    """Six runs on the CPU of ten seconds each, in which the processor worked for nine."""
    runs = invented_frame[invented_frame["kind"] == "run"].drop_duplicates("folder").head(6)
    return runs.assign(device="cpu", total_seconds=10.0, processor_seconds=9.0)


def test_idle_machines_and_older_results_have_no_note(timed):
    assert busy_note(timed) == []
    assert busy_note(timed.assign(processor_seconds=float("nan"))) == []
    assert busy_note(timed.assign(device="NVIDIA T4", processor_seconds=1.0)) == [], "the card works"
    assert busy_note(timed.assign(total_seconds=4.0, processor_seconds=1.0)) == [], "most of it is starting"


def test_runs_that_waited_are_counted_once_each(timed):
    import pandas

    timed.loc[timed.index[:2], "processor_seconds"] = 4.9
    (note,) = busy_note(pandas.concat([timed, timed]))
    assert note.startswith("Seconds cannot be compared: in 2 of 6 runs the processor worked for less than half")
