"""Recommendations from finished runs: what is taken, what it is compared with, and what every reader of it says."""

import csv
import io
import os

import numpy as np
import pandas
import pytest

import invented
import scored_runs
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.decision import record
from thaw.decision.arms import BELOW_BASELINE, COLLAPSED, UNDERTRAINED
from thaw.decision.contrasts import Difference
from thaw.outputs import gaps
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.outputs.tables import recommendation
from thaw.words import answer_text

RATES = {("frozen", "base"): 0.60, ("top_k", "k01"): 0.91, ("top_k", "k03"): 0.85, ("full", "base"): 0.96}
SECONDS = {("frozen", "base"): 1.0, ("top_k", "k01"): 20.0, ("top_k", "k03"): 10.0, ("full", "base"): 90.0}


def runs_of(results, rates: dict, **changes):
    """Return runs.csv of runs that predict right at these rates, on test and on validation."""
    tested = scored_runs.write(results, rates, **changes)
    points = list(zip(tested["strategy"], tested["variant"], strict=True))
    for name in ("train_seconds", "total_seconds", "processor_seconds", "price_seconds"):
        tested[name] = [SECONDS[point] for point in points]
    tested["embeddings"] = tested["strategy"] == "full"
    tested["thawed"] = [0 if strategy == "frozen" else 1 for strategy, _ in points]
    return pandas.concat([tested, tested.assign(role="validation", split="validation")], ignore_index=True)


def with_baselines(results, frame, **scores):
    """Return the frame with baselines at these shares of right predictions, on validation and test."""
    made = scored_runs.write(results, {(name, "base"): score for name, score in scores.items()}, seeds=(0,), head="b")
    made = made.assign(kind="baseline", encoder="", head="", optimizer="")
    return pandas.concat([frame, made, made.assign(role="validation", split="validation")], ignore_index=True)


def table_of(results, frame, **options):
    spec = invented.shown("advice", "advice_table") | options
    return recommendation.build(OutputData(results, frame), spec)


def answer_of(results, frame, **options) -> record.TaskAnswer:
    (answer,) = table_of(results, frame, **options).answers
    return answer


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Return the table for four strategies and two baselines on 200 rows, six seeds."""
    results = tmp_path_factory.mktemp("results")
    return table_of(results, with_baselines(results, runs_of(results, RATES), majority=0.5, bag_of_words=0.55))


def test_each_arm_has_its_score_its_difference_its_loss_and_its_price_from_cheap_to_dear(drawn):
    (answer,) = drawn.answers
    decision = answer.decision
    assert [arm.name for arm in decision.arms[2:]] == ["frozen", "top_k k03", "top_k k01", "full"]
    assert [arm.price for arm in decision.arms] == [0, 0, 1, 10, 20, 90]
    best, probe = decision.arms[-1], decision.arms[2]
    assert (decision.taken, best.difference, decision.rows, decision.seeds) == (
        "full",
        Difference(0, 0, 0),
        200,
        6,
    )
    assert probe.loss == pytest.approx(best.estimate - probe.estimate, abs=2) and probe.chance == 0 and probe.listed
    assert probe.difference.low < probe.difference.value < probe.difference.high < 0
    assert sum(arm.chance for arm in decision.arms) == pytest.approx(1)


def test_within_takes_the_cheapest_that_is_expected_to_lose_so_much_at_most(tmp_path):
    frame = runs_of(tmp_path, RATES)
    taken = [answer_of(tmp_path, frame, within=within).decision.taken for within in (0, 8, 16, 60)]
    assert taken == ["full", "top_k k01", "top_k k03", "frozen"]


def test_a_weight_of_the_price_takes_what_a_second_is_worth(tmp_path):
    frame = runs_of(tmp_path, RATES)
    taken = [answer_of(tmp_path, frame, price_weight=weight).decision.taken for weight in (0.001, 0.1, 10.0)]
    assert taken == ["full", "top_k k01", "frozen"]


@pytest.mark.parametrize("seeds", [(1,), (1, 2), (1, 2, 3)])
def test_few_seeds_make_the_answer_less_sure_and_leave_none_out(tmp_path, seeds):
    answer = answer_of(tmp_path, runs_of(tmp_path, RATES, seeds=seeds))
    assert answer_text.headline(answer) == "Take Full."
    assert ("Provisional: one seed." in answer_text.reasons(answer)) == (len(seeds) == 1)


def test_where_a_baseline_is_best_the_answer_is_to_take_no_encoder(tmp_path):
    rates = dict.fromkeys(RATES, 0.6)
    answer = answer_of(tmp_path, with_baselines(tmp_path, runs_of(tmp_path, rates), majority=0.5, bag_of_words=0.8))
    assert answer_text.headline(answer) == "Take no encoder: Bag of words is the best choice."
    assert answer.cell_of(answer.decision.taken) is None and answer.test["test"].value == pytest.approx(80, abs=8)
    assert all(BELOW_BASELINE in arm.flags for arm in answer.decision.arms if arm.encoder)


def test_what_is_high_on_test_alone_is_not_chosen(tmp_path):
    """Scores on test are turned round, so that the frozen encoder is ahead there; the choice stays what it was."""
    frame = runs_of(tmp_path, RATES)
    tested = frame["role"] == "test"
    frame.loc[tested, "value"] = 1 - frame.loc[tested, "value"]
    answer = answer_of(tmp_path, frame)
    assert answer.decision.taken == "full" and answer.test["test"].value < 20


def test_what_cannot_be_compared_is_left_out_with_the_reason(tmp_path):
    frame = runs_of(tmp_path, RATES, seeds=(1, 2))
    validated = frame["role"] == "validation"
    frame.loc[validated & (frame["variant"] == "k01") & (frame["seed"] == 1), "value"] = np.nan
    frame.loc[frame["strategy"] == "full", ["missing", "value"]] = ["not run", np.nan]
    for path in tmp_path.glob("runs/odd/all/tiny/linear/frozen/base/*/predictions.parquet"):
        path.unlink()
    answer = answer_of(tmp_path, frame)
    assert dict(answer.left_out) == {"full": "not_trained", "top_k k01": "undefined", "frozen": "no_predictions"}
    assert answer.decision.taken == "top_k k03" and "Not trained: Full." in answer_text.reasons(answer)


def test_a_strategy_without_some_seeds_is_compared_by_those_that_it_has(tmp_path):
    frame = runs_of(tmp_path, RATES)
    gone = (frame["strategy"] == "full") & (frame["seed"] > 4)
    frame.loc[gone, "missing"], frame.loc[gone, "value"] = "not run", np.nan
    answer = answer_of(tmp_path, frame)
    known = frame[(frame["strategy"] == "full") & (frame["role"] == "validation")]["value"].mean()
    assert answer.decision.answer.estimate == pytest.approx(100 * known) and answer.decision.seeds == 4


def test_flags_are_next_to_numbers_and_a_collapsed_strategy_is_not_taken(tmp_path):
    frame = runs_of(tmp_path, RATES)
    frame.loc[frame["strategy"] == "full", "flags"] = "one_class"
    frame.loc[frame["variant"] == "k03", "flags"] = "underfit;rate_stuck"
    answer = answer_of(tmp_path, frame)
    flags = {arm.name: arm.flags for arm in answer.decision.arms}
    assert flags == {"frozen": (), "top_k k01": (), "top_k k03": (UNDERTRAINED,), "full": (COLLAPSED,)}
    assert answer.decision.taken == "top_k k01" and answer.decision.arms[-1].estimate > 90
    frame["flags"] = "one_class"
    assert answer_of(tmp_path, frame).decision.taken == "full", "where all collapsed the best of them"


def test_a_single_class_on_validation_is_said(tmp_path):
    frame = runs_of(tmp_path, RATES, seeds=(1,))
    path = tmp_path / "data/real/validation.parquet"
    pandas.read_parquet(path).assign(label="yes").to_parquet(path)
    frame.loc[frame["role"] == "validation", "value"] = float("nan")  # as an F1 without positives has it
    frame["flags"] = "one_class"
    answer = answer_of(tmp_path, frame)
    assert not any(arm.flags for arm in answer.decision.arms), "whoever predicts that class is right"
    assert answer.single_class and any("single class" in line for line in answer_text.reasons(answer))
    assert not answer.left_out and len(answer.decision.arms) == len(RATES)


def test_the_csv_has_a_line_for_each_arm(drawn):
    header, *lines = csv.reader(io.StringIO(table_formats.to_csv(drawn)))
    by_arm = {line[4]: dict(zip(header, line, strict=True)) for line in lines}
    assert by_arm["full"]["taken"] == "1" and by_arm["frozen"]["answer"] == "lower"
    assert by_arm["majority"]["encoder_used"] == "0" and float(by_arm["top_k k03"]["price"]) == 10


def test_the_record_beside_the_table_is_what_was_decided_and_a_gap_has_none(drawn, tmp_path):
    table_formats.write(drawn, tmp_path / "tables/advice")
    assert record.read(tmp_path) == drawn.answers
    table_formats.write(gaps.table(invented.shown("advice", "advice_table"), "no reason"), tmp_path / "tables/advice")
    assert record.read(tmp_path) == []


def test_a_record_of_thaw_advise_is_read_where_no_table_is_there(drawn, tmp_path):
    record.write(tmp_path / record.ADVISED, drawn.answers)
    assert record.read(tmp_path) == drawn.answers
    record.write(tmp_path / record.ADVISED, [])
    os.utime(tmp_path / record.ADVISED, (1, 1))
    table_formats.write(drawn, tmp_path / "tables/advice")
    assert record.read(tmp_path) == drawn.answers, "the latest counts"
    write_json(tmp_path / "tables/advice.json", {"answers": []})
    with pytest.raises(UserError, match="another version of Thaw; delete it and run the experiment again"):
        record.read(tmp_path)
    entry = record.entries(drawn.answers)[0] | {"points": None}
    write_json(tmp_path / "tables/advice.json", {"version": record.VERSION, "answers": [entry]})
    with pytest.raises(UserError, match=r"advice.json is damaged at 0\.points; delete it"):
        record.read(tmp_path)


def test_the_sentences_of_an_answer(drawn):
    (answer,) = drawn.answers
    text = answer_text.in_terminal(answer)
    assert "→ Take Full." in text and "200 validation rows cannot show less than " in text
    (cheaper,) = answer_text.cheaper(answer)
    assert cheaper.startswith("Top k (k = 1) is expected to lose ") and cheaper.endswith(
        " for 20\u202fs instead of 1.5\u202fmin."
    )


def test_a_task_that_is_chosen_on_its_test_split_has_the_same_answer_and_says_so(tmp_path, drawn):
    frame = with_baselines(tmp_path, runs_of(tmp_path, RATES), majority=0.5, bag_of_words=0.55)
    both = frame[frame["role"] == "test"].assign(also_validation=True, protocol="paper")
    table = table_of(tmp_path, both)
    (answer,), (usual,) = table.answers, drawn.answers
    assert answer.decision.taken == usual.decision.taken and len(answer.decision.arms) == len(usual.decision.arms)
    assert "Selected and reported on the same split: R&D_50%." in table.notes
    assert not answer.calibration, "no temperature is fitted on the rows that it is judged on"
