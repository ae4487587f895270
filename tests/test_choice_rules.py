"""Rules that choose a strategy by validation: what they lose, what they take, and that luck does not count as best."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

import invented
from test_plan import planned
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.frame.choice_points import Points, points_of
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import choice_rules, writers

SEEDS = range(1, 7)
SCORES = {  # validation, test, seconds of training and of the share of the extraction
    "frozen": (70, 80, 1.0, 4.0),
    "top_k": (90, 85, 5.0, 4.0),
    "full": (80, 90, 16.0, 0.0),
}
RULES = [
    {"label": "Always full", "among": ["full"]},
    {"label": "Frozen", "among": ["frozen"]},
    {"label": "All", "among": ["frozen", "top_k", "full"]},
]


def runs_of(scores: dict, tasks=("odd", "even"), seeds=SEEDS) -> pd.DataFrame:
    """Return rows of runs.csv, one for validation and one for test of each run."""
    rows = []
    for task in tasks:
        for strategy, (validation, test, training, extraction) in scores.items():
            common = {"kind": "run", "task": task, "subset": "all", "encoder": "tiny", "head": "linear"}
            common |= {"strategy": strategy, "variant": "base", "metric": "accuracy", "main": True, "missing": ""}
            common |= {"train_seconds": training, "after_seconds": 0.0, "price_seconds": training + extraction}
            common |= {"extraction_seconds": extraction, "device": "cpu", "flops": 0.0, "after_flops": 0.0, "flags": ""}
            common |= {"peak_memory_mb": 0.0, "trained_parameters": 0.0, "inference_flops": 0.0, "search_seconds": 0.0}
            common |= {"processor_seconds": float("nan"), "total_seconds": 0.0}
            common |= {"updates": 0.0}
            common |= {"thawed": 0, "embeddings": False, "optimizer": "adamw", "pairs": "", "synthetic": False}
            for seed in seeds:
                for role, value in (("validation", validation), ("test", test)):
                    rows.append(common | {"seed": seed, "split": role, "role": role, "value": value / 100})
    return pd.DataFrame(rows)


def drawn(folder, runs, rules=RULES):
    """Return the table, and the lines of its CSV by rule and task."""
    table = choice_rules.build(
        OutputData(folder, runs), invented.shown("r", "rule_table", reference="full", rules=rules)
    )
    lines = csv.DictReader(io.StringIO(writers.to_csv(table)))
    return table, {(line["rule"], line["task"]): line for line in lines}


def test_regret_and_cost_by_hand(tmp_path):
    table, lines = drawn(tmp_path, runs_of(SCORES))
    assert [float(lines[rule["label"], "odd"]["regret"]) for rule in RULES] == [0, 10, 5], "All takes top_k: 85"
    assert [float(lines[rule["label"], "even"]["cost"]) for rule in RULES] == [1, 5 / 16, 30 / 16]
    cells = [[cell.text for cell in row.cells] for row in table.groups[0].rows]
    assert cells[0] == ["0.0", "0.0", "0.0 [0.0, 0.0]", "1.00", "–"]
    assert cells[2] == ["5.0", "5.0", "5.0 [5.0, 5.0]", "1.88", "0.500"], "two tasks have four flips"
    linked = [table.anchor(table.groups[0].rows[2], index) for index in range(5)]
    assert linked == ["odd.all.tiny.linear", "even.all.tiny.linear", "", "", ""], "all runs of the task are behind it"


def test_a_rule_may_take_one_point_of_a_sweep(tmp_path, home):
    runs = runs_of(SCORES)
    runs = pd.concat([runs, runs[runs["strategy"] == "top_k"].assign(variant="k02", value=0.5)])
    alone = {"label": "Top 2", "among": ["top_k"], "variant": "k02"}
    _, lines = drawn(tmp_path, runs, [RULES[0], alone])
    assert float(lines["Top 2", "odd"]["regret"]) == 40 and float(lines["Top 2", "odd"]["cost"]) == 9 / 16
    (tmp_path / "outputs.yaml").write_text(
        "outputs:\n  mine: {kind: rule_table, reference: full, label: Mine, caption: Mine., rules: "
        "[{label: Top 9, among: [top_k], variant: k09}]}\n"
    )
    with pytest.raises(UserError, match="rule 'Top 9': variant: k09 is none of k02"):
        planned(home, catalogues=[str(tmp_path)], outputs=["mine"], strategies=["full", {"top_k": [2]}])


def test_a_run_on_a_stalled_machine_makes_no_rule_cheap(tmp_path):
    runs = runs_of(SCORES)
    runs.loc[(runs["strategy"] == "full") & (runs["seed"] == 3), "price_seconds"] = 999.0
    _, lines = drawn(tmp_path, runs)
    assert float(lines["All", "even"]["cost"]) == 30 / 16


def test_what_is_paid_before_training_is_paid_in_full_by_halving(tmp_path):
    """Of the prices 5, 9 and 84 the extraction of 4 is paid before, and 64 of full for its search."""
    runs = progress_of(tmp_path, GAINS)
    runs["search_seconds"] = runs["strategy"].map({"frozen": float("nan"), "top_k": 0.0, "full": 64.0})
    runs["price_seconds"] += runs["search_seconds"].fillna(0.0)
    _, lines = drawn(tmp_path, runs, [*RULES, HALVING])
    cost = {label: float(lines[label, "far"]["cost"]) for label in ("Always full", "Frozen", "All", "Halving")}
    halving = (22 / 8 + 21 / 8 + 12 + 3 * 4 + 64) / 84
    assert cost == pytest.approx({"Always full": 1, "Frozen": 5 / 84, "All": 98 / 84, "Halving": halving}, abs=1e-4)


def test_the_luckiest_of_equal_strategies_is_not_the_best(tmp_path):
    """Where all strategies are alike nothing can be lost; the largest mean over the same seeds would say otherwise."""
    rng, lost, naive = np.random.default_rng(0), [], []
    for _ in range(60):
        scores = pd.DataFrame(rng.normal(70, 2, (8, 6)), columns=[(f"s{n}", "base") for n in range(6)])
        noise = pd.DataFrame(rng.normal(70, 2, scores.shape), columns=scores.columns)
        lost.append(Points(noise, scores, None, None).regret(noise.idxmax(axis=1).to_dict()))
        naive.append(scores.mean().max() - scores.mean().mean())
    assert abs(np.mean(lost)) < 3 * np.std(lost, ddof=1) / np.sqrt(len(lost)) < 0.4 < np.mean(naive)


def test_a_rule_chooses_in_each_draw_by_its_own_validation(tmp_path):
    """In half of the draws validation prefers the worse one, which costs half of the difference."""
    runs = runs_of({name: SCORES[name] for name in ("frozen", "full")}, ["odd"])
    fooled = (runs["strategy"] == "frozen") & (runs["role"] == "validation") & (runs["seed"] % 2 == 0)
    runs.loc[fooled, "value"] = 0.99
    _, lines = drawn(tmp_path, runs, [RULES[0], {"label": "Both", "among": ["frozen", "full"]}])
    assert float(lines["Both", "odd"]["regret"]) == 5


def test_too_few_draws_have_a_cost_and_no_regret(tmp_path):
    table, lines = drawn(tmp_path, runs_of(SCORES, seeds=(1, 2, 3, 4)))
    assert lines["All", "odd"]["regret"] == ""
    assert [cell.text for cell in table.groups[0].rows[2].cells] == ["–", "–", "–", "1.88", "–"]


def test_the_mean_cost_is_over_the_tasks_of_the_mean_regret(tmp_path):
    """`even` has too few draws for a regret, and its probe costs next to nothing."""
    cheap = SCORES | {"frozen": (70, 80, 0.0, 0.0)}
    runs = pd.concat([runs_of(SCORES, ["odd"]), runs_of(cheap, ["even"], (1, 2, 3))], ignore_index=True)
    table, _ = drawn(tmp_path, runs)
    cells = [cell.text for cell in table.groups[0].rows[1].cells]
    assert cells == ["10.0", "–", "10.0", "0.31", "1.000"], "5 / 16, as on odd alone"


def test_unknown_strategies_are_refused(tmp_path, home):
    with pytest.raises(UserError, match="a rule_table needs runs of full and of the strategies of each rule"):
        drawn(tmp_path, runs_of({"frozen": SCORES["frozen"]}))
    with pytest.raises(UserError, match="rule 'Always top-k, k = 2' trains grid_top_k, which is none of the"):
        planned(home, outputs=["draws_rules"], strategies=["grid_full", "frozen"])


HALVING = {"label": "Halving", "among": ["frozen", "top_k", "full"], "way": "halving"}
HISTORY = "phase,epoch,step,loss,rate,validation_accuracy"
GAINS = {"near": (94, 0.3, 0.4), "far": (69, 9, 10)}  # the probe's score, and the gains of top_k and full


def progress_of(folder, gains: dict) -> pd.DataFrame:
    """Return runs with histories, whose scores rise with the root of their updates; full costs 16, top k 5."""
    frames = []
    for task, (probe, *more) in gains.items():
        scores = {"frozen": (probe, probe, 1.0, 4.0)}
        for name, gain, seconds in zip(("top_k", "full"), more, (5.0, 16.0), strict=True):
            scores[name] = (probe + gain, probe + gain, seconds, 4.0)
        frames.append(runs_of(scores, [task]))
    runs = pd.concat(frames, ignore_index=True)
    runs["folder"] = ["/".join(map(str, key)) for key in runs[["task", "strategy", "seed"]].to_numpy()]
    for row in runs[(runs["role"] == "validation") & (runs["strategy"] != "frozen")].itertuples():
        start = gains[row.task][0] / 100
        scores = [start + (row.value - start) * share for share in np.sqrt(np.arange(1, 9) / 8)]
        lines = [f"1,1,{10 * n},0.1,1e-4,{score}" for n, score in enumerate(scores, 1)]
        (folder / row.folder).mkdir(parents=True)
        (folder / row.folder / "history.csv").write_text("\n".join([HISTORY, *lines]))
    return runs


def test_halving_pays_for_what_it_trains_and_takes_the_one_that_is_left(tmp_path):
    """Scores rise with the root of the updates; full costs 16, top k 5, the extraction of each 4."""
    runs = progress_of(tmp_path, GAINS)
    _, lines = drawn(tmp_path, runs, [RULES[0], HALVING])
    assert [float(lines["Halving", task]["regret"]) for task in GAINS] == [0, 0]
    # three are trained to 1/8, two to 1/4, one to the end: (22 / 8 + 21 / 8 + 16 * 3 / 4), and three shares of 4
    assert float(lines["Halving", "far"]["cost"]) == pytest.approx((22 / 8 + 21 / 8 + 12 + 3 * 4) / 20, abs=1e-4)


LOGME = [RULES[0], {"label": "By LogME", "among": ["frozen", "full"], "way": "logme"}]
NEAR = {"near": 0.9, "far": 0.1, "also_near": 0.8, "also_far": 0.2}  # frozen is better where LogME is high


def logme_record(folder, task: str, subset: str, gains: dict[int, float]):
    """Write what a probe says of two layers, the last one so much above shuffled targets by seed; return the path."""
    layers = [
        {"layer": layer, "seed": seed, "scores": {"train": {"logme": -1 + gain * (layer == 2), "logme_shuffled": -1}}}
        for layer in (1, 2)
        for seed, gain in gains.items()
    ]
    of = {"task": task, "subset": subset, "encoder": "tiny", "probe": "logme_shuffled"}
    spec = {"of": of, "probe": {"kind": "logme", "shuffles": 3}, "layers": 2}
    write_json(folder / f"{task}_{subset}.json", {"spec": spec, "layers": layers})
    return folder / f"{task}_{subset}.json"


def test_logme_chooses_by_the_threshold_that_the_other_tasks_give(tmp_path):
    runs = [
        runs_of({"frozen": (70, 50 + 40 * gain, 1.0, 4.0), "full": (80, 70, 16.0, 0.0)}, [task])
        for task, gain in NEAR.items()
    ]
    paths = [logme_record(tmp_path, task, "all", dict.fromkeys(SEEDS, gain)) for task, gain in NEAR.items()]
    spec = invented.shown("r", "rule_table", reference="full", rules=LOGME)
    table = choice_rules.build(OutputData(tmp_path, pd.concat(runs, ignore_index=True), paths), spec)
    lines = {(line["rule"], line["task"]): line for line in csv.DictReader(io.StringIO(writers.to_csv(table)))}
    assert [float(lines["By LogME", task]["regret"]) for task in NEAR] == [0, 0, 0, 0]
    cost = {"near": 5 / 16, "far": 20 / 16, "also_near": 5 / 16, "also_far": 20 / 16}
    assert {task: float(lines["By LogME", task]["cost"]) for task in NEAR} == cost, "the frozen layers are read always"


def test_logme_of_a_draw_belongs_to_the_runs_of_that_draw(tmp_path):
    one, other = (runs_of({"frozen": SCORES["frozen"]}, ["odd"], (1, 2)).assign(subset=name) for name in ("d1", "d2"))
    gains = {"d1": {1: 0.1, 2: 0.2}, "d2": {1: 0.3, 2: 0.4}}
    paths = [logme_record(tmp_path, "odd", subset, by_seed) for subset, by_seed in gains.items()]
    data = OutputData(tmp_path, pd.concat([one, other], ignore_index=True), paths, {"d1": "d1", "d2": "d1"})
    points = points_of(data, "test", ("d1", "tiny", "linear"), "odd", {"logme"})
    assert list(points.test.index) == [1, 2, 3, 4]
    assert points.evidence == pytest.approx({1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4})


def test_a_rule_by_logme_needs_its_probe_and_two_strategies(tmp_path, home):
    rule = "{label: By LogME, way: logme, among: [frozen, full]}"
    entry = "outputs:\n  mine: {kind: rule_table, reference: full, label: Mine, caption: Mine., rules: [%s]}\n"
    (tmp_path / "outputs.yaml").write_text(entry % rule)
    chosen = {"catalogues": [str(tmp_path)], "outputs": ["mine"], "strategies": ["full", "frozen"], "seeds": [1, 2]}
    with pytest.raises(UserError, match=r"rule 'By LogME' reads LogME of shuffled targets too; say probes: \[logme_sh"):
        planned(home, **chosen, probes=["logme"])
    plan = planned(home, **chosen, probes=["logme_shuffled"])
    assert plan.probed("demo", "table", "mine") == [plan.files("probe", key)[0] for key in plan.probes["demo"]] != []
    (tmp_path / "outputs.yaml").write_text(entry % rule.replace(", full", ""))
    with pytest.raises(UserError, match="a rule with way: logme chooses between two strategies"):
        planned(home, **chosen)
