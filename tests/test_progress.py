"""A run that was stopped goes on after its last epoch, and ends with the bits of one that was not."""

import json
import signal
import time

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import forked
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core import devices
from thaw.core.files import read_json
from thaw.core.layout import PROGRESS as FILE
from thaw.training import progress
from thaw.training.progress import Progress
from thaw.training.training_run import train
from tiny_corpus import small_bert
from trained import equal, losses, tensors

WAYS = {
    "best": [{"train": ["head", {"top": "k"}], "epochs": 4, "patience": 2, "pick": "best"}],
    "best_is_first": [{"train": ["head", {"top": "k"}], "epochs": 3, "pick": "best", "rate": 1.0, "head_rate": 1.0}],
    "gradual": [{"train": ["all"], "epochs": 1, "unfreeze": {"layers": 1, "epochs": 1}, "pick": "best"}],
    "random_batches": [{"train": ["all"], "epochs": 2, "batches": "random"}],
    "updates": [{"train": ["head", {"top": "k"}], "updates": 20, "judge": 4, "pick": "best"}],
    "updates_in_stages": [{"train": ["all"], "updates": 26, "judge": 3, "unfreeze": {}, "schedule": "plateau"}],
    "chain_thaw": [{"train": ["all"], "epochs": 1, "one_by_one": True}],
    "l2_to_start": [{"train": ["all"], "epochs": 3, "optimizer": "bert_adam", "l2_to_start": 0.01}],
    "stack": [{"train": ["head"], "epochs": 2}, {"train": ["all"], "epochs": 2, "reinit_top": 1}],
    "lora": [{"train": ["head"], "epochs": 2, "insert": {"kind": "lora"}}] * 2,
    "lora_then_the_top": [
        {"train": ["head"], "epochs": 1, "insert": {"kind": "lora"}},
        *[{"train": ["head"], "epochs": 2, "insert": {"kind": "lora", "top": 1}, "boundary": 0}] * 2,
    ],
}


LATE = {
    "best",
    "gradual",
    "updates_in_stages",
    "stack",
    "lora_then_the_top",
}  # stopped near the end


class Stopped(Exception):
    """What ends a run in the middle."""


bench = pytest.fixture(scope="module")(small_bert)


@pytest.fixture(autouse=True)
def _every_epoch(monkeypatch):
    monkeypatch.setattr(progress, "SPACING", 0.0)


def trained(bench, spec, folder):
    """Train a run that keeps its progress in a folder; return what it leaves."""
    watch, run = Stopwatch(), bench.run(spec)
    return train([run], watch, Progress(folder, spec, watch))[0]


def stop_after(monkeypatch, count: int) -> None:
    """Let a run end after so many writes of its progress."""
    write, written = Progress.write, []

    def counting(self, *arguments):
        write(self, *arguments)
        written.append(1)
        if len(written) == count:
            raise Stopped

    monkeypatch.setattr(Progress, "write", counting)


@pytest.mark.parametrize("way", WAYS)
def test_what_goes_on_ends_as_what_was_never_stopped(way, bench, tmp_path, monkeypatch):
    spec = bench.spec(*WAYS[way])
    _, whole = bench.train(spec)
    epochs = sum(whole.outcome["chosen"]["epochs"])
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        stop_after(patched, max(1, epochs - 1) if way in LATE else 1)
        trained(bench, spec, tmp_path)
    assert (tmp_path / FILE).stat().st_size > 0
    again = trained(bench, spec, tmp_path)
    assert equal(tensors(again), tensors(whole)) and losses(again) == losses(whole)
    assert again.outcome == whole.outcome and again.history == whole.history
    assert again.cost == whole.cost, "operations, parameters, tokens and steps are those of the whole run"


def test_what_goes_on_counts_the_seconds_before_and_a_short_run_writes_nothing(bench, tmp_path, monkeypatch):
    spec = bench.spec(*WAYS["best"])
    for spacing, folder in ((60.0, tmp_path / "short"), (0.0, tmp_path / "long")):
        monkeypatch.setattr(progress, "SPACING", spacing)
        with monkeypatch.context() as patched, pytest.raises(Stopped):
            stop_after(patched, 2)
            trained(bench, spec, folder)
    assert not (tmp_path / "short" / FILE).exists()
    watch = Stopwatch()
    begin, left = watch.start, Progress(tmp_path / "long", spec, watch)
    left.restore(bench.run(spec))
    before = left.state["seconds"]
    assert before["train"] > 0 and {part: watch.parts[part] for part in before} == before
    assert watch.start == pytest.approx(begin - sum(before.values()))


@pytest.mark.parametrize("harm", ["cut short", "of other settings", "of another torch", "of a GPU", "of no run"])
def test_a_file_that_cannot_serve_is_left_alone_and_training_begins_anew(harm, bench, tmp_path, monkeypatch, capsys):
    spec = bench.spec({"train": ["head"], "epochs": 3})
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        stop_after(patched, 2)
        trained(bench, spec | {"seed": 2} if harm == "of other settings" else spec, tmp_path)
    file = tmp_path / FILE
    if harm == "cut short":
        file.write_bytes(file.read_bytes()[:1000])
    if harm == "of another torch":
        monkeypatch.setattr(progress, "versions", lambda: {"torch": "0.1"})
    if harm == "of a GPU":
        with safe_open(file, "pt") as read:
            state, kept = json.loads(read.metadata()["state"]), {name: read.get_tensor(name) for name in read.keys()}  # noqa: SIM118 - no mapping
        state["identity"]["device"] = "NVIDIA A100-SXM4-40GB"
        save_file(kept, file, {"state": json.dumps(state)})
    if harm == "of no run":
        save_file({"now:x": torch.zeros(1)}, file)
    again, (_, whole) = trained(bench, spec, tmp_path), bench.train(spec)
    assert equal(tensors(again), tensors(whole))
    assert "training restarts" in "".join(capsys.readouterr())


def test_what_a_killed_process_was_writing_is_removed(bench, tmp_path):
    left = tmp_path / f".{FILE}.abcdefgh.safetensors"
    left.write_bytes(b"half")
    Progress(tmp_path, bench.spec(*WAYS["best"]), Stopwatch())
    assert not left.exists()


def killed_and_finished(bench, spec: dict, tmp_path) -> None:
    """Train in `run` in a process that is killed once its state is on disk, and in another that goes on from there."""
    script, made = tmp_path / "train_and_write_each_epoch.py", tmp_path / "run"
    script.write_text(
        "from thaw.training import progress\nprogress.SPACING = 0.0\nfrom thaw.steps import train\ntrain.main()"
    )
    command = [script, *bench.arguments(spec), "--out", made]
    running, until = forked.start(command, ["/dev/null"] * 3), time.monotonic() + 120
    while not (made / FILE).exists() and time.monotonic() < until:
        time.sleep(0.01)
    running.kill()
    running.join()
    assert running.exitcode == -signal.SIGKILL and not (made / "metrics.json").exists()
    done = forked.run(command)
    assert done.returncode == 0 and "resumes after update" in done.stdout + done.stderr, done.stderr


def test_a_killed_step_goes_on_and_leaves_nothing_behind(bench, tmp_path):
    spec = bench.spec({"train": ["all"], "epochs": 15})
    killed_and_finished(bench, spec, tmp_path)
    bench.step("train", spec, tmp_path / "whole")
    for name in ("metrics.json", "history.csv", "head.safetensors", "predictions.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert not (tmp_path / "run" / FILE).exists()
    assert json.dumps(read_json(tmp_path / "run/cost.json")["flops"]) == json.dumps(
        read_json(tmp_path / "whole/cost.json")["flops"]
    )


def test_that_kernels_were_not_deterministic_is_kept_too(bench, tmp_path, monkeypatch):
    before = torch.get_deterministic_debug_mode()
    monkeypatch.setattr(devices, "_nondeterministic", [])
    spec = bench.spec({"train": ["head", {"top": "k"}], "epochs": 3})
    with monkeypatch.context() as stopped:
        stop_after(stopped, 1)
        devices.allow_nondeterministic("put_")
        with pytest.raises(Stopped):
            trained(bench, spec, tmp_path)
    devices._nondeterministic.clear()  # as in a new process
    try:
        trained(bench, spec, tmp_path)
        assert devices.nondeterministic_operations() == ["put_"]
    finally:
        torch.set_deterministic_debug_mode(before)
