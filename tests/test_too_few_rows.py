"""A subset of more rows than a prepared dataset has: each command says so before anything runs."""

import os

import pytest

import forked
from thaw.core.files import read_json, write_json
from thaw.planning.configuration import load_plan
from thaw.planning.prepared_checks import _lacks
from thaw.schema.corpora import SubsetConfig, TaskConfig
from tiny import tiny_encoder
from workflow import HOME, Workplace

SENTENCE = "colour: subset n1000_d1 of 1000 rows: train of things has 48; ask for fewer"


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A workplace whose data are prepared, and an experiment that asks for more rows."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    wish = {"tasks": ["colour"], "strategies": ["linear_probe", "short_full"], "outputs": ["main_table"]}
    wish = Workplace.experiment("mine", **wish, subsets=["n1000_d1"])
    place.write("mine.yaml", wish)
    own = {"catalogues": [str(folder / "my")], "data_dir": str(folder / "data")}
    digest = load_plan(wish | own, HOME, results=str(folder / "results")).job("prepare", "things").digest
    card = {"digest": digest, "splits": {"train": {"rows": 48}}, "labels": {"colour": ["bright", "dull"]}}
    write_json(folder / "results/data/things/card.json", card)
    return place


def test_the_plan_says_so_and_runs_nothing(place):
    environment = place.environment | {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME / "scripts")}
    done = forked.run(["thaw.cli.main", "plan", "mine.yaml"], place.folder, environment)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"error: {SENTENCE}"
    assert [path.name for path in (place.folder / "results").iterdir()] == ["data"]
    assert not list(place.folder.glob(".snakemake/locks/*"))


def test_of_train_no_more_than_half_is_reserved(place):
    """As `Corpus.reserved` has it: 24 of 48 rows are left, whatever was asked for."""
    card = read_json(place.folder / "results/data/things/card.json")
    task = TaskConfig.model_validate(
        {"corpus": "things", "target": "colour", "type": "classification", "metrics": ["mcc"]}
    )
    fits, more = ({"s": SubsetConfig(rows=rows, reserved=40)} for rows in (24, 25))
    assert list(_lacks(task, card, fits)) == []
    (said,) = _lacks(task, card, more)
    assert said.endswith("train of things has 48, of which 24 are reserved; ask for fewer")
