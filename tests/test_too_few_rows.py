"""A subset of more rows than a prepared dataset has: each command says so before anything runs."""

import os

import pytest

import forked
from thaw.core.files import write_json
from thaw.planning.configuration import load_plan
from tiny import tiny_encoder
from workflow import HOME, Workplace

SENTENCE = "colour: subset n1000_d1 of 1000 rows: train of things has 48; ask for fewer"


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A workplace whose data are prepared, and an experiment that asks for more rows."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    wish = {"tasks": ["colour"], "strategies": ["frozen", "short_full"], "outputs": ["main_table"]}
    wish = Workplace.experiment("mine", **wish, subsets=["n1000_d1"])
    place.write("mine.yaml", wish)
    own = {"catalogues": [str(folder / "my")], "data_dir": str(folder / "data")}
    digest = load_plan(wish | own, HOME, results=str(folder / "results")).job("prepare", "things").digest
    card = {"digest": digest, "splits": {"train": {"rows": 48}}, "labels": {"colour": ["bright", "dull"]}}
    write_json(folder / "results/data/things/card.json", card)
    return place


@pytest.mark.parametrize("command", ["plan", "run", "advise", "doctor"])
def test_each_command_says_so_and_runs_nothing(place, command):
    environment = place.environment | {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME / "scripts")}
    cores = ["--cores", "1"] if command in ("run", "advise") else []
    done = forked.run(["thaw.cli.main", command, "mine.yaml", *cores], place.folder, environment)
    assert done.returncode == 1
    if command == "doctor":
        (problem,) = [line for line in done.stdout.splitlines() if SENTENCE in line]
        assert problem.startswith("PROBLEM") and not done.stderr
    else:
        assert done.stderr.splitlines()[-1] == f"error: {SENTENCE}"
    assert [path.name for path in (place.folder / "results").iterdir()] == ["data"]
    assert not list(place.folder.glob(".snakemake/locks/*"))
