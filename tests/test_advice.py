"""Recommendations: the cheapest non-inferior strategy, undecided strategies, and what papers recommend."""

import csv
import io

import numpy as np
import pandas
import pytest

import invented
import scored_runs
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.runs_frame import COLUMNS
from thaw.outputs.tables import recommendation, writers
from thaw.planning.configuration import load_plan, read_config
from thaw.statistics import non_inferiority as analysis
from thaw.statistics.non_inferiority import Candidate

RATES = {("frozen", "base"): 0.60, ("top_k", "k01"): 0.91, ("top_k", "k03"): 0.85, ("full", "base"): 0.90}
SECONDS = {("frozen", "base"): 1.0, ("top_k", "k01"): 20.0, ("top_k", "k03"): 10.0, ("full", "base"): 90.0}


def candidate(score: float, seconds: float, spread: float = 0.1, validation: float | None = None, seeds: int = 6):
    """Return a candidate whose draws lie around its score."""
    draws = score + spread * np.random.default_rng(round(seconds)).standard_normal(500)
    scores = [score + 0.01 * seed for seed in range(seeds)]
    return Candidate(None, score if validation is None else validation, scores, draws, {"seconds": seconds})


def answers_of(*candidates: Candidate) -> list[str]:
    return [one.answer for one in analysis.judged(list(candidates), 1.0)]


def test_what_lies_above_the_margin_is_not_worse_and_the_cheapest_of_those_is_taken():
    best, near, low = candidate(90, 100), candidate(89.5, 10), candidate(80, 1)
    assert answers_of(best, near, low) == ["not worse", "not worse", "worse"]
    assert analysis.cheapest(analysis.judged([best, near, low], 1.0), "seconds").candidate is near
    assert analysis.cheapest(analysis.judged([best, near, low], 0.1), "seconds").candidate is best


def test_an_interval_that_holds_the_margin_is_undecided_and_says_how_many_seeds_it_lacks():
    wide = candidate(89.5, 10, spread=2.0)
    found = analysis.judged([candidate(90, 100), wide], 1.0)
    assert found[1].answer == "undecided" and found[1].more >= 1
    one = analysis.judged([candidate(90, 100, seeds=1), candidate(89.5, 10, spread=2.0, seeds=1)], 1.0)
    assert one[1].more == 5, "six seeds are the fewest that a test can tell apart"


def test_the_best_is_chosen_on_validation():
    lucky = candidate(95, 100, validation=80)
    found = analysis.judged([lucky, candidate(90, 10, validation=90)], 1.0)
    assert found[1].difference.value == 0 and found[0].difference.value > 4 and found[0].answer == "not worse"


def test_the_front_holds_what_nothing_beats_in_everything():
    costs = [{"a": 1, "b": 3}, {"a": 2, "b": 2}, {"a": 2, "b": 3}, {"a": 2, "b": 2}]
    assert analysis.pareto(costs) == [True, True, False, True]


PREDICTION = {("frozen", "base"): 50.0, ("top_k", "k01"): 80.0, ("top_k", "k03"): 100.0, ("full", "base"): 100.0}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Return the table for four runs on 200 rows, with a paper that would take the full model, and one frozen."""
    return table_of(tmp_path_factory.mktemp("results"), PREDICTION)


def table_of(results, prediction: dict):
    """Return the table of the four runs. Args: the operations of a prediction by point, NaN where none is known."""
    tested = scored_runs.write(results, RATES)
    points = list(zip(tested["strategy"], tested["variant"], strict=True))
    tested["main"], tested["role"], tested["optimizer"], tested["synthetic"] = True, "test", "adamw", False
    tested["train_seconds"] = [SECONDS[point] for point in points]
    for name in COLUMNS[COLUMNS.index("total_seconds") : COLUMNS.index("flags")] + ["after_seconds"]:
        tested[name] = 0.0
    tested["inference_flops"] = [prediction[point] for point in points]
    tested["extraction_seconds"] = [2.0 * (point[0] != "full") for point in points]
    tested["extraction_whole_seconds"] = 4 * tested["extraction_seconds"]
    frame = pandas.concat([tested, tested.assign(role="validation", split="validation")])
    rules = [{"task": "odd", "encoder": "tiny", "paper": "One 2020", "says": "all of it"}]
    rules += [{**rules[0], "paper": "Two 2021", "says": "none of it"}]
    rules = [{**rules[0], "strategy": "full", "variant": "base"}, {**rules[1], "strategy": "frozen", "variant": "base"}]
    frame["embeddings"] = frame["strategy"] == "full"
    spec = invented.shown("advice", "advice_table") | {"margin": 5.0, "papers": rules}
    return recommendation.build(OutputData(results, frame), spec)


def test_the_table_says_what_to_take_and_what_papers_would(drawn):
    (row,) = drawn.groups[0].rows
    cells = dict(zip(recommendation.TITLES, (cell.text for cell in row.cells), strict=True))
    assert cells["Recommended"] == "Top k (k = 1)" and cells["Best on validation"].startswith("Top k (k = 1) (")
    assert cells["Cost"].startswith("28\u202fs alone, 22\u202fs with features shared")
    assert "One 2020: all of it (non-inferior, but more expensive)" in cells["Papers"]
    assert "Two 2021: none of it (contradicted, −" in cells["Papers"]
    assert not any("provisional" in note for note in drawn.notes)


def test_what_a_prediction_costs_is_said_where_it_differs_from_full_fine_tuning(drawn, tmp_path):
    (cell,) = (row.cells[recommendation.TITLES.index("Cost")] for row in drawn.groups[0].rows)
    assert cell.text.endswith("; inference 80.0 % of Full")
    assert any(note.startswith("Inference: ") for note in drawn.notes)
    unknown = float("nan")
    for top, said in ((100.5, "s alone"), (unknown, "; inference – % of Full")):
        table = table_of(tmp_path, PREDICTION | {("top_k", "k01"): top})
        assert table.groups[0].rows[0].cells[recommendation.TITLES.index("Cost")].text.endswith(said)
    old = table_of(tmp_path, dict.fromkeys(PREDICTION, unknown))
    assert not any("Inference" in note for note in old.notes)
    assert {line["inference_flops"] for line in csv.DictReader(io.StringIO(writers.to_csv(old)))} == {""}


def test_the_numbers_behind_the_table(drawn):
    header, *lines = csv.reader(io.StringIO(writers.to_csv(drawn)))
    by_point = {(line[5], line[6]): dict(zip(header, line, strict=True)) for line in lines}
    assert {point for point, line in by_point.items() if line["advised"] == "1"} == {("top_k", "k01")}
    assert by_point["frozen", "base"]["answer"] == "worse" and by_point["frozen", "base"]["papers"] == "Two 2021"
    assert float(by_point["top_k", "k03"]["seconds_alone"]) == 18 and by_point["top_k", "k03"]["on_front"] == "1"
    assert by_point["full", "base"]["on_front"] == "0", "k = 1 is better and cheaper"
    low, high = float(by_point["full", "base"]["low"]), float(by_point["full", "base"]["high"])
    assert low < float(by_point["full", "base"]["difference"]) < high


def test_the_plan_finds_what_papers_would_take(home):
    more = {"outputs": ["main_table", "advice"]}
    plan = load_plan(read_config([str(home / "config/config.yaml")], more), home)
    found = plan.job("table", "demo/advice").spec["papers"]
    said = {(rule["task"], rule["paper"]): (rule["strategy"], rule["variant"]) for rule in found}
    assert said["entities", "Lee et al. 2019"] == ("top_k", "k02"), "a quarter of six layers, halves rounded up"
    assert said["acceptability", "Wang et al. 2019"] == ("stack_then_finetune", "base")
    assert ("acceptability", "Peters et al. 2019") not in said, (
        "it is about pairs, and this encoder is trained on others"
    )
    assert plan.advice() == ["results/outputs/demo/tables/advice.md"]


def test_every_piece_of_advice_is_about_strategies_that_exist(catalogue):
    for name in catalogue.ids("advice"):
        rule = catalogue.get("advice", name, "advice")
        for strategy in rule.strategies:
            swept = bool(catalogue.get("strategies", strategy, name).sweep)
            assert not swept or rule.depth is not None, (name, strategy)
