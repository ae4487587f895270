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
from thaw.outputs.report import recommended
from thaw.outputs.tables import recommendation, writers
from thaw.statistics import non_inferiority as analysis
from thaw.statistics.non_inferiority import Candidate

RATES = {("frozen", "base"): 0.60, ("top_k", "k01"): 0.91, ("top_k", "k03"): 0.85, ("full", "base"): 0.89}
SECONDS = {("frozen", "base"): 1.0, ("top_k", "k01"): 20.0, ("top_k", "k03"): 10.0, ("full", "base"): 90.0}


def candidate(score: float, seconds: float, spread: float = 0.1, seeds: int = 6):
    """Return a candidate with this score on validation and a deviation of its own by the examples."""
    drawn = spread * np.random.default_rng(round(seconds)).standard_normal(1000)
    scores = score + 0.01 * (np.arange(seeds) - (seeds - 1) / 2)
    return Candidate("some", scores, np.add.outer(scores, drawn), 500, {"seconds": seconds}, tuple(range(seeds)))


def answers_of(*candidates: Candidate) -> list[str]:
    return [one.answer for one in analysis.judged(list(candidates), 1.0)]


def test_what_lies_above_the_margin_is_not_worse_and_the_cheapest_of_those_is_taken():
    best, near, low = candidate(90, 100), candidate(89.7, 10), candidate(80, 1)
    assert answers_of(best, near, low) == ["not worse", "not worse", "worse"]
    assert analysis.cheapest(analysis.judged([best, near, low], 1.0), "seconds").candidate is near
    assert analysis.cheapest(analysis.judged([best, near, low], 0.1), "seconds").candidate is best


def test_bounds_that_hold_the_margin_are_undecided_and_name_seeds_and_rows():
    wide = candidate(89.5, 10, spread=2.0)
    found = analysis.judged([candidate(90, 100), wide], 1.0)
    assert [one.answer for one in found] == ["undecided", "undecided"], "nor is it known which one is the best"
    assert found[1].needed.rows == pytest.approx(500 * 1.96**2 * 2**2 / 0.5**2, rel=0.1)
    few = analysis.judged([candidate(90, 100, seeds=2), candidate(80, 10, seeds=2)], 1.0)
    assert [one.answer for one in few] == ["undecided"] * 2 and few[1].needed.seeds == 1, "three are the fewest"


def alike(rows: int) -> list[Candidate]:
    """Return three candidates that are all right on each of so many rows, with three seeds; the second is cheapest."""
    scores, drawn = np.full(3, 100.0), np.full((3, 1000), 100.0)
    return [Candidate("some", scores, drawn, rows, {"seconds": cost}, (1, 2, 3)) for cost in (5.0, 1.0, 3.0)]


def test_few_rows_without_a_difference_do_not_show_that_there_is_none():
    """Of 10 rows 26 % of all rows may differ unseen, of 400 less than one in a hundred."""
    few = analysis.judged(alike(10), 1.0)
    assert [one.answer for one in few] == ["undecided"] * 3 and few[0].difference.low == pytest.approx(-25.9, abs=0.1)
    assert few[0].needed.seeds == 0 and 300 < few[0].needed.rows <= 640, "more seeds of the same score change nothing"
    assert analysis.cheapest(few, "seconds").candidate.costs == {"seconds": 1.0}, "of a tie the cheapest"
    assert [one.answer for one in analysis.judged(alike(400), 1.0)] == ["not worse"] * 3
    nearly = alike(10)
    nearly[0].by_row[0, ::3] -= 1.0
    assert [one.answer for one in analysis.judged(nearly, 10.0)] == ["undecided"] * 3, "one row that differs is no more"


def of_seeds(score: float, seconds: float, away: list[float]) -> Candidate:
    """Return a candidate whose seeds are so far away from its score, on 500 rows that leave it open by two points."""
    scores, drawn = score + np.array(away), 1.5 * np.random.default_rng(round(seconds)).standard_normal(1000)
    return Candidate("some", scores, np.add.outer(scores, drawn), 500, {"seconds": seconds}, tuple(range(len(away))))


def test_a_strategy_that_is_far_below_asks_for_no_seeds_of_fits_that_all_seeds_share():
    """Two fits without a deviation over seeds lack rows alone, whatever the seeds of one that cannot be the best do."""
    pair, far = [of_seeds(90, 10, [0.0] * 3), of_seeds(89.5, 5, [0.0] * 3)], of_seeds(20, 1, [-1.0, 0.0, 1.0])
    for found in (analysis.judged(pair, 1.0), analysis.judged([*pair, far], 1.0)):
        assert [one.answer for one in found[:2]] == ["undecided"] * 2
        assert all(one.needed.seeds == 0 and one.needed.rows > 500 for one in found[:2])


def test_more_rows_alone_are_tried_before_more_seeds_with_them():
    """Three seeds that hardly differ are enough for the bounds of a recommendation: what lacks is rows."""
    narrow = [of_seeds(90, 10, [-0.05, 0.0, 0.05]), of_seeds(89.5, 5, [0.05, 0.0, -0.05])]
    assert {one.needed.seeds for one in analysis.judged(narrow, 1.0)} == {0}


def promised(draw: int) -> list[str]:
    """Return the answers of undecided candidates, once there are as many seeds as they are said to need."""
    rng, seeds = np.random.default_rng(draw), (3, 6, 8)[draw % 3]
    of_seeds, of_rows = 80 + rng.normal(0, 1.5, (5, 1)) + rng.normal(0, 1, (5, seeds)), rng.normal(0, 0.4, (5, 1000))

    def repeated(times: int) -> list[Candidate]:
        every = [np.tile(scores, times) for scores in of_seeds]
        return [
            Candidate("some", own, np.add.outer(own, row), 500, {"seconds": 1.0}, tuple(range(len(own))))
            for own, row in zip(every, of_rows, strict=True)
        ]

    answers = []
    for place, one in enumerate(analysis.judged(repeated(1), 1.0)):
        if one.needed and one.needed.rows is None:
            enough = -(-(seeds + one.needed.seeds) // seeds)
            answers.append(analysis.judged(repeated(enough), 1.0)[place].answer)
    return answers


def test_so_many_seeds_as_are_asked_for_decide_where_all_stays_the_same():
    """The seeds are repeated, so that means and standard deviations are what they were."""
    answers = [answer for draw in range(20) for answer in promised(draw)]
    assert len(answers) > 5 and "undecided" not in answers


def test_bounds_hold_for_all_candidates_together():
    """Eight equal strategies: the chance that any of them is said to be worse than it is stays below 5 %."""
    rng, wrong, alone = np.random.default_rng(0), [], []
    for _ in range(60):
        by_rows = rng.standard_normal((8, 1))
        scores = 90 + 0.5 * rng.standard_normal((8, 6)) + by_rows
        drawn = rng.standard_normal((8, 400))
        ways = [
            Candidate("some", own, np.add.outer(own, row), 500, {"seconds": 1.0}, tuple(range(6)))
            for own, row in zip(scores, drawn, strict=True)
        ]
        wrong.append(any(one.difference.high < 0 for one in analysis.judged(ways, 1.0)))
        best = analysis.highest(ways)
        alone.append(any(np.quantile(one.less(best).draws, 0.975) < 0 for one in ways))
    assert np.mean(wrong) <= 0.08 < 0.2 < np.mean(alone), "unadjusted, something is wrong far more often"


def test_nothing_is_above_a_reference_that_only_noise_exceeds():
    ways = [candidate(50 + gain, 1 + gain, spread=2.0) for gain in (0.0, 1.0, 3.0)]
    majority = Candidate("majority", np.array([50.0]), np.full((1, 1000), 50.0), 500, {}, ())
    assert not analysis.any_above(ways, majority) and analysis.any_above([*ways, candidate(60, 9, 2.0)], majority)


def test_the_front_holds_what_nothing_beats_in_everything():
    costs = [{"a": 1, "b": 3}, {"a": 2, "b": 2}, {"a": 2, "b": 3}, {"a": 2, "b": 2}]
    assert analysis.pareto(costs) == [True, True, False, True]


PREDICTION = {("frozen", "base"): 50.0, ("top_k", "k01"): 80.0, ("top_k", "k03"): 100.0, ("full", "base"): 100.0}


def runs_of(results, rates: dict, **changes):
    """Return runs.csv of runs that predict right at these rates, on test and on validation."""
    tested = scored_runs.write(results, rates, **changes)
    points = list(zip(tested["strategy"], tested["variant"], strict=True))
    tested["main"], tested["role"], tested["optimizer"], tested["synthetic"] = True, "test", "adamw", False
    tested["train_seconds"] = [SECONDS[point] for point in points]
    for name in COLUMNS[COLUMNS.index("total_seconds") : COLUMNS.index("flags")] + ["after_seconds"]:
        tested[name] = 0.0
    tested["inference_flops"] = [PREDICTION[point] for point in points]
    tested["embeddings"] = tested["strategy"] == "full"
    tested["extraction_seconds"] = [2.0 * (point[0] != "full") for point in points]
    tested["extraction_whole_seconds"] = 4 * tested["extraction_seconds"]
    return pandas.concat([tested, tested.assign(role="validation", split="validation")], ignore_index=True)


def table_of(results, frame):
    """Return the table for two papers, of which one would take the full model and one the frozen encoder."""
    rules = [{"task": "odd", "encoder": "tiny", "paper": "One 2020", "says": "all of it", "like": True}]
    rules += [{**rules[0], "paper": "Two 2021", "says": "none of it"}]
    rules = [{**rules[0], "strategy": "full", "variant": "base"}, {**rules[1], "strategy": "frozen", "variant": "base"}]
    spec = invented.shown("advice", "advice_table") | {"margin": 8.0, "papers": rules}
    return recommendation.build(OutputData(results, frame), spec)


def cells_of(table) -> dict[str, str]:
    (row,) = table.groups[0].rows
    return dict(zip((column.label for column in table.columns), (cell.text for cell in row.cells), strict=True))


def lines_of(table) -> dict[tuple, dict]:
    header, *lines = csv.reader(io.StringIO(writers.to_csv(table)))
    return {(line[5], line[6]): dict(zip(header, line, strict=True)) for line in lines}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Return the table for four runs on 200 rows."""
    results = tmp_path_factory.mktemp("results")
    return table_of(results, runs_of(results, RATES))


def test_trials_of_a_search_are_part_of_the_cost(drawn, tmp_path):
    frame = runs_of(tmp_path, RATES)
    frame.loc[frame["variant"] == "k01", "search_seconds"] = 400.0
    before, after = (lines_of(table)["top_k", "k01"] for table in (drawn, table_of(tmp_path, frame)))
    for cost, seconds in (("seconds_alone", 28.0), ("seconds_shared", 22.0)):
        assert float(before[cost]) == seconds and float(after[cost]) == seconds + 400


def test_costs_of_a_busy_machine_are_compared_by_flops(tmp_path):
    """Seconds that include other work are no comparison; the cell says so itself, as a terminal shows no notes."""
    frame = runs_of(tmp_path, RATES)
    frame["flops"] = 1e9 * frame["strategy"].map({"frozen": 1.0, "top_k": 30.0, "full": 120.0})
    idle = lines_of(table_of(tmp_path, frame))["top_k", "k01"]
    busy = table_of(tmp_path, frame.assign(device="cpu", total_seconds=20.0, processor_seconds=2.0))
    assert cells_of(busy)["Cost"].startswith("30\u202fGFLOPs (measured on a busy machine: 22\u202fs (")
    assert any(note.startswith("Costs are therefore given in FLOPs") for note in busy.notes)
    lines = lines_of(busy)
    taken, whole = lines["top_k", "k01"], lines["full", "base"]
    assert (idle["busy"], taken["busy"], taken["training_flops"]) == ("0", "1", "3e+10")
    said = recommended._cheaper(taken, whole, list(lines.values()), {})
    assert said.startswith("30\u202fGFLOPs of training instead of 120\u202fGFLOPs (4.0 times less); ")
    assert said.endswith("Seconds were measured on a busy machine and cannot be compared: 22\u202fs and 1.5\u202fmin.")
    assert recommended._cheaper(idle, whole | {"busy": "0"}, list(lines.values()), {}).startswith(
        "22\u202fs of training"
    )


def test_cheaper_is_by_seconds_in_every_sentence(tmp_path):
    """On a busy machine the probe trains for less time than the full model and counts more FLOPs."""
    frame = runs_of(tmp_path, {("frozen", "base"): 0.60, ("full", "base"): 0.90})
    frame["flops"] = 1e9 * frame["strategy"].map({"frozen": 9.0, "full": 3.0})
    lines = lines_of(table_of(tmp_path, frame.assign(device="cpu", total_seconds=20.0, processor_seconds=2.0)))
    probe, full = lines["frozen", "base"], lines["full", "base"]
    assert (probe["busy"], full["highest"]) == ("1", "1")
    said, _, _ = recommended._near([probe, full], full, {})
    assert said.startswith("Next on validation and cheaper: frozen (")
    assert "9\u202fGFLOPs of training instead of 3\u202fGFLOPs (3.0 times more)" in said
    said, _, _ = recommended._near([probe, full], probe, {})
    assert said == "No other strategy trains for less time (measured on a busy machine)."
    open_ = [line | {"answer": "undecided", "rows_needed": "900", "more_seeds": "0"} for line in (probe, full)]
    assert recommended._open(open_, full | {"answer": "not worse"}, {}).startswith("To decide whether a cheaper one is")


def test_what_is_lacking_is_said_with_what_it_decides():
    """The rows for what is recommended and those for another strategy are no two answers to one question."""
    common = {"margin": "1", "seeds": "3", "answer": "undecided", "more_seeds": "0", "variant": "base"}
    taken = common | {"strategy": "all_layers", "rows_needed": "88", "seconds_shared": "9"}
    other = common | {"strategy": "probe", "rows_needed": "352", "seconds_shared": "5"}
    labels = {"strategies": {"probe": "Linear probe"}}
    assert recommended._sure(taken) == (
        "Provisional: not shown to be within 1 point of the best with 3 seeds. "
        "To show that it is: a validation set of 88 rows."
    )
    assert recommended._open([taken, other], taken, labels) == (
        "To decide whether another one is within 1 point of the best: Linear probe – a validation set of 352 rows."
    )
    shown = taken | {"answer": "not worse"}
    assert recommended._open([shown, other], shown, labels).startswith(
        "To decide whether a cheaper one is within 1 point"
    )


def test_one_stalled_training_does_not_make_a_strategy_expensive(drawn, tmp_path):
    frame = runs_of(tmp_path, RATES)
    stalled = (frame["variant"] == "k01") & (frame["seed"] == frame["seed"].min())
    frame.loc[stalled, "train_seconds"] *= 1000
    before, after = (lines_of(table)["top_k", "k01"] for table in (drawn, table_of(tmp_path, frame)))
    assert after["seconds_shared"] == before["seconds_shared"] and after["seconds_alone"] == before["seconds_alone"]


def test_the_table_says_what_to_take_and_what_papers_would(drawn):
    cells = cells_of(drawn)
    assert cells["Recommended"] == "Top k (k = 1)" and cells["Highest on validation"].startswith("Top k (k = 1) (")
    assert cells["Cost"].startswith("22\u202fs (28\u202fs with the whole feature extraction); ")
    assert "One 2020: all of it (non-inferior, but more expensive)" in cells["Papers"]
    assert "Two 2021: none of it (contradicted, −" in cells["Papers"]
    assert not any("test rows alone" in note for note in drawn.notes)


def test_what_a_prediction_costs_is_said_where_it_differs_from_full_fine_tuning(drawn, tmp_path):
    assert cells_of(drawn)["Cost"].endswith("; inference 80.0 % of Full")
    assert any(note.startswith("Inference: ") for note in drawn.notes)
    frame, unknown = runs_of(tmp_path, RATES), float("nan")
    chosen = frame["variant"] == "k01"
    for top, said in ((100.5, "extraction)"), (unknown, "; inference – % of Full")):
        frame.loc[chosen, "inference_flops"] = top
        assert cells_of(table_of(tmp_path, frame))["Cost"].endswith(said)
    old = table_of(tmp_path, frame.assign(inference_flops=unknown))
    assert not any("Inference" in note for note in old.notes)
    assert {line["inference_flops"] for line in lines_of(old).values()} == {""}


def test_the_numbers_behind_the_table(drawn):
    by_point = lines_of(drawn)
    assert {point for point, line in by_point.items() if line["advised"] == "1"} == {("top_k", "k01")}
    assert {point for point, line in by_point.items() if line["test"]} == {("top_k", "k01")}, "test stays closed"
    assert by_point["frozen", "base"]["answer"] == "worse" and by_point["frozen", "base"]["papers"] == "Two 2021"
    assert float(by_point["top_k", "k03"]["seconds_alone"]) == 18 and by_point["top_k", "k03"]["on_front"] == "1"
    assert by_point["full", "base"]["on_front"] == "0", "k = 1 is better and cheaper"
    low, high = float(by_point["full", "base"]["low"]), float(by_point["full", "base"]["high"])
    assert low < float(by_point["full", "base"]["difference"]) <= high


def test_what_is_high_on_test_alone_is_not_chosen(tmp_path):
    """Scores on test are turned round, so that the frozen encoder is ahead there; the choice stays what it was."""
    frame = runs_of(tmp_path, RATES)
    tested = frame["role"] == "test"
    frame.loc[tested, "value"] = 1 - frame.loc[tested, "value"]
    cells, by_point = cells_of(table_of(tmp_path, frame)), lines_of(table_of(tmp_path, frame))
    assert cells["Recommended"] == "Top k (k = 1)" and float(by_point["top_k", "k01"]["test"]) < 20


def test_a_score_that_is_undefined_on_test_does_not_change_the_choice(tmp_path):
    """The test score of what validation takes is undefined in a seed; on validation that takes it out."""
    frame = runs_of(tmp_path, RATES)
    best = (frame["variant"] == "k01") & (frame["seed"] == frame["seed"].min())
    frame.loc[best & (frame["role"] == "test"), "value"] = float("nan")
    table = table_of(tmp_path, frame)
    cells, line = cells_of(table), lines_of(table)["top_k", "k01"]
    assert cells["Recommended"] == "Top k (k = 1)" and cells["Test score"] == "undefined"
    assert (line["advised"], line["test"], recommended._score(line)) == ("1", "", "undefined")
    assert not any("Undefined" in note for note in table.notes)
    frame.loc[best, "value"] = float("nan")
    table = table_of(tmp_path, frame)
    assert ("top_k", "k01") not in lines_of(table) and any("They are no candidates" in note for note in table.notes)


def with_baselines(results, frame, **scores):
    """Return the frame with baselines at these shares of right predictions, on validation and test."""
    made = scored_runs.write(results, {(name, "base"): score for name, score in scores.items()}, seeds=(0,), head="b")
    made = made.assign(kind="baseline", encoder="", head="", main=True, role="test", synthetic=False, thawed=0)
    for name in COLUMNS[COLUMNS.index("train_seconds") : COLUMNS.index("flags")]:
        made[name] = 0.0
    made["flops"], made["optimizer"] = 0.0, ""
    return pandas.concat([frame, made, made.assign(role="validation", split="validation")], ignore_index=True)


def test_where_cosine_or_the_majority_class_is_not_beaten_nothing_is_recommended(tmp_path):
    """Everything at chance and the cosine far above: taking the frozen encoder would be no advice."""
    rates = {("frozen", "base"): 0.51, ("top_k", "k01"): 0.5, ("full", "base"): 0.5}
    frame = with_baselines(tmp_path, runs_of(tmp_path, rates), majority=0.55, cosine=0.72, bag_of_words=0.4)
    table = table_of(tmp_path, frame)
    recommended = cells_of(table)["Recommended"]
    assert recommended.startswith("None: on validation no strategy is above the cosine similarity (")
    assert "no strategy is shown to be above the majority class" in recommended and "bag" not in recommended
    assert {line["advised"] for line in lines_of(table).values()} == {"0"} and "Test score" not in cells_of(table)
    beaten = with_baselines(tmp_path, runs_of(tmp_path, RATES), majority=0.5, cosine=0.72)
    assert cells_of(table_of(tmp_path, beaten))["Recommended"] == "Top k (k = 1)"


def test_nothing_is_recommended_that_is_as_high_as_a_baseline_or_not_shown_above_the_majority_class(tmp_path):
    """A mean over seeds of the baseline's own score may differ from it in its last digits."""
    high = with_baselines(tmp_path, runs_of(tmp_path, RATES), majority=0.5, bag_of_words=0.4)
    validated = (high["role"] == "validation") & high["strategy"].isin(["top_k", "bag_of_words"])
    high.loc[validated, "value"] = 0.9 + np.where(high.loc[validated, "kind"] == "run", 1e-15, 0)
    assert cells_of(table_of(tmp_path, high))["Recommended"] == (
        "None: on validation no strategy is above the bag of words (90.0)"
    )
    low = with_baselines(tmp_path, runs_of(tmp_path, dict.fromkeys(RATES, 0.51)), majority=0.5)
    low.loc[(low["role"] == "validation") & (low["kind"] == "baseline"), "value"] = 0.5
    assert cells_of(table_of(tmp_path, low))["Recommended"] == (
        "None: on validation no strategy is shown to be above the majority class (50.0)"
    )


def test_two_seeds_recommend_nothing(tmp_path):
    table = table_of(tmp_path, runs_of(tmp_path, RATES, seeds=(1, 2)))
    assert cells_of(table)["Recommended"].startswith("None with 2 seeds; highest on validation: ")
    assert "of the test rows alone" in table.notes[-1]
