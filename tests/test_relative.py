"""Relative quality beside the difference and the chance-corrected ratio, and none where the full model is at chance."""

import csv
import io

import pandas
import pytest

import invented
import scored_runs
from thaw.core.errors import UserError
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import relative, writers


def drawn(folder, rates: dict, chance: float):
    """Return the table for runs that predict right at these rates, and what their lines say."""
    tested = scored_runs.write(folder, rates).assign(main=True, role="test", optimizer="adamw", synthetic=False)
    for name in ("extraction_seconds", "extraction_whole_seconds", "train_seconds", "after_seconds", "flops"):
        tested[name] = 0.0
    tested = tested.assign(after_flops=0.0, peak_memory_mb=0.0, trained_parameters=0.0, thawed=0, embeddings=False)
    spec = invented.shown("r", "relative_table", reference="full")
    table = relative.build(OutputData(folder, and_majority(tested, chance)), spec)
    return table, tested, list(csv.DictReader(io.StringIO(writers.to_csv(table))))


def and_majority(tested, chance: float):
    """Return runs, and the baseline that says what chance is."""
    majority = tested[:1].assign(kind="baseline", strategy="majority", encoder="", head="", value=chance)
    return pandas.concat([tested, majority], ignore_index=True)


def test_the_three_numbers_by_hand(tmp_path):
    table, tested, (line,) = drawn(tmp_path, {("top_k", "k01"): 0.8, ("full", "base"): 0.9}, 0.6)
    one, full = (100 * tested.loc[tested["strategy"] == name, "value"].mean() for name in ("top_k", "full"))
    due = [one - full, 100 * one / full, 100 * (one - 60) / (full - 60)]
    assert [float(line[key]) for key in ("difference", "relative", "corrected")] == pytest.approx(due, abs=1e-3)
    assert float(line["corrected_low"]) < due[2] < float(line["corrected_high"]) < 100 and line["above_chance"] == "1"
    assert table.groups[0].rows[0].cells[0].text.count(" %") == 2 and len(table.notes) == 1


def test_strategies_are_compared_over_the_seeds_that_both_have(tmp_path):
    rates = {("top_k", "k01"): 0.8, ("full", "base"): 0.9}
    table, tested, _ = drawn(tmp_path, rates, 0.6)
    lacking = and_majority(tested[~((tested["strategy"] == "full") & (tested["seed"] > 3))], 0.6)
    spec = invented.shown("r", "relative_table", reference="full")
    (line,) = csv.DictReader(io.StringIO(writers.to_csv(relative.build(OutputData(tmp_path, lacking), spec))))
    first = tested[tested["seed"] <= 3].groupby("strategy")["value"].mean() * 100
    assert line["seeds"] == "3" and float(line["difference"]) == pytest.approx(first["top_k"] - first["full"], abs=1e-3)


def test_at_chance_there_is_the_difference_alone(tmp_path):
    table, _, (line,) = drawn(tmp_path, {("top_k", "k01"): 0.5, ("full", "base"): 0.6}, 0.6)
    assert (line["above_chance"], line["relative"], line["corrected"]) == ("0", "", "")
    assert "%" not in table.groups[0].rows[0].cells[0].text
    assert table.notes[-1] == "No ratios where Full is not clearly above chance: R&D_50%."
    with pytest.raises(UserError, match="needs runs of full"):
        drawn(tmp_path, {("top_k", "k01"): 0.5}, 0.6)


def test_no_ratios_of_classes_without_chance(tmp_path):
    rates = {("top_k", "k01"): 0.8, ("full", "base"): 0.9}
    _, tested, _ = drawn(tmp_path, rates, 0.6)
    spec = invented.shown("r", "relative_table", reference="full")
    table = relative.build(OutputData(tmp_path, tested[tested["kind"] == "run"]), spec)
    assert "%" not in table.groups[0].rows[0].cells[0].text
    assert table.notes[-1] == "No ratios where the score of the majority class is missing: R&D_50%."
    (line,) = csv.DictReader(io.StringIO(writers.to_csv(table)))
    assert (line["chance"], line["above_chance"], line["relative"]) == ("", "0", "")
