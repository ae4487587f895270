"""Hyper-parameter search: trials by the grid, the choice on validation, the run that trains with what was chosen."""

import json
import re

import pandas
import pytest

from plans import plan_with
from thaw.core.digests import digest
from thaw.core.files import read_json, write_json
from thaw.planning.questions import Questions
from thaw.planning.run_jobs import reported_seeds
from thaw.schema.catalogue import Catalogue, shipped
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.phases import of_phase
from tiny_corpus import Bench, run_in_process, tiny_corpus

SEARCH = "search: {grid: {rate: [1e-5, 2e-4], epochs: [1, 2]}, seeds: [3, 4]}"
ONE = "  one: {phases: [{train: [head, {top: 1}]}], " + SEARCH + "}\n"
LIKE = "  like_one: {phases: [{train: [head, {top: 2}]}], rates_from: one}\n"
HEADS = "  heads: {phases: [{train: [head]}], " + SEARCH + "}\n"


def planned(folder, strategies: str, chosen: list, **more):
    """Plan the demo's first task with strategies of one's own."""
    return plan_with(folder, strategies, strategies=chosen, **more)


def test_the_plan_has_a_run_for_each_trial_and_one_choice(tmp_path):
    plan = planned(tmp_path / "my", ONE + LIKE, ["one", "like_one"])
    cell = "runs/acceptability/all/minilm/linear"
    trials = [f"{cell}/one/trial{n}/seed{seed}" for n in (1, 2, 3, 4) for seed in (3, 4)]
    assert sorted(plan.jobs["train"]) == sorted([*trials, f"{cell}/one/base/seed1", f"{cell}/like_one/base/seed1"])
    (choice,) = plan.jobs["select"].values()
    assert choice.inputs["trials"] == [f"results/{trial}/metrics.json" for trial in trials]
    assert [trial["settings"] for trial in choice.spec["trials"]][1] == {"rate": 1e-5, "epochs": 2}
    third = plan.job("train", trials[4]).spec
    assert (third["phases"][0]["rate"], third["phases"][0]["epochs"]) == (2e-4, 1) and third["trial"]
    for strategy in ("one", "like_one"):
        final = plan.job("train", f"{cell}/{strategy}/base/seed1")
        assert final.spec["chosen"] == choice.digest and "trial" not in final.spec
        assert final.inputs["settings"] == [f"results/{cell}/one/base/chosen.json"]


def test_an_experiment_may_use_fewer_of_a_searchs_seeds(tmp_path):
    plan = planned(tmp_path / "my", ONE, ["one"], search_seeds=1)
    trials = [key for key in plan.jobs["train"] if "trial" in key]
    assert [key.split("/", 6)[6] for key in trials] == [f"trial{n}/seed3" for n in (1, 2, 3, 4)]


def test_trials_of_a_head_alone_are_one_job_that_chooses_too(tmp_path):
    (tmp_path / "my").mkdir()
    (tmp_path / "my/heads.yaml").write_text("heads: {small: {kind: bilstm, options: {size: 8, layers: 1}}}\n")
    like = LIKE.replace("rates_from: one", "rates_from: heads")
    plan = planned(tmp_path / "my", HEADS + like, ["heads", "like_one"], heads=["linear", "small"])
    cell = "runs/acceptability/all/minilm/linear"
    (search,) = plan.jobs["search_heads"].values()
    assert search.spec["grid"][1] == {"rate": 1e-5, "epochs": 2} and search.spec["seeds"] == [3, 4]
    assert search.spec["trial"] and "rate" not in search.spec["phases"][0] and "seed" not in search.spec
    assert plan.files("search_heads", f"{cell}/heads/base") == [f"results/{cell}/heads/base/chosen.json"]
    for step, key in (("fit_heads", f"{cell}/heads/base"), ("train", f"{cell}/like_one/base/seed1")):
        assert plan.job(step, key).spec["chosen"] == search.digest
        assert plan.job(step, key).inputs["settings"] == [f"results/{cell}/heads/base/chosen.json"]
    assert len(plan.jobs["select"]) == 1 and len(plan.jobs["train"]) == 8 + 3, "a BiLSTM's trials are jobs of their own"
    path = f"results/{cell}/heads/base/seed1/metrics.json"
    found = {
        step: re.search(f"linear/({Questions(plan).strategies(step)})/base", path) for step in ("fit_heads", "train")
    }
    assert found["fit_heads"] and not found["train"]
    path = path.replace("linear", "small")
    assert (
        re.search(f"small/({Questions(plan).strategies('train')})/base", path)
        and Questions(plan).strategies("ensemble") == "none"
    )


@pytest.mark.parametrize("heads", [["linear", "small"], ["small", "linear"]])
def test_the_first_trial_has_its_settings_whichever_head_comes_first(tmp_path, heads):
    """The search over a fitted head is planned as its first trial without settings; that of a BiLSTM has them."""
    (tmp_path / "my").mkdir()
    (tmp_path / "my/heads.yaml").write_text("heads: {small: {kind: bilstm, options: {size: 8, layers: 1}}}\n")
    plan = planned(tmp_path / "my", HEADS, ["heads"], heads=heads)
    (search,) = plan.jobs["search_heads"].values()
    assert "rate" not in search.spec["phases"][0] and search.spec["grid"][0] == {"rate": 1e-5, "epochs": 1}
    cell = "runs/acceptability/all/minilm/small/heads"
    found = [plan.job("train", f"{cell}/trial{n}/seed3").spec["phases"][0] for n in (1, 2, 3, 4)]
    assert [(phase["rate"], phase["epochs"]) for phase in found] == [(1e-5, 1), (1e-5, 2), (2e-4, 1), (2e-4, 2)]


def test_trials_that_start_from_a_fitted_head_have_it_fitted_with_their_seeds(tmp_path):
    """The seeds of a search may be none of the experiment's."""
    stacked = "  two: {after: frozen, phases: [{train: [head, {top: 1}]}], " + SEARCH + "}\n"
    plan = planned(tmp_path / "my", stacked, ["two"])
    assert plan.seeds == {1, 3, 4}
    made = {file for key in plan.jobs["fit_heads"] for file in plan.files("fit_heads", key)}
    assert {file for job in plan.jobs["train"].values() for file in job.inputs.get("start", [])} <= made


TWO = """  two: {search: {grid: {1.rate: [1e-3, 2e-3], 2.rate: [1e-5, 2e-4]}},
    phases: [{train: [head], epochs: 1}, {train: [head, {top: 1}], epochs: 1}]}
"""


def test_a_grid_may_name_the_phase(tmp_path):
    """Both rates of stack-then-finetune in one strategy, all combinations of them."""
    plan = planned(tmp_path / "my", TWO, ["two"])
    rates = [
        tuple(phase["rate"] for phase in job.spec["phases"])
        for key, job in plan.jobs["train"].items()
        if "trial" in key
    ]
    assert sorted(rates) == [(1e-3, 1e-5), (1e-3, 2e-4), (2e-3, 1e-5), (2e-3, 2e-4)]
    assert of_phase({"epochs": 2, "1.rate": 0.1, "2.rate": 0.2}, 2) == {"epochs": 2, "rate": 0.2}


def trial(folder, score: float | None, train: float | None = None) -> str:
    """Write a trial's record; return its digest."""
    spec = {"made": folder.name}
    scores = {"train": {"accuracy": train}, "validation": {"accuracy": score}}
    record = {"spec": spec, "digest": digest(spec), "scores": scores}
    write_json(folder / "metrics.json", record)
    return digest(spec)


def select(tmp_path, scores: list[list], train: list[list] | None = None, **settings) -> dict:
    """Let step select choose among trials with these scores by seed. Args: those on train; more of its spec."""
    task = {"id": "t", "corpus": "c", "target": "label", "type": "classification", "metrics": ["accuracy"]}
    spec, files = {"version": 1, "task": task, "trials": []} | settings, []
    for number, (by_seed, of_train) in enumerate(zip(scores, train or scores, strict=True)):
        folders = [tmp_path / f"trial{number}seed{seed}" for seed in range(len(by_seed))]
        pairs = zip(folders, by_seed, of_train, strict=True)
        runs = {str(seed): trial(*written) for seed, written in enumerate(pairs)}
        spec["trials"].append({"settings": {"rate": number + 1.0}, "runs": runs})
        files += [folder / "metrics.json" for folder in folders]
    out = tmp_path / "chosen.json"
    run_in_process("select", "--spec", json.dumps(spec), "--trials", *files, "--out", out)
    return read_json(out)


@pytest.mark.parametrize(
    ("scores", "best"),
    [([[0.5, 0.5], [0.9, 0.4], [0.6, 0.7]], 2), ([[0.6], [0.6]], 1), ([[0.9, None], [0.1, 0.1]], 2), ([[None]], 1)],
)
def test_the_mean_over_seeds_decides(tmp_path, scores, best):
    found = select(tmp_path, scores)
    assert found["trial"] == best and found["settings"] == {"rate": float(best)} and len(found["trials"]) == len(scores)


def test_the_gap_to_train_is_taken_off_in_the_step(tmp_path):
    """Against a loop over the numbers; nothing is added where train is below validation."""
    scores, train = (
        [[0.82, 0.78], [0.75, 0.75], [0.78, 0.78], [0.70, 0.70]],
        [[0.9, 1], [0.8, 0.74], [0.9, 0.86], [0, 0]],
    )
    counted = []
    for of_validation, of_train in zip(scores, train, strict=True):
        validation, trained = sum(of_validation) / 2, sum(of_train) / 2
        counted.append(validation - (trained - validation if trained > validation else 0))
    assert counted == pytest.approx([0.65, 0.73, 0.68, 0.70])
    plain, penalised = select(tmp_path / "plain", scores, train), select(tmp_path / "gap", scores, train, penalty="gap")
    assert (plain["trial"], penalised["trial"]) == (1, 1 + counted.index(max(counted)))
    assert [one["train"] for one in penalised["trials"]] == pytest.approx([0.95, 0.77, 0.88, 0.0])
    undefined = select(tmp_path / "undefined", [[0.8], [0.9]], [[1.0], [None]], penalty="gap")
    assert undefined["trial"] == 1 and "train" not in plain["trials"][0]


def test_a_search_over_heads_takes_the_gap_off_that_its_trials_have_alone(tmp_path):
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "corpus", "classification"), "classification")
    spec = bench.spec({"head_rate": None, "epochs": 1})
    grid = [{"rate": 1e-3, "epochs": 1}, {"rate": 1e-2, "epochs": 4}, {"rate": 1.0, "epochs": 6}]
    whole = {key: spec[key] for key in spec.keys() - {"seed"}} | {"grid": grid, "seeds": [1], "penalty": "gap"}
    found = read_json(bench.step("search_heads", whole | {"trial": True}, tmp_path / "search") / "chosen.json")
    main, counted = spec["task"]["metrics"][0], []
    for settings_of, trial in zip(grid, found["trials"], strict=True):
        alone = bench.train(spec | {"phases": [spec["phases"][0] | settings_of], "seed": 1})[1].outcome["scores"]
        train, validation = alone["train"][main], alone["validation"][main]
        assert (trial["train"], trial["mean"]) == (train, validation)
        counted.append(validation - (train - validation if train > validation else 0))
    assert len(set(counted)) > 1 and found["trial"] == 1 + counted.index(max(counted))


def test_a_trial_is_scored_on_validation_alone_and_its_settings_train_the_run(tmp_path):
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "corpus", "classification"), "classification")
    spec = bench.spec({"epochs": 1})
    folder = bench.step("train", spec | {"trial": True}, tmp_path / "trial")
    assert set(read_json(folder / "metrics.json")["scores"]) == {"train", "validation"}
    choice = {"spec": {}, "digest": "d", "trial": 2, "settings": {"epochs": 3, "head_rate": 0.05}}
    write_json(tmp_path / "chosen.json", choice)
    final = bench.step(
        "train", spec | {"chosen": "d"}, tmp_path / "final", "--need", "settings", tmp_path / "chosen.json"
    )
    found = read_json(final / "metrics.json")
    assert found["chosen"] == {"trial": 2, "epochs": [3], "head_rate": 0.05} and "test" in found["scores"]
    direct = bench.step("train", bench.spec({"epochs": 3, "head_rate": 0.05}), tmp_path / "direct")
    assert read_json(direct / "metrics.json")["scores"] == found["scores"]


@pytest.mark.parametrize("kind", ["classification", "spans"])
def test_a_search_over_heads_finds_what_its_trials_are_alone(tmp_path, kind):
    bench = Bench(tmp_path, "bert", tiny_corpus(tmp_path / "corpus", kind), kind)
    spec = bench.spec({"head_rate": None, "epochs": 1})
    grid = [{"rate": 1e-3, "epochs": 2}, {"rate": 1e-1, "epochs": 3}, {"rate": 1e-1, "epochs": 2}]
    whole = {key: spec[key] for key in spec.keys() - {"seed"}} | {"grid": grid, "seeds": [1, 5], "trial": True}
    folder = bench.step("search_heads", whole, tmp_path / "search")
    found, main = read_json(folder / "chosen.json"), spec["task"]["metrics"][0]
    assert found["spec"] == whole and found["digest"] == digest(whole)
    for settings_of, trial in zip(grid, found["trials"], strict=True):
        assert trial["settings"] == settings_of and list(trial["seeds"]) == ["1", "5"]
        for seed, score in trial["seeds"].items():
            alone = spec | {"phases": [spec["phases"][0] | settings_of], "seed": int(seed)}
            assert bench.train(alone)[1].outcome["scores"]["validation"][main] == score
    means = [trial["mean"] for trial in found["trials"]]
    assert found["settings"] == grid[means.index(max(means))]
    history = pandas.read_csv(folder / "trials.csv")
    assert list(history.groupby(["trial", "seed"])["epoch"].max()) == [2, 2, 3, 3, 2, 2]
    cost = read_json(folder / "cost.json")
    assert cost["steps"] == 2 * (2 + 3 + 2) * 6 and cost["seconds"]["total"] > 0
    fitted = {key: whole[key] for key in whole.keys() - {"grid", "seeds", "trial"}} | {"chosen": found["digest"]}
    seeds = ("--seeds", 1, 7, "--need", "settings", folder / "chosen.json")
    run = read_json(bench.step("fit_heads", fitted, tmp_path / "runs", *seeds) / "seed1/metrics.json")
    assert run["chosen"]["trial"] == found["trial"] and run["chosen"]["rate"] == found["settings"]["rate"]
    assert run["scores"]["validation"][main] == found["trials"][found["trial"] - 1]["seeds"]["1"]
    assert "test" in run["scores"] and run["digest"] == digest(fitted | {"seed": 1})


ALIKE = {"lee2019": ["lee_full", "lee_top_k_searched"], "wei2022": ["wei_full", "wei_top_k"]}
ALIKE |= {"peters2019": ["peters_features", "peters_tuned", "peters_tuned_slanted", "peters_tuned_gradual"]}
ALIKE |= {"houlsby2019": ["houlsby_full", "houlsby_top_n", "houlsby_layer_norm", "houlsby_adapters_64"]}
ALIKE |= {"ulmfit": ["ulmfit_last", "ulmfit_full", "ulmfit_chain_thaw", "ulmfit_freez", "ulmfit_freez_discr_stlr"]}
ALIKE |= {"wang2019": ["wang_finetune_only", "wang_stack_finetune", "wang_finetune_long"]}


@pytest.mark.parametrize("experiment", ALIKE)
def test_strategies_of_a_paper_have_the_same_search_budget_each_with_its_own_rates(experiment, catalogue):
    spent = {}
    for name in ALIKE[experiment]:
        search = catalogue.get("strategies", name, "test").search
        spent[name] = len(search.trials()) * len(search.seeds)
    assert len(set(spent.values())) == 1, spent


def warned(home, strategies, seeds=(1, 2)) -> list[str]:
    chosen = {"tasks": ["sst2"], "encoders": ["minilm"], "strategies": strategies, "seeds": list(seeds)}
    experiment = ExperimentConfig(experiment="e", title="t", outputs=["main_table"], **chosen)
    return reported_seeds(experiment, Catalogue(shipped(home)))


def test_a_search_on_a_reported_seed_is_warned_of_before_anything_runs(home):
    (warning,) = warned(home, ["stack_searched"])
    assert warning.startswith("Warning: Stack, then fine-tune, rates searched is searched with seed 1, which this")
    assert warned(home, ["stack_searched"], seeds=(2, 3)) == warned(home, ["lee_full", "lee_top_k"]) == []
