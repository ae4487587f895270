"""thaw advise: what it trains and in which order, and when it stops."""

import argparse
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import forked
import thaw as package
from read_again import read_again
from thaw.cli import new_command
from thaw.cli.advise_command import Waiting, next_turns
from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.fork_server import ADDRESS
from thaw.decision import record
from thaw.decision.prior import expected
from thaw.decision.stops import gain_of_unseen
from thaw.planning import pending_runs
from thaw.planning.configuration import load_plan, read_config
from thaw.words import answer_text
from tiny import tiny_encoder
from workflow import HOME, Workplace

STRATEGIES = ["linear_probe", {"short_top": [1]}, "short_full"]


@pytest.fixture(scope="module")
def place(tmp_path_factory, servers) -> Workplace:
    """A workplace with one task, a probe and two strategies that train."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    more = {"tasks": ["colour"], "outputs": ["advice"], "strategies": STRATEGIES, "seeds": [1, 2]}
    place.write("mine.yaml", Workplace.experiment("mine", **more))
    place.servers = servers
    return place


def thaw(place: Workplace, *words: str) -> subprocess.CompletedProcess:
    environment = place.environment | {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME / "scripts")}
    return forked.run(["thaw.cli.main", *words, "--cores", "2"], place.folder, environment)


@pytest.fixture(scope="module")
def done(place) -> subprocess.CompletedProcess:
    """What advice on the three strategies printed, which has no prior for this encoder."""
    done = thaw(place, "advise", "mine.yaml")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def test_it_prints_the_cheapest_scores_first_and_ends_in_an_answer(place, done):
    """The report has one seed, so that its prices are other shares; what it says to take is the same."""
    (answer,) = record.read_file(place.folder / "results/outputs/mine" / record.ADVISED)
    lines = done.stdout.splitlines()
    names = [answer.names[name] for name in ("linear_probe", "short_top k01", "short_full")]
    printed = [next(n for n, line in enumerate(lines) if line.startswith(f"{answer.title}: {name} ")) for name in names]
    assert printed == sorted(printed), "probes, then what trains, from cheap to dear"
    assert answer_text.in_terminal(answer) in done.stdout and "such answers lost " in lines[-2]
    assert lines[-1] == "report: results/outputs/mine/report.html"
    assert answer_text.headline(answer) in (place.folder / lines[-1].removeprefix("report: ")).read_text()


def test_of_each_group_the_run_that_may_gain_most_is_next(place, tmp_path, monkeypatch):
    monkeypatch.chdir(place.folder)
    plan = load_plan(read_config(["mine.yaml"]), HOME, results=str(tmp_path))
    turns = pending_runs.pending_runs(plan)
    shown = zip(turns, (0.4, 0.5, 9.0), (10.0, 10.0, 20.0), strict=True)
    waiting = [Waiting(turn, gain, 0.5, seconds) for turn, gain, seconds in shown]
    assert next_turns(waiting, None) == [turns[2]] and next_turns(waiting, 10.0) == [turns[1]]
    assert next_turns(waiting, 9.0) == [] and next_turns(waiting[:1], None) == []


def arms_of(answer: record.TaskAnswer) -> list[str]:
    return [arm.name for arm in answer.decision.arms if arm.encoder]


def test_a_strategy_that_may_gain_less_than_its_price_asks_for_is_not_run(place):
    """The small encoder bears the name of the one that the prior is about."""
    entry = {"override": True} | place.files["my/encoders.yaml"]["encoders"]["tiny"]
    place.write("other/encoders.yaml", {"encoders": {"minilm": entry}})
    place.write("my/outputs.yaml", {"outputs": {"dear": {"base": "advice", "price_weight": 1000}}})
    more = {"tasks": ["colour"], "strategies": STRATEGIES, "outputs": ["dear"], "catalogues": ["my", "other"]}
    place.write("known.yaml", Workplace.experiment("known", encoders=["minilm"], **more))
    done = thaw(place, "advise", "known.yaml")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (answer,) = record.read(place.folder / "results/outputs/known")
    (stop,) = (line for line in done.stdout.splitlines() if "not run" in line)
    assert arms_of(answer) == ["linear_probe"], "probes always run"
    gain = gain_of_unseen(answer.decision, expected("minilm", "classification", "short_top k01", True), "")
    assert stop.startswith(
        f"{answer.title}: not run, since it may gain less than it has to: Top (k = 1) ({gain:.2f} of "
    )
    assert "short_full (" in stop and stop.endswith("; thaw run known.yaml runs all.")


def test_without_a_prior_each_strategy_runs_with_one_seed(place, done):
    (answer,) = record.read(place.folder / "results/outputs/mine")
    assert set(arms_of(answer)) == {"linear_probe", "short_top k01", "short_full"} and "not run" not in done.stdout
    folders = [place.folder / "results" / layout.cell(answer.cell_of(name)) for name in ("short_top k01", "short_full")]
    assert [sorted(path.name for path in folder.glob("seed*")) for folder in folders] == [["seed1"], ["seed1"]]


def said(place: Workplace, *words: str) -> str:
    """Return the error of a command that starts nothing."""
    done = thaw(place, "advise", *words)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stdout + done.stderr
    return done.stderr.removeprefix("error: ").strip()


@pytest.fixture(scope="module")
def drafted(place) -> subprocess.CompletedProcess:
    """What advice on a file of texts printed, which has no time to train."""
    (place.folder / "own.csv").write_text((place.folder / "data/train.csv").read_text())
    assert said(place, "absent.csv") == "absent.csv: no such file"
    assert "did you mean 'colour'?" in said(place, "own.csv", "--label", "colours")
    before = (place.folder / "my/tasks.yaml").read_text()
    assert said(place, "own.csv", "--label", "colour", "--time", "soon") == "soon: is no time; write 90s, 10m or 2h"
    assert (place.folder / "my/tasks.yaml").read_text() == before and not (place.folder / "own.yaml").exists()

    small = ("--time", "0s", "--config", "seeds=[1]", "baselines=[majority]")
    tests = ("data/test.csv", "--label", "colour", "--encoder", "tiny")
    done = thaw(place, "advise", "own.csv", *tests, "--export", "model", *small)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def test_what_has_no_time_left_is_said(place, drafted):
    (answer,) = record.read(place.folder / "results/outputs/own")
    assert {*arms_of(answer)} == {"linear_probe", "linear_probe_all_layers"}
    assert f"\n{answer.title}: not run, since it does not end in time: " in drafted.stdout


def test_a_file_of_texts_is_drafted_and_its_model_exported(place, drafted):
    assert "wrote my/tasks.yaml, own.yaml" in drafted.stdout and "thaw plan" not in drafted.stdout
    assert json.loads((place.folder / "model/check.json").read_text())["passed"]
    assert said(place, "own.csv", "--export", "model") == "model is there already; name a folder that is new or empty"

    other = "own.yaml is on own.csv and has another value; change that file, or write another one by --name NAME"
    for option, value in {"--type": "regression", "--label": "text", "--encoder": "minilm", "--text": "colour"}.items():
        assert said(place, "own.csv", option, value) == f"{option}: {other}"
    assert said(place, "own.yaml", "--label", "colour").startswith("--label: is for a file of labelled texts, which")
    own = place.folder / "own.csv"
    own.write_text(own.read_text().replace("colour", "shade", 1))
    changed = "; own.yaml was written for other content of own.csv: correct own in my, or write another entry by --name"
    assert "column 'colour': is missing" in said(place, "own.csv") and said(place, "own.csv").endswith(changed)


@pytest.mark.slow
def test_each_of_several_columns_is_a_task_and_a_model(place):
    files = []
    for split in ("train", "test"):
        rows = pd.read_csv(place.folder / f"data/{split}.csv")
        rows["long"] = np.where(rows["text"].str.len() > rows["text"].str.len().median(), "yes", "no")
        rows.to_csv(place.folder / f"both_{split}.csv", index=False)
        files.append(f"both_{split}.csv")
    named = ("--label", "colour", "long", "--text", "text", "--encoder", "tiny", "--name", "both")
    small = ("--time", "0s", "--config", "seeds=[1]", "baselines=[majority]")
    done = thaw(place, "advise", *files, *named, "--export", "models", *small)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    answers = record.read(place.folder / "results/outputs/both")
    taken = {answer.task for answer in answers if answer.decision.answer.encoder}
    assert [answer.task for answer in answers] == ["both_colour", "both_long"] and taken
    models = [place.folder / "models" / task if len(taken) > 1 else place.folder / "models" for task in taken]
    assert all(json.loads((model / "check.json").read_text())["passed"] for model in models)
    assert [store.name for store in (place.folder / "results/features/tiny").glob("both*")] == ["both"]
    again = thaw(place, "advise", *files, *named[:2], "--time", "0s")
    assert again.returncode == 1 and "--label: both.yaml is on both_train.csv" in again.stderr


def test_a_data_set_of_the_hub_is_drafted_then_gone_on_from(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(place.folder / "data", "data")
    options = {"source": "hub:data", "text": ["text"], "label": ["colour"], "encoders": ["minilm"], "further": []}
    left = ("name", "type", "drop_empty", "encoder", "config", "revision")
    given = argparse.Namespace(**options | dict.fromkeys(left))
    assert new_command.experiment_of(given) == Path("data.yaml") == new_command.experiment_of(given)
    assert capsys.readouterr().out.endswith("wrote my/tasks.yaml, data.yaml\ngoes on from data.yaml\n")


def test_the_notebook_gives_a_decision_a_table_and_a_classifier(place, tmp_path, monkeypatch):
    """Labels that are whole numbers come back as such. What libraries set here would make servers refuse the jobs."""
    monkeypatch.chdir(tmp_path)
    for name in {*os.environ} - {*place.environment}:
        monkeypatch.delenv(name)
    monkeypatch.setenv(ADDRESS, place.servers)
    monkeypatch.setattr("thaw.exporting.export.check", read_again)
    names: dict = {}
    for cell in json.loads((HOME / "docs/tutorials/advise.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "advise.ipynb", "exec"), names)
    found = names["advice"]
    (taken,) = found.table.name[found.table.taken]
    assert taken.startswith("Linear probe"), "both are as good here: it is the one that took fewer seconds"
    assert found.model.predict_proba(["So bad."]).sum() == pytest.approx(1)
    assert found.model.classes_.tolist() == [1, 5] and set(found.model.predict(names["texts"])) == {*names["labels"]}
    with pytest.raises(UserError, match="thaw_advised: holds the advice on other texts and labels; name another"):
        package.advise(names["texts"], names["labels"][::-1])
