"""Outputs of an incomplete experiment: what the plan takes, and what Snakemake draws from it when a run has failed."""

import json

import pytest

from thaw.core.digests import digest
from thaw.core.files import write_json
from thaw.planning.configuration import load_plan
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
    strategies = ["frozen", {"short_top": [1]}, "short_full"]
    return Workplace.experiment("mine", tasks=["colour"], strategies=strategies, outputs=["main_table"], **changes)


def test_the_plan_takes_what_is_there_and_names_what_is_of_other_settings(place, tmp_path):
    def planned(**wish):
        home = {"catalogues": [str(place.folder / "my")], "data_dir": str(place.folder / "data")}
        return load_plan(selection(**wish) | home, HOME, results=str(tmp_path))

    plan = planned()
    top, full = (run for run in plan.runs["mine"] if run.strategy != "frozen")
    write_json(tmp_path / top.folder / "metrics.json", {"digest": plan.job("train", top.key).digest})
    write_json(tmp_path / full.folder / "metrics.json", {"digest": digest("of other settings")})
    assert len(plan.collected("mine")) == 7 and "missing" not in plan.job("collect", "mine").spec
    partial = planned(allow_missing="true")
    assert sorted(partial.collected("mine")) == [f"{tmp_path}/{top.folder}/{name}.json" for name in ("cost", "metrics")]
    assert partial.job("collect", "mine").spec["missing"]
    assert json.loads(partial.canonical("collect", {"experiment": "mine"}))["stale"] == [full.folder]
    assert partial.job("train", top.key).spec == plan.job("train", top.key).spec


def test_when_a_run_fails_the_rest_is_drawn_and_a_later_run_completes_it(place):
    run = place.folder / "results/runs/colour/all/tiny/linear/short_full/base/seed1"
    (run / "history.csv").mkdir(parents=True)  # in the way of a file that the run writes
    printed = place.snakemake("--keep-going", check=False)
    assert "error: Is a directory" in printed and not (place.folder / "results/outputs").exists()

    place.snakemake("--config", "allow_missing=true")
    folder = place.folder / "results/outputs/mine"
    page, table = (folder / "report.html").read_text(), (folder / "tables/main_table.md").read_text()
    assert "train: Is a directory" in page and "2 of 3 runs are present" in page
    assert "| short\\_full | ‡ |" in table and "‡ A run is missing" in table

    (run / "history.csv").rmdir()
    assert place.planned() == {"train": 1, "collect": 1, "table": 1, "report": 1}
