"""Outputs of an incomplete experiment: what the plan takes. What Snakemake draws of one: tests/test_workflow.py."""

import json

import pytest

from thaw.core.digests import digest
from thaw.core.files import write_json
from thaw.planning.configuration import load_plan
from thaw.planning.questions import Questions
from tiny import tiny_encoder
from workflow import HOME, Workplace


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A workplace with one task and three strategies, of which nothing has run."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    place.write("mine.yaml", selection())
    return place


def selection(**changes) -> dict:
    """Return a selection of three runs and one table."""
    strategies = ["linear_probe", {"short_top": [1]}, "short_full"]
    return Workplace.experiment("mine", tasks=["colour"], strategies=strategies, outputs=["main_table"], **changes)


def test_the_plan_takes_what_is_there_and_names_what_is_of_other_settings(place, tmp_path):
    def planned(**wish):
        home = {"catalogues": [str(place.folder / "my")], "data_dir": str(place.folder / "data")}
        return load_plan(selection(**wish) | home, HOME, results=str(tmp_path))

    plan = planned()
    top, full = (run for run in plan.runs if run.strategy != "linear_probe")
    write_json(tmp_path / top.folder / "metrics.json", {"digest": plan.job("train", top.key).digest})
    write_json(tmp_path / full.folder / "metrics.json", {"digest": digest("of other settings")})
    assert len(plan.status.collected()) == 7 and "missing" not in plan.job("collect", "mine").spec
    partial = planned(allow_missing="true")
    assert sorted(partial.status.collected()) == [
        f"{tmp_path}/{top.folder}/{name}.json" for name in ("cost", "metrics")
    ]
    assert partial.job("collect", "mine").spec["missing"]
    assert json.loads(Questions(partial).canonical("collect", "mine"))["stale"] == [full.folder]
    assert partial.job("train", top.key).spec == plan.job("train", top.key).spec
