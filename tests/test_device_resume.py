"""A run that was stopped on the pretended CUDA device (tests/pretended.py) goes on there, with all its state there."""

from dataclasses import replace

import pytest
import torch

from pretended import OnCuda, pretended
from test_device_strategies import placed
from test_progress import WAYS, Stopped, stop_after
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.training import progress
from thaw.training.progress import Progress
from thaw.training.training_run import TrainingRun, train
from tiny_corpus import Bench, rows, tiny_corpus


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    few = {"train": rows("classification", 8, 1), "validation": rows("classification", 4, 2)}
    corpus = tiny_corpus(folder / "data", "classification", **few, test=rows("classification", 4, 3))
    torch.set_num_threads(1)
    return Bench(folder, "bert", corpus, "classification")


def going_on(bench: Bench, spec: dict, folder, device):
    """Begin a run that keeps its progress in a folder, or go on with it; return what it leaves."""
    watch = Stopwatch()
    run = placed(TrainingRun(spec, replace(bench.inputs(), device=device)), device)
    return train([run], watch, Progress(folder, spec, watch, device))[0]


def stopped(bench: Bench, spec: dict, folder, device, monkeypatch, count: int = 1) -> None:
    """Let a run be stopped after so many epochs."""
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        patched.setattr(progress, "SPACING", 0.0)
        stop_after(patched, count)
        going_on(bench, spec, folder, device)


def seen_after_resume(monkeypatch) -> dict:
    """Note where the state of a phase is as it goes on: start, kept weights, what the optimizer knows."""
    resume, seen = Progress.resume, {}

    def noting(self, training):
        resume(self, training)
        (run_state,) = training.states
        known = [value for held in training.optimizer.state.values() for value in held.values()]
        seen["start"] = [*run_state.start.values()]
        seen["kept"] = [*(run_state.kept or (None, {}))[1].values()]
        seen["optimizer"] = [value for value in known if torch.is_tensor(value)]

    monkeypatch.setattr(Progress, "resume", noting)
    return seen


@pytest.mark.parametrize("way", ["best", "l2_to_start", "lora_then_the_top"])  # "gradual" is below
def test_what_goes_on_is_on_the_device(way, bench, tmp_path, monkeypatch):
    spec = bench.spec(*WAYS[way])
    with pretended() as device:
        stopped(bench, spec, tmp_path, device, monkeypatch)
        seen = seen_after_resume(monkeypatch)
        left = going_on(bench, spec, tmp_path, device)
    assert len(left.outcome["chosen"]["epochs"]) == len(spec["phases"])
    assert seen["optimizer"] and all(isinstance(value, OnCuda) for value in seen["optimizer"])
    phase = WAYS[way][0]
    assert bool(seen["start"]) == ("l2_to_start" in phase or "unfreeze" in phase)
    assert bool(seen["kept"]) == (phase.get("pick") == "best")
    assert all(isinstance(value, OnCuda) for value in seen["kept"])


@pytest.mark.parametrize("way", ["l2_to_start", "gradual"])
def test_what_stays_from_the_start_is_on_the_device_where_it_is_used(way, bench, tmp_path, monkeypatch):
    """Names of a later stage may wait on the CPU until they train."""
    spec, seen = bench.spec(*WAYS[way]), []
    with pretended() as device:
        stopped(bench, spec, tmp_path, device, monkeypatch)
        resume = Progress.resume

        def noting(self, training):
            resume(self, training)
            (run_state,) = training.states
            seen.extend(run_state.start[name] for name in run_state.parameters if name in run_state.start)

        monkeypatch.setattr(Progress, "resume", noting)
        going_on(bench, spec, tmp_path, device)
    assert seen and all(isinstance(value, OnCuda) for value in seen)


def test_what_is_written_is_copied_to_the_cpu_alone(bench, tmp_path, monkeypatch):
    """A copy on the device would be three to five times the trained tensors, at the end of each epoch."""
    write, cloned = Progress.write, []

    def watched(self, run, training):
        with monkeypatch.context() as patched:
            patched.setattr(OnCuda, "clone", lambda tensor: cloned.append(tensor) or torch.Tensor.clone(tensor))
            write(self, run, training)

    monkeypatch.setattr(Progress, "write", watched)
    monkeypatch.setattr(progress, "SPACING", 0.0)
    with pretended() as device:
        going_on(bench, bench.spec(*WAYS["best"]), tmp_path, device)
    assert cloned == []
