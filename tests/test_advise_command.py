"""thaw advise: what it trains and takes, whose test it prints, and what it says of itself."""

import json
import os
import subprocess
import sys

import pytest

from thaw.cli import advise_command
from thaw.cli.advise_command import EVERYTHING, RULE, RULES
from tiny import tiny_encoder
from workflow import HOME, Workplace

STRATEGIES = ["frozen", {"short_top": [1]}, "short_full", "full"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A workplace with one task, a probe and three strategies that train, two of them everything."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    more = {"tasks": ["colour"], "seeds": [1, 2], "outputs": ["main_table"], "strategies": STRATEGIES}
    own = place.files["my/strategies.yaml"]
    own["strategies"]["weak_full"] = {"phases": [{"train": ["all"], "rate": "1e-7", "epochs": 1}]}
    place.write("my/strategies.yaml", own)
    place.write("weak.yaml", Workplace.experiment("weak", **more | {"strategies": ["frozen", "weak_full"]}))
    place.write("mine.yaml", Workplace.experiment("mine", **more))
    place.write("probe_alone.yaml", Workplace.experiment("probe_alone", **more | {"strategies": ["frozen"]}))
    place.write("no_whole.yaml", Workplace.experiment("no_whole", **more | {"strategies": STRATEGIES[:2]}))
    return place


def advise(place: Workplace, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "thaw.cli.main", "advise", *words, "--cores", "2"]
    environment = os.environ | {"PYTHONPATH": str(HOME / "scripts")}
    return subprocess.run(command, cwd=place.folder, capture_output=True, text=True, env=environment)


def test_it_fits_the_probes_trains_everything_and_opens_one_test(place):
    done = advise(place, "mine.yaml")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = json.loads((place.folder / "results/outputs/mine/advised.json").read_text())["tasks"]
    runs = place.folder / "results/runs/colour/all/tiny/linear"
    trained = sorted(path.relative_to(runs).as_posix() for path in runs.rglob("metrics.json"))
    whole = [name for name in trained if not name.startswith("frozen")]
    assert whole == ["short_full/base/seed1/metrics.json"], "the first that trains everything, with the first seed"
    records = {name: json.loads((runs / name / "base/seed1/metrics.json").read_text()) for name in found["tried"]}
    assert list(records) == ["frozen", "short_full"]
    for name, record in records.items():
        assert 100 * record["scores"]["validation"]["accuracy"] == pytest.approx(found["tried"][name]["validation"])
    best = max(found["tried"], key=lambda name: found["tried"][name]["validation"])
    assert found["taken"] == best and f"take {best}: best on" in done.stdout
    assert found["validation_rows"] == records[best]["rows"]["validation"]
    assert found["test"] == {"test": pytest.approx(100 * records[best]["scores"]["test"]["accuracy"])}
    assert done.stdout.count("test ") == 1, "the score on test of what is taken, and no other"
    assert f"  {RULE}: " in done.stdout and f"  {EVERYTHING}: " in done.stdout


def test_a_run_with_too_few_updates_is_marked(place):
    done = advise(place, "weak.yaml")
    (found,) = json.loads((place.folder / "results/outputs/weak/advised.json").read_text())["tasks"]
    assert {name: one["underfit"] for name, one in found["tried"].items()} == {"frozen": False, "weak_full": True}
    (line,) = [line for line in done.stdout.splitlines() if "underfit" in line]
    assert line.startswith("  weak_full: ") and "; underfit: more than a point below the linear probe" in line


@pytest.mark.parametrize("file, named", [("probe_alone.yaml", "frozen"), ("no_whole.yaml", "frozen and short_top")])
def test_what_it_cannot_advise_on_is_one_sentence(place, file, named):
    done = advise(place, file)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(
        "error: thaw advise needs a strategy that fits a head on the frozen encoder, as frozen,"
    )
    assert done.stderr.rstrip().endswith(f"strategies has {named}")


def test_what_it_expects_is_what_the_grid_gave(tmp_path, monkeypatch):
    lines = ["subset,encoder,head,rule,task,seeds,regret,cost,cost_shared"]
    for task, regret, cost in (("a", 0.5, 1.2), ("b", -0.1, 1.4), ("c", "", 1.6)):
        lines.append(f'n1000_r1,minilm,linear,"{RULE}",{task},8,{regret},{cost},1')
        lines.append(f"n1000_r1,minilm,linear,{EVERYTHING},{task},8,{regret},{cost},1")
    (tmp_path / "rules.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(advise_command, "RULES", tmp_path / "rules.csv")
    said = advise_command.expected()[RULE]
    assert str(said) == "0.2 points below the best strategy on average, at most 0.5; 1.3 full trainings"
    assert said.measured == "2 tasks, minilm, 8 draws"


def test_the_grids_record_has_both_rules():
    assert RULES == HOME / "config/rules.csv" and set(advise_command.expected()) == {RULE, EVERYTHING}
