"""A budget of time: what runs first, what is given up, what is said of it, and a whole experiment under one."""

import os
import subprocess
import sys
from dataclasses import replace

import pandas
import pytest

from thaw.cli import budget_command, run_command
from thaw.core import layout
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.frame import missing_results
from thaw.outputs.frame.collection import CollectedResult, selected
from thaw.planning import time_budget
from thaw.planning.configuration import load_plan
from tiny import tiny_encoder
from workflow import HOME, Workplace


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A workplace with one task and three strategies, of which nothing has run."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    strategies = ["short_full", {"short_top": [2, 1]}, "linear_probe"]
    more = {"tasks": ["colour"], "seeds": [1, 2], "outputs": ["main_table", "advice"], "budget": "10m"}
    place.write("mine.yaml", Workplace.experiment("mine", strategies=strategies, **more))
    place.more = more | {"strategies": strategies}
    return place


def planned(place, results):
    home = {"catalogues": [str(place.folder / "my")], "data_dir": str(place.folder / "data")}
    return load_plan(Workplace.experiment("mine", **place.more) | home, HOME, results=str(results))


def write(plan, run, accuracy: float) -> None:
    """Write a run's result as the plan wants it, with this score."""
    job = plan.job(run.step, run.key)
    spec = job.spec | ({"seed": run.seed} if run.step == "fit_heads" else {})
    record = {"digest": digest(spec), "scores": {"validation": {"accuracy": accuracy}}, "rows": {"validation": 400}}
    write_json(f"{plan.results}/{run.folder}/metrics.json", record)


def names(turns) -> list[str]:
    return [f"{turn.run.strategy} {turn.run.variant} {turn.run.seed}" for turn in turns]


def test_cheap_cells_come_first_and_one_seed_of_each(place, tmp_path):
    plan = planned(place, tmp_path)
    turns = time_budget.pending_runs(plan, "mine")
    first = ["linear_probe base 1", "short_top k01 1", "short_top k02 1", "short_full base 1"]
    assert names(turns) == first + [name[:-1] + "2" for name in first[1:]], "a fitted head has all seeds at once"
    took = {turn.operations for turn in turns[1:4]}
    assert len(took) == 3 and min(took) > turns[0].operations


def test_what_is_missing_is_what_the_report_lists(place, tmp_path, monkeypatch):
    """Seeds of a head that is fitted in one job, and baselines, of which some train; no trial of a search."""
    monkeypatch.setitem(place.more, "baselines", ["majority", "bag_of_words", "random_encoder"])
    plan = planned(place, tmp_path)
    listed = {result.folder for result in selected(plan.job("collect", "mine").spec)}
    assert time_budget.missing(plan, "mine") == len(listed) == 8 + 2 + 2
    for run in plan.runs["mine"][:3]:
        write(plan, run, 0.5)
    assert time_budget.missing(plan, "mine") == len(listed) - 3


def test_the_cells_of_a_slice(place, tmp_path):
    waiting = time_budget.pending_runs(planned(place, tmp_path), "mine")[1:]
    given_up = {waiting[0].run.cell: "pruned"}
    chosen = time_budget.affordable(waiting, given_up, 100, 100, lambda _: 10)
    assert names(chosen) == ["short_top k02 1", "short_full base 1"]


def test_a_slice_has_what_fits_and_one_turn_at_least(place, tmp_path):
    waiting = time_budget.pending_runs(planned(place, tmp_path), "mine")[1:4]
    costs = dict(zip([turn.operations for turn in waiting], (30, 20, 5), strict=True))
    assert names(time_budget.affordable(waiting, {}, 100, 10, costs.get)) == ["short_top k01 1"], (
        "one, though it is long"
    )
    assert names(time_budget.affordable(waiting, {}, 100, 50, costs.get)) == ["short_top k01 1", "short_top k02 1"]
    assert names(time_budget.affordable(waiting, {}, 22, 10, costs.get)) == ["short_top k02 1"], (
        "30 s do not fit into 22"
    )
    assert time_budget.affordable(waiting, {}, 4, 10, costs.get) == []
    assert [time_budget.seconds_of(text) for text in ("90s", "1.5m", "2h")] == [90, 90, 7200]
    with pytest.raises(UserError, match="soon: is no time; write 90s, 10m or 2h"):
        time_budget.seconds_of("soon")
    with pytest.raises(UserError, match="budget"):
        load_plan(Workplace.experiment("mine", budget="soon"), HOME)


def test_a_run_takes_what_the_slices_before_it_took_for_as_many_operations(place, tmp_path, monkeypatch):
    """By hand: 12e9 operations at 48 % of 1e9 a second are 25 s, and 0.5 s to begin; a slice took twice as long."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    plan = planned(place, tmp_path)
    pace = time_budget.Pace(plan)
    pace.rate, pace.threads = 1e9, 4
    assert pace.seconds(12e9) == pytest.approx(25.5) and pace.seconds(0.0) == pytest.approx(0.5)
    first, *waiting = [replace(turn, operations=12e9) for turn in time_budget.pending_runs(plan, "mine")[1:4]]
    assert time_budget.affordable(waiting, {}, 52, 52, pace.seconds) == waiting, "51 s"
    pace.learn([first], 51.0)
    assert pace.seconds(12e9) == pytest.approx(51)
    assert time_budget.affordable(waiting, {}, 52, 52, pace.seconds) == waiting[:1]
    assert time_budget.affordable(waiting, {}, 50, 50, pace.seconds) == [], "it would not end in time"
    pace.learn(waiting, 25.5)
    assert pace.seconds(12e9) == pytest.approx(25.5), "three have taken 76.5 s"


def test_why_a_run_is_not_there(tmp_path):
    names = dict(zip(layout.RUN, ("a", "all", "e", "h", "full", "base", 2), strict=True))
    unrun = CollectedResult("train", names, {})
    spec = {"experiment": "mine", "budget": "2h"}
    write_json(tmp_path / "outputs/mine/budget.json", {"pruned": {"runs/a/all/e/h/linear_probe/base": "pruned, 9"}})
    told = missing_results.budget(spec, tmp_path)
    assert missing_results.reason(unrun, {"corpus": "c"}, tmp_path, told) == "not run: budget of 2h"
    unrun = CollectedResult("train", names | {"strategy": "linear_probe"}, {})
    assert missing_results.reason(unrun, {"corpus": "c"}, tmp_path, told) == "not run: pruned, 9"
    assert (
        missing_results.reason(
            unrun, {"corpus": "c"}, tmp_path, missing_results.budget({"experiment": "mine"}, tmp_path)
        )
        == "not run"
    )


def test_the_exit_code_says_that_something_failed(place, monkeypatch, capsys):
    """A slice fails, and tables of what is there are drawn; Snakemake is told that Thaw calls it."""
    monkeypatch.chdir(place.folder)
    script = "import os, sys; open('called', 'a').write(os.environ['THAW_RUN']); sys.exit(3 * ('--' in sys.argv))"
    monkeypatch.setattr(run_command, "snakemake_command", lambda *_: [sys.executable, "-c", script])
    for more, code in (([], 3), (["--config", "budget=0s"], 0)):
        with pytest.raises(SystemExit) as ended:
            budget_command.main(["mine.yaml", *more])
        said = capsys.readouterr().out
        assert ended.value.code == code and " used of" in said and "; the report lacks 9 results" in said
        assert ("more than given: a job that has begun is not cut off" in said) == ("budget=0s" in more)
    assert set((place.folder / "called").read_text()) == {"1"}


@pytest.mark.slow
def test_an_experiment_under_a_budget_has_its_advice_and_says_what_is_missing(place):
    command = [sys.executable, "-m", "thaw.cli.main", "budget", "mine.yaml", "--cores", "2"]
    command += ["--workflow-profile", str(HOME / "workflow/profiles/default")]
    environment = os.environ | {"PYTHONPATH": str(HOME / "scripts")}
    done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    page = (place.folder / "results/outputs/mine/report.html").read_text()
    assert (place.folder / "results/advice.md").exists() and "used of" in done.stdout
    runs = pandas.read_csv(place.folder / "results/outputs/mine/runs.csv", keep_default_na=False)
    missing = set(runs.loc[runs["missing"] != "", "missing"])
    assert all(reason.startswith("not run: ") for reason in missing)
    assert not missing or "not run: " in page
    lacks = len(set(runs.loc[runs["missing"] != "", "folder"]))
    assert f"the report lacks {lacks} result" in done.stdout
