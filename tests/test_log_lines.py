"""What a training prints: whose line it is, loss and score after each epoch, the result at the end."""

import re

import pytest

from thaw.core import layout, runtime
from thaw.core.files import read_json
from thaw.evaluation.result_files import epoch_line, result_line, scored
from thaw.training.run_state import PhaseLog
from tiny_corpus import small_bert

LABELS = [
    ("train", "runs/cola/all/minilm/linear/full/base/seed1", "train cola/all/minilm/linear/full/base/seed1"),
    ("features", "features/minilm.mlm.cola/cola/joint", "features minilm.mlm.cola/cola/joint"),
    ("prepare", "data/data", "prepare data"),
    ("report", "outputs/demo/report.html", "report demo/report.html"),
    ("train", "elsewhere", ""),
    ("no_step", "data/cola", ""),
]


bench = pytest.fixture(scope="module")(small_bert)


@pytest.fixture(autouse=True)
def _unnamed():
    yield
    runtime.name_job("")


def lines(capsys) -> list[str]:
    """Return what was logged, without the time of day."""
    return [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize("step, out, label", LABELS)
def test_a_job_is_named_by_where_it_writes(step, out, label):
    assert {layout.label(step, f"{folder}{out}") for folder in ("results/", "/my/other/", "")} == {label}


def test_each_line_says_whose_it_is(capsys):
    runtime.name_job("cola full seed 1")
    runtime.log("one")
    runtime.name_job("")
    runtime.log("two")
    assert lines(capsys) == ["[cola full seed 1] one", "two"]


def test_an_epochs_line():
    assert epoch_line("epoch 1 of 2", [0.5234], "mcc", [0.1234]) == "epoch 1 of 2: loss 0.523, validation MCC 12.3"
    assert (
        epoch_line("epoch 2 of 2", [0.5, 1.0], "f1", [0.1, 0.3])
        == "epoch 2 of 2: means of 2 runs: loss 0.750, validation F1 20.0"
    )
    assert epoch_line("epoch 3 of 9", [1.0], "mcc", []) == "epoch 3 of 9: loss 1.00"
    assert epoch_line("epoch 1 of 1", [1.0], "mcc", [None]).endswith("validation MCC undefined")


def test_a_result_has_every_test_split_and_a_trial_its_validation():
    task = {"metrics": ["mcc", "f1"], "validation": "validation", "test": ["test", "shifted"]}
    scores = {"validation": {"mcc": 0.5}, "test": {"mcc": 0.179}, "shifted": {"mcc": None}}
    assert result_line(task, {"scores": scores}, 27.4) == "test MCC 17.9, shifted MCC undefined, 27 s"
    trial = {"scores": {"validation": {"mcc": 0.5}}}
    assert result_line(task, trial, 0.34) == "validation MCC 50.0, 0.3 s"
    assert scored("my.py:gain", 0.5) == "my.py:gain 50.0"


def test_the_loss_of_an_epoch_weighs_its_updates():
    history = [{"epoch": e, "step": s, "loss": loss} for e, s, loss in [(1, 2, 9.0), (2, 3, 1.0), (2, 6, 3.0)]]
    phase_log = PhaseLog(history=history)
    assert (phase_log.mean_loss(1), phase_log.mean_loss(2)) == (9.0, 2.5)
    assert phase_log.mean_loss(3) != phase_log.mean_loss(3)


def test_the_log_of_an_epoch_does_not_read_those_before_it():
    class Row(dict):
        def __getitem__(self, key):
            read.append(self.get("epoch"))
            return super().__getitem__(key)

    read, epochs = [], 1000
    phase_log = PhaseLog(history=[Row(epoch=1 + n // 5, step=n + 1, loss=0.5) for n in range(5 * epochs)])
    assert len(phase_log.rows(epochs)) == 5 and phase_log.mean_loss(epochs) == 0.5
    assert len(read) < 100, "a search in 5,000 rows reads 13 of them"


def test_a_run_logs_each_epoch_and_its_result(bench, tmp_path, capsys):
    out = tmp_path / "runs/t/all/e/linear/full/base/seed1"
    bench.step("train", bench.spec({"train": ["all"], "pick": "best"}, {"train": ["all"], "epochs": 1}), out)
    logged, metrics = lines(capsys), read_json(out / "metrics.json")
    assert all(line.startswith("[train t/all/e/linear/full/base/seed1] ") for line in logged)
    epochs = [line.removeprefix("[train t/all/e/linear/full/base/seed1] ") for line in logged if "epoch" in line]
    pattern = r"phase 1, epoch {} of 2: loss [\d.]+, validation accuracy [\d.]+"
    assert re.fullmatch(pattern.format(1), epochs[0]) and re.fullmatch(pattern.format(2), epochs[1])
    assert re.fullmatch(r"phase 2, epoch 1 of 1: loss [\d.]+", epochs[2]) and len(epochs) == 3
    score = 100 * metrics["scores"]["test"]["accuracy"]
    assert re.fullmatch(rf"\[train t/all/e/linear/full/base/seed1\] test accuracy {score:.1f}, [\d.]+ s", logged[-1])


def test_heads_in_one_batch_log_their_means_and_each_result(bench, tmp_path, capsys):
    out = tmp_path / "runs/t/all/e/linear/short/base"
    spec = bench.spec({"train": ["head"], "epochs": 2})
    del spec["seed"]
    bench.step("fit_heads", spec, out, "--seeds", "1", "2")
    logged = [line.removeprefix("[fit_heads t/all/e/linear/short/base] ") for line in lines(capsys)]
    assert [line.split(":")[0] for line in logged if "epoch" in line] == ["epoch 1 of 2", "epoch 2 of 2"]
    assert all("means of 2 runs: loss " in line for line in logged if "epoch" in line)
    scores = [read_json(out / f"seed{n}/metrics.json")["scores"]["test"]["accuracy"] for n in (1, 2)]
    for number, score in enumerate(scores, 1):
        assert sum(line.startswith(f"seed {number}: test accuracy {100 * score:.1f}, ") for line in logged) == 1
