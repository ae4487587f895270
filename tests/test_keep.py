"""A run whose trained layers were not kept has them again by itself, and only if it scores as it did."""

import numpy as np
import pytest
from safetensors.torch import load_file

from read_again import read_again
from shown import Shown
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.decision import record
from thaw.decision.arms import Arm
from thaw.decision.decide import decide
from thaw.exporting.export import export, keep, recommended_runs
from thaw.exporting.finished_run import command_of, open_run
from tiny_corpus import Bench, tiny_corpus

TUNED = {"train": ["head", {"top": 1}], "epochs": 1}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    bench = Bench(folder, "bert", tiny_corpus(folder / "data", "classification"), "classification")
    shown = Shown(bench, folder / "results")
    shown.train("tuned", TUNED, seeds=(1, 2))
    return shown


def folder(shown, strategy: str, seed: int = 1):
    return shown.folder / f"runs/t/all/e/linear/{strategy}/base/seed{seed}"


def test_layers_are_those_of_a_run_that_keeps_them(shown, forked_steps, monkeypatch):
    monkeypatch.setattr("thaw.exporting.export.check", read_again)
    run, before = folder(shown, "tuned"), read_json(folder(shown, "tuned") / "metrics.json")
    shown.train("keeping", TUNED, keep=True)
    with pytest.raises(UserError, match="did not keep them"):
        open_run(run)
    export(run, shown.folder.parent / "model")
    ours, theirs = (load_file(one / "encoder.safetensors") for one in (run, folder(shown, "keeping")))
    assert ours.keys() == theirs.keys() and all(ours[name].equal(theirs[name]) for name in ours)
    after = read_json(run / "metrics.json")
    assert after["scores"] == before["scores"] and after["spec"] == before["spec"] | {"keep": True}
    assert open_run(run).run == run and sorted(one.name for one in run.parent.iterdir()) == ["seed1", "seed2"]
    assert read_json(shown.folder.parent / "model/check.json")["passed"]


def test_a_file_of_each_kind_that_a_run_needs_is_found_by_its_digest(tmp_path):
    """Also the outputs of a teacher, which a student that is trained again reads."""
    spec = {"features": "f", "data": "d", "encoder": "e", "after": {"run": "r"}, "teacher": {"taught": "t"}}
    spec |= {"chosen": "c"}
    layouts = {"prepare": "d", "fetch": "e", "features": "f", "train": "r", "teach": "t", "select": "c"}
    for step, digest in layouts.items():
        place = tmp_path / layout.pattern(step).replace("*", "x")
        place.parent.mkdir(parents=True, exist_ok=True)
        write_json(place, {"digest": digest})
    command = command_of(spec, tmp_path, [])
    needs = {command[n + 1]: command[n + 2] for n, word in enumerate(command) if word == "--need"}
    assert {role: read_json(file)["digest"] for role, file in needs.items()} == {
        "start": "r",
        "teacher": "t",
        "settings": "c",
    }
    live = command_of(spec | {"teacher": {"run": "r", "dropout": True}}, tmp_path, [])
    assert "live_teacher" in live


def test_another_score_is_told_and_changes_nothing(shown, forked_steps):
    run = folder(shown, "tuned", 2)
    record = read_json(run / "metrics.json")
    record["scores"]["validation"]["accuracy"] = 0.123
    write_json(run / "metrics.json", record)
    with pytest.raises(UserError, match=r"scores otherwise \(validation accuracy .*, on record 0.123\)"):
        keep(run, [])
    assert not (run / "encoder.safetensors").exists() and read_json(run / "metrics.json") == record


def test_the_recommended_run_is_the_best_on_validation(shown):
    outputs = shown.folder / "outputs/mine"
    with pytest.raises(UserError, match="has no recommendation"):
        recommended_runs(outputs)
    record.write(outputs / record.ADVISED, [answer_taking(None)])
    with pytest.raises(UserError, match="the recommendation is to take no encoder"):
        recommended_runs(outputs)
    record.write(outputs / record.ADVISED, [answer_taking("tuned")])
    records = [read_json(folder(shown, "tuned", seed) / "metrics.json") for seed in (1, 2)]
    scores = [one["scores"]["validation"]["accuracy"] for one in records]
    best = folder(shown, "tuned", 1 + scores.index(max(scores)))
    assert recommended_runs(outputs) == {layout.names_in_folder("train", best.relative_to(shown.folder))["task"]: best}


def answer_taking(taken: str | None) -> record.TaskAnswer:
    """Return an answer that takes a strategy, or the baseline where it is None."""
    strategy = taken or "tuned"
    levels = {"majority": 50 if taken else 90, strategy: 80}
    arms = [
        Arm(name, np.full(2, level), np.full((2, 100), level), 50, price=1.0, encoder=name == strategy)
        for name, level in levels.items()
    ]
    points = {strategy: (strategy, "base")}
    names = {"majority": "majority class", strategy: strategy}
    return record.TaskAnswer("t", "all", "e", "linear", "t", "accuracy", decide(arms), names, points, {})
