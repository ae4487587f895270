"""thaw advise: what it trains, where it stops, and that a run which it paused ends as one that was never paused."""

import json
import os
import subprocess
import sys

import pytest

from tiny import tiny_encoder
from workflow import HOME, Workplace

STRATEGIES = ["frozen", "short_full", {"short_top": [1]}]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A workplace with one task, a probe and two strategies that train."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    more = {"tasks": ["colour"], "seeds": [1, 2], "outputs": ["main_table"], "strategies": STRATEGIES}
    place.write("mine.yaml", Workplace.experiment("mine", **more))
    place.write("probe_alone.yaml", Workplace.experiment("probe_alone", **more | {"strategies": ["frozen"]}))
    return place


def advise(place: Workplace, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "thaw.cli.main", "advise", *words, "--cores", "2"]
    environment = os.environ | {"PYTHONPATH": str(HOME / "scripts")}
    return subprocess.run(command, cwd=place.folder, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_it_trains_in_parts_takes_one_and_opens_its_test_alone(place):
    done = advise(place, "mine.yaml", "--price", "0", "--limit", "3")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = json.loads((place.folder / "results/outputs/mine/advised.json").read_text())["tasks"]
    assert found["taken"] in ("frozen", "short_full", "short_top k01") and f"take {found['taken']}" in done.stdout
    assert 0 <= found["spent"] <= 3 and found["regret"] >= 0 and list(found["test"]) == ["test"]
    assert done.stdout.count("test ") == 1, "the score on test of what is taken, and no other"
    record = place.folder / f"results/runs/colour/all/tiny/linear/{found['taken'].replace(' ', '/')}"
    record = record if found["taken"].endswith("k01") else record / "base"
    scores = json.loads((record / "seed1/metrics.json").read_text())["scores"]
    assert 100 * scores["test"]["accuracy"] == pytest.approx(found["test"]["test"])
    assert set(found["trained"].values()) <= {0.125, 0.25, 0.5, 1.0}
    assert not list(place.folder.glob("results/runs/**/seed2/metrics.json")) or found["taken"] == "frozen"


def test_a_high_price_trains_nothing(place):
    done = advise(place, "mine.yaml", "--price", "1000")
    assert done.returncode == 0 and "take frozen" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    "words, sentence",
    [
        (
            ["probe_alone.yaml"],
            "thaw advise needs a strategy that fits a head on the frozen encoder, as frozen, and one",
        ),
        (["mine.yaml", "--limit", "0"], "--price is 0 or more and --limit more than 0"),
    ],
)
def test_what_it_cannot_advise_on_is_one_sentence(place, words, sentence):
    done = advise(place, *words)
    assert done.returncode == 1 and done.stderr.startswith(f"error: {sentence}") and done.stderr.count("\n") == 1
