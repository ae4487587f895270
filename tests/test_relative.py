"""Relative quality beside the difference and the chance-corrected ratio, and none where the full model is at chance."""

import csv
import io

import numpy as np
import pandas
import pytest

import invented
import scored_runs
from thaw.core.errors import UserError
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import relative, writers


def drawn(folder, rates: dict, chance: float):
    """Return the table for runs that predict right at these rates, its runs, and what its lines say.

    Args: chance, how often the majority class is right.
    """
    tested = with_majority(scored_runs.write(folder, rates | {("majority", "base"): chance}))
    spec = invented.shown("r", "relative_table", reference="full")
    table = relative.build(OutputData(folder, tested), spec)
    return table, tested, list(csv.DictReader(io.StringIO(writers.to_csv(table))))


def with_majority(tested):
    """Return runs with the columns of a summary; of those of the majority class one, as a baseline."""
    tested = tested.assign(main=True, role="test", optimizer="adamw", synthetic=False)
    for name in ("extraction_seconds", "extraction_whole_seconds", "train_seconds", "after_seconds", "flops"):
        tested[name] = 0.0
    tested = tested.assign(after_flops=0.0, peak_memory_mb=0.0, trained_parameters=0.0, thawed=0, embeddings=False)
    said = tested["strategy"] == "majority"
    majority = tested[said][:1].assign(kind="baseline", encoder="", head="")
    return pandas.concat([tested[~said], majority], ignore_index=True)


def score(tested, strategy: str) -> float:
    """Return the mean score x 100 of a strategy."""
    return 100 * tested.loc[tested["strategy"] == strategy, "value"].mean()


def test_the_three_numbers_by_hand(tmp_path):
    table, tested, (line,) = drawn(tmp_path, {("top_k", "k01"): 0.8, ("full", "base"): 0.9}, 0.6)
    one, full, chance = (score(tested, name) for name in ("top_k", "full", "majority"))
    due = [one - full, 100 * one / full, 100 * (one - chance) / (full - chance)]
    assert [float(line[key]) for key in ("difference", "relative", "corrected")] == pytest.approx(due, abs=1e-3)
    assert float(line["corrected_low"]) < due[2] < float(line["corrected_high"]) < 100 and line["above_chance"] == "1"
    assert table.groups[0].rows[0].cells[0].text.count(" %") == 2 and len(table.notes) == 1


def test_strategies_are_compared_over_the_seeds_that_both_have(tmp_path):
    rates = {("top_k", "k01"): 0.8, ("full", "base"): 0.9}
    table, tested, _ = drawn(tmp_path, rates, 0.6)
    lacking = tested[~((tested["strategy"] == "full") & (tested["seed"] > 3))]
    spec = invented.shown("r", "relative_table", reference="full")
    (line,) = csv.DictReader(io.StringIO(writers.to_csv(relative.build(OutputData(tmp_path, lacking), spec))))
    first = tested[(tested["kind"] == "run") & (tested["seed"] <= 3)].groupby("strategy")["value"].mean() * 100
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


def test_chance_is_drawn_with_the_rows(tmp_path):
    """The interval is that of three scores on the same draws of the rows, the majority's among them."""
    table, tested, (line,) = drawn(tmp_path, {("top_k", "k01"): 0.8, ("full", "base"): 0.9}, 0.7)
    data = OutputData(tmp_path, tested)
    one, full, chance = (
        data.predictions.resampled([(100.0, tested[tested["strategy"] == name])], "accuracy", "test").draws
        for name in ("top_k", "full", "majority")
    )
    ends = np.quantile(100 * (one - chance) / (full - chance), [0.025, 0.975])
    assert [float(line["corrected_low"]), float(line["corrected_high"])] == pytest.approx(ends, abs=1e-3)


def test_chance_of_draws_together_is_their_mean(tmp_path):
    _, tested, _ = drawn(tmp_path, {("top_k", "k01"): 0.8, ("full", "base"): 0.9}, 0.7)
    majority = tested[tested["kind"] == "baseline"]
    both = pandas.concat([tested, majority.assign(value=majority["value"] - 0.2)], ignore_index=True)
    spec = invented.shown("r", "relative_table", reference="full")
    (line,) = csv.DictReader(io.StringIO(writers.to_csv(relative.build(OutputData(tmp_path, both), spec))))
    assert float(line["chance"]) == pytest.approx(score(tested, "majority") - 10, abs=1e-3)
