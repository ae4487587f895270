"""What `thaw advise` runs first and what fits into its time; what the plan takes of an incomplete experiment."""

import json
import os
from dataclasses import replace

import pytest

from thaw.cli.advise_command import Waiting, next_turns
from thaw.core.digests import digest
from thaw.core.files import write_json
from thaw.planning import pending_runs
from thaw.planning.configuration import load_plan
from thaw.planning.questions import Questions
from tiny import tiny_encoder
from workflow import HOME, Workplace


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A workplace with one task and three strategies, of which nothing has run."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    strategies = ["short_full", {"short_top": [2, 1]}, "linear_probe"]
    more = {"tasks": ["colour"], "seeds": [1, 2], "outputs": ["main_table", "advice"]}
    place.write("mine.yaml", Workplace.experiment("mine", strategies=strategies, **more))
    place.more = more | {"strategies": strategies}
    return place


def planned(place, results):
    home = {"catalogues": [str(place.folder / "my")], "data_dir": str(place.folder / "data")}
    return load_plan(Workplace.experiment("mine", **place.more) | home, HOME, results=str(results))


def names(turns) -> list[str]:
    return [f"{turn.run.strategy} {turn.run.variant} {turn.run.seed}" for turn in turns]


def test_cheap_cells_come_first_and_one_seed_of_each(place, tmp_path):
    turns = pending_runs.pending_runs(planned(place, tmp_path))
    assert names(turns) == ["linear_probe base 1", "short_top k01 1", "short_top k02 1", "short_full base 1"]
    assert len({turn.operations for turn in turns}) == 4


def test_a_run_takes_what_the_slices_before_it_took_for_as_many_operations(place, tmp_path, monkeypatch):
    """By hand: 12e9 operations at 48 % of 1e9 a second are 25 s, and 0.5 s to begin; a slice took twice as long."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    plan = planned(place, tmp_path)
    pace = pending_runs.Pace(plan)
    pace.rate, pace.threads = 1e9, 4
    assert pace.seconds(12e9) == pytest.approx(25.5) and pace.seconds(0.0) == pytest.approx(0.5)
    first, *waiting = [replace(turn, operations=12e9) for turn in pending_runs.pending_runs(plan)[1:4]]
    waiting = waiting[:2]
    pace.learn([first], 51.0)
    assert pace.seconds(12e9) == pytest.approx(51)
    one = Waiting(waiting[0], gain=1.0, least=0.1, seconds=pace.seconds(12e9))
    assert next_turns([one], 52) == waiting[:1]
    assert next_turns([one], 50) == [], "it would not end in time"
    pace.learn(waiting, 25.5)
    assert pace.seconds(12e9) == pytest.approx(25.5), "three have taken 76.5 s"


def selection(**changes) -> dict:
    """Return a selection of three runs and one table."""
    strategies = ["linear_probe", {"short_top": [1]}, "short_full"]
    return Workplace.experiment("mine", tasks=["colour"], strategies=strategies, outputs=["main_table"], **changes)


def test_the_plan_takes_what_is_there_and_names_what_is_of_other_settings(place, tmp_path):
    def wanted(**wish):
        home = {"catalogues": [str(place.folder / "my")], "data_dir": str(place.folder / "data")}
        return load_plan(selection(**wish) | home, HOME, results=str(tmp_path))

    plan = wanted()
    top, full = (run for run in plan.runs if run.strategy != "linear_probe")
    write_json(tmp_path / top.folder / "metrics.json", {"digest": plan.job("train", top.key).digest})
    write_json(tmp_path / full.folder / "metrics.json", {"digest": digest("of other settings")})
    assert len(plan.status.collected()) == 7 and "missing" not in plan.job("collect", "mine").spec
    partial = wanted(allow_missing="true")
    assert sorted(partial.status.collected()) == [
        f"{tmp_path}/{top.folder}/{name}.json" for name in ("cost", "metrics")
    ]
    assert partial.job("collect", "mine").spec["missing"]
    assert json.loads(Questions(partial).canonical("collect", "mine"))["stale"] == [full.folder]
    assert partial.job("train", top.key).spec == plan.job("train", top.key).spec
