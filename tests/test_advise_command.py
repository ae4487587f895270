"""thaw advise: what it trains and takes, whose test it prints, and what it says of itself."""

import json
import os
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest

import forked
from thaw.cli import grid_outcomes
from thaw.cli.advise_command import baselines, candidates
from thaw.cli.grid_outcomes import EVERYTHING, NOT_MEASURED, RULE, RULES, was_measured
from thaw.cli.validated_choice import validated_choice
from thaw.core.errors import UserError
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.statistics.non_inferiority import Candidate
from tiny import tiny_encoder
from workflow import HOME, Workplace, fork_servers

STRATEGIES = ["frozen", {"short_top": [1]}, "short_full", "full"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Workplace]:
    """A workplace with one task, a probe and three strategies that train, two of them everything."""
    folder = tmp_path_factory.mktemp("workplace")
    place = Workplace(folder, tiny_encoder("bert", folder / "tiny"))
    more = {"tasks": ["colour"], "seeds": [1, 2], "outputs": ["main_table"], "strategies": STRATEGIES}
    own = place.files["my/strategies.yaml"]
    own["strategies"]["weak_full"] = {"phases": [{"train": ["all"], "rate": "1e-7", "epochs": 1}]}
    place.write("my/strategies.yaml", own)
    place.write("weak.yaml", Workplace.experiment("weak", **more | {"strategies": ["frozen", "weak_full"]}))
    place.write("mine.yaml", Workplace.experiment("mine", **more))
    place.write("words.yaml", Workplace.experiment("words", **more | {"baselines": ["majority", "bag_of_words"]}))
    place.write("probe_alone.yaml", Workplace.experiment("probe_alone", **more | {"strategies": ["frozen"]}))
    place.write("no_whole.yaml", Workplace.experiment("no_whole", **more | {"strategies": STRATEGIES[:2]}))
    with fork_servers() as place.servers:
        yield place


def advise(place: Workplace, *words: str) -> subprocess.CompletedProcess:
    environment = place.environment | {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME / "scripts")}
    return forked.run(["thaw.cli.main", "advise", *words, "--cores", "2"], place.folder, environment)


@pytest.fixture(scope="module")
def done(place) -> subprocess.CompletedProcess:
    """What advice on the four strategies printed."""
    return advise(place, "mine.yaml")


def test_it_fits_the_probes_trains_everything_and_opens_one_test(place, done):
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    log = place.folder / "results/outputs/mine/advise.log"
    first = f"this may take minutes; {log.relative_to(place.folder)} says what is done\n"
    assert done.stdout.startswith(first) and log.stat().st_size
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
    assert done.stdout.endswith(f"{NOT_MEASURED}\n") and RULE not in done.stdout


def test_it_says_how_far_the_next_one_is_and_whether_that_is_shown(place, done):
    (found,) = json.loads((place.folder / "results/outputs/mine/advised.json").read_text())["tasks"]
    next_, scores = found["next"], {name: one["validation"] for name, one in found["tried"].items()}
    assert {found["taken"], next_["name"]} == set(scores)
    assert next_["difference"] == pytest.approx(scores[found["taken"]] - scores[next_["name"]])
    assert next_["low"] <= next_["difference"] <= next_["high"] and next_["shown_to_be_lower"] == (next_["low"] > 0)
    assert f"rows of validation, {found['tried'][found['taken']]['validation']:.1f} (next: " in done.stdout
    assert ("not shown to be better" in done.stdout) == (next_["low"] <= 0)
    majority = json.loads((place.folder / "results/baselines/colour/all/majority/metrics.json").read_text())
    assert found["baselines"] == {"majority": pytest.approx(100 * majority["scores"]["validation"]["accuracy"])}
    assert found["best_baseline"]["name"] == "majority" and found["refused"] is None


def test_no_strategy_is_taken_where_a_baseline_is_as_good(place):
    """The first word decides the label, and the encoder is random."""
    done = advise(place, "words.yaml")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = json.loads((place.folder / "results/outputs/words/advised.json").read_text())["tasks"]
    said = "on validation no strategy is above the bag of words (100.0): take that, or label more rows"
    assert found["taken"] is None and found["test"] == {} and found["refused"] == said
    assert f"  {said}\n" in done.stdout and "take frozen" not in done.stdout and "test " not in done.stdout
    assert found["baselines"]["bag_of_words"] == 100 and "  bag of words: validation 100.0\n" in done.stdout


def scored(name: str, score: float, by_row: np.ndarray) -> Candidate:
    """Return a run or a baseline with a score on validation and those on resampled rows."""
    return Candidate(name, np.array([score]), by_row[None], 40, {}, (1,))


def test_the_interval_is_of_pairs_and_nothing_is_above_the_majority_class_that_scores_as_it():
    """Two runs with the same predictions differ by 0 on every draw, which says little of others than their 40 rows.

    A baseline may have no run that is better.
    """
    drawn = 50 + np.random.default_rng(0).standard_normal((2, 1000))
    own = [scored("one", 50.0, drawn[0]), scored("other", 50.0, drawn[0])]
    choice = validated_choice(own, [scored("majority", 50.0, drawn[1]), scored("bag_of_words", 40.0, drawn[1])])
    assert (choice.best, choice.next.name, choice.baseline.name) == ("one", "other", "majority"), "of equals the first"
    unseen = 100 * (1 - 0.025 ** (1 / 40))
    assert (choice.next.low, choice.next.high) == pytest.approx((-unseen, unseen))
    assert (choice.next.value, choice.next.shown) == (0, False)
    assert choice.refused == "on validation no strategy is above the majority class (50.0): label more rows"
    ends = [choice.baseline.low, choice.baseline.high]
    assert np.quantile(drawn[0] - drawn[1], [0.025, 0.975]).tolist() == pytest.approx(ends)


def test_a_run_whose_score_is_undefined_on_all_draws_has_no_interval():
    choice = validated_choice([scored("one", 1.0, np.full(1000, np.nan))], [scored("majority", 0.0, np.zeros(1000))])
    assert (choice.baseline.low, choice.baseline.shown, choice.next, choice.refused) == (None, False, None, "")
    assert choice.baseline.text == "difference 1.0"


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
    monkeypatch.setattr(grid_outcomes, "RULES", tmp_path / "rules.csv")
    said = grid_outcomes.expected()[RULE]
    assert str(said) == "0.2 points below the best strategy on average, at most 0.5; 1.3 full trainings"
    assert said.measured == "2 tasks, a thousand rows, minilm, 8 draws"


def test_the_grids_record_has_both_rules():
    assert RULES == HOME / "config/rules.csv" and set(grid_outcomes.expected()) == {RULE, EVERYTHING}
    assert grid_outcomes.lines(True)[0].startswith("On the grid (8 tasks, a thousand rows, minilm, ")
    assert grid_outcomes.lines(False) == [NOT_MEASURED]


OF_THE_GRID = {"heads": "linear_mean", "strategies": "grid_frozen, frozen_all_layers, budget_full"}
OWN = "strategies:\n  budget_full:\n    override: true\n    phases: [{train: [all], rate: 1e-4, epochs: 1}]\n"


@pytest.mark.parametrize(
    ("changed", "measured"),
    [
        ({}, True),
        ({"heads": "linear"}, False),
        ({"encoders": "bert_base_uncased"}, False),
        ({"strategies": "frozen, frozen_all_layers, budget_full"}, False),
        ({"strategies": "grid_frozen, frozen_all_layers, budget_ulmfit"}, False),
        ({"strategies": "frozen_all_layers, budget_full"}, False),
        ({"catalogues": "my"}, False),
        ({"subsets": "n500_s300"}, True),
        ({"subsets": "n300_r1"}, False),
        ({"subsets": "n3500_r1"}, False),
        ({"tasks": "ag_news", "sources": "hub"}, False),
    ],
)
def test_what_the_grid_gave_is_said_of_what_it_tried_alone(tmp_path, monkeypatch, changed, measured):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my").mkdir()
    (tmp_path / "my/strategies.yaml").write_text(OWN)
    keys = {"tasks": "sentiment", "encoders": "minilm", "outputs": "main_table", "seeds": "1"} | OF_THE_GRID | changed
    lines = [f"{key}: [{value}]" for key, value in keys.items()]
    (tmp_path / "mine.yaml").write_text("\n".join(["experiment: mine", "title: mine", *lines, ""]))
    plan = load_plan(read_config(["mine.yaml"]), HOME)
    assert was_measured(plan, candidates(plan, "mine")) == measured


def test_a_baseline_that_is_a_run_is_no_candidate(tmp_path, monkeypatch):
    """Random weights with a linear head are no encoder to advise on; the experiment may have that head itself."""
    monkeypatch.chdir(tmp_path)
    text = "experiment: mine\ntitle: mine\ntasks: [sentiment]\nencoders: [minilm]\nstrategies: [frozen, full]\n"
    (tmp_path / "mine.yaml").write_text(f"{text}seeds: [1]\nbaselines: [random_encoder]\noutputs: [main_table]\n")
    plan = load_plan(read_config(["mine.yaml"]), HOME)
    (runs,) = candidates(plan, "mine")
    assert [(run.encoder, run.strategy) for run in runs] == [("minilm", "frozen"), ("minilm", "full")]
    assert baselines(plan, "mine", runs[0]) == {}


def test_a_head_that_is_trained_in_steps_is_no_probe(home):
    wish = {"tasks": ["acceptability"], "seeds": [1], "baselines": []}
    plans = [
        load_plan(
            read_config([str(home / "tests/base.yaml")], wish | {"strategies": [*some, "frozen_sgd", "full"]}), home
        )
        for some in (["frozen"], [])
    ]
    (runs,) = candidates(plans[0], "demo")
    assert [run.strategy for run in runs] == ["frozen", "full"]
    with pytest.raises(UserError, match="needs a strategy that fits a head on the frozen encoder, as frozen, and"):
        candidates(plans[1], "demo")


def test_a_run_that_is_a_baseline_and_selected_is_a_candidate_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "experiment: mine\ntitle: mine\ntasks: [paraphrase]\nencoders: [minilm]\nheads: [linear, cosine]\n"
    text += "strategies: [frozen_separate, full_separate]\nseeds: [1, 2]\noutputs: [main_table]\n"
    (tmp_path / "mine.yaml").write_text(f"{text}baselines: [majority, cosine, random_encoder]\n")
    plan = load_plan(read_config(["mine.yaml"]), HOME)
    for head, runs in zip(("linear", "cosine"), candidates(plan, "mine"), strict=True):
        assert [(run.head, run.strategy) for run in runs] == [(head, "frozen_separate"), (head, "full_separate")]
        compared = baselines(plan, "mine", runs[0])
        assert list(compared) == ["majority", "cosine"] and compared["majority"][0].endswith("/majority")
        assert compared["cosine"][0] == "runs/paraphrase/all/minilm/cosine/frozen_separate/base/seed1"


def test_a_run_that_another_one_needs_is_no_candidate(home, tmp_path):
    """A strategy starts from a run on another task, whose row would otherwise be advised on by itself."""
    kept = "  kept: {phases: [{train: [all]}], keep: true}\n"
    later = "  next: {phases: [{train: [all]}], after: {strategy: kept, task: entities}}\n"
    (tmp_path / "strategies.yaml").write_text("strategies:\n" + kept + later)
    wish = {"catalogues": [str(tmp_path)], "strategies": ["frozen", "next"], "tasks": ["acceptability"], "seeds": [1]}
    plan = load_plan(read_config([str(home / "tests/base.yaml")], wish | {"baselines": []}), home)
    (runs,) = candidates(plan, "demo")
    assert {(run.task, run.strategy) for run in runs} == {("acceptability", "frozen"), ("acceptability", "next")}
