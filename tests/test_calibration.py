"""Calibration of probabilities: against scikit-learn, a plain loop, cases by hand; and what an answer says of it."""

import numpy as np
import pandas
import pytest
from sklearn import metrics as reference

import invented
import test_advice
from thaw.evaluation import calibration
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import scores
from thaw.words import answer_text


def drawn(sharpness: float, rows: int = 4000, classes: int = 4):
    """Return probabilities whose logits are so many times the true ones, and labels drawn from the true ones."""
    rng = np.random.default_rng(1)
    logits = 2 * rng.standard_normal((rows, classes))
    true = calibration.at_temperature(np.exp(logits), 1.0)
    gold = (true.cumsum(1) > rng.random((rows, 1))).argmax(1)
    return calibration.at_temperature(true, 1 / sharpness), gold


def error_by_loop(probabilities, gold) -> float:
    """Return the expected calibration error, bin by bin."""
    total = 0.0
    for bin in range(calibration.BINS):
        low, high = bin / calibration.BINS, (bin + 1) / calibration.BINS
        mine = [n for n, row in enumerate(probabilities) if low <= max(row) < high or (high == 1 and max(row) == 1)]
        if mine:
            right = np.mean([np.argmax(probabilities[n]) == gold[n] for n in mine])
            total += len(mine) / len(gold) * abs(right - np.mean([max(probabilities[n]) for n in mine]))
    return total


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_measures_are_those_of_scikit_learn_and_of_a_plain_loop(sharpness):
    probabilities, gold = drawn(sharpness, rows=500)
    assert calibration.expected_error(probabilities, gold) == pytest.approx(error_by_loop(probabilities, gold))
    labels = list(range(4))
    assert calibration.log_loss(probabilities, gold) == pytest.approx(
        reference.log_loss(gold, probabilities, labels=labels)
    )
    assert calibration.brier(probabilities, gold) == pytest.approx(
        reference.brier_score_loss(gold, probabilities, labels=labels, scale_by_half=False)
    )


def test_selective_risk_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])  # confidence: first, second, third, last
    assert calibration.selective_risk(probabilities, np.array([0, 0, 0, 1])) == pytest.approx(
        (0 + 1 / 2 + 1 / 3 + 1 / 4) / 4
    )


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_temperature_is_the_one_that_the_logits_were_divided_by(sharpness):
    probabilities, gold = drawn(sharpness)
    assert calibration.temperature(probabilities, gold) == pytest.approx(sharpness, rel=0.05)
    made = calibration.Calibration.of([(probabilities, gold)] * 2, [(probabilities, gold)] * 2)
    assert made.bad == (sharpness != 1.0) and made.tempered < 2 * made.usual


def test_a_probability_of_zero_and_one_are_finite():
    probabilities, gold = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 1])
    assert np.isfinite([calibration.log_loss(probabilities, gold), calibration.temperature(probabilities, gold)]).all()
    assert calibration.expected_error(probabilities, gold) == pytest.approx(1 / 3)


def test_few_rows_of_true_probabilities_are_not_called_bad():
    probabilities, gold = drawn(1.0, rows=100)
    assert not calibration.Calibration.of([(probabilities, gold)], [(probabilities, gold)]).bad


@pytest.mark.parametrize(("share", "bad"), [(0.999, True), (0.96, False)])
def test_an_answer_says_it_of_what_is_taken(tmp_path, share, bad):
    frame = test_advice.runs_of(tmp_path, {("frozen", "base"): 0.6, ("full", "base"): 0.9 if bad else 0.96})
    for folder in set(frame["folder"]):
        path = tmp_path / folder / "predictions.parquet"
        predicted = pandas.read_parquet(path)
        yes = np.where(predicted["prediction"] == "yes", share, 1 - share)
        predicted.assign(probabilities=list(np.stack([1 - yes, yes], 1).astype("float32"))).to_parquet(path)
    answer = test_advice.answer_of(tmp_path, frame)
    assert answer.decision.taken == "full" and set(answer.calibration) == {"frozen", "full"}
    said = [line for line in answer_text.reasons(answer) if "calibration" in line or "softmax" in line]
    assert len(said) == 2 * bad and answer.calibration["frozen"].bad
    spec = invented.shown("main_table", "strategy_table", intervals=True)
    scored = {row.key["strategy"]: row.records[0] for row in scores.build(OutputData(tmp_path, frame), spec).rows}
    for name, made in answer.calibration.items():
        (column,) = (column for column in scored[name] if column.endswith(".test.error"))
        assert scored[name][column] == made.error, "the table of scores says it of each strategy"
    if bad:
        assert answer.calibration["full"].error == pytest.approx(0.1, abs=0.02) and " on test " in said[0]


def test_a_temperature_is_told_where_it_helps_and_enough_rows_chose_it():
    sharp, right = drawn(3.0), np.array([[0.9, 0.1]] * 40)
    assert calibration.Calibration.of([sharp], [sharp]).mended
    few = [(part[0][:20], part[1][:20]) for part in (sharp,)]
    assert not calibration.Calibration.of([sharp], few).mended
    all_right = calibration.Calibration.of([(right, np.arange(40) % 2)], [(right, np.zeros(40, int))])
    assert all_right.bad and not all_right.mended, "of rows that are all right the temperature is the limit"
