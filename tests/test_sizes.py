"""The figures of sizes and of validation while training: what is put together, and the numbers behind them."""

import pandas
import pytest

import invented
import scored_runs
from thaw.core.errors import UserError
from thaw.outputs.figures import learning_curve
from thaw.outputs.frame.output_data import OutputData
from thaw.papers import validation_curves

SPEC = invented.shown("sizes", "size_figure")


def at(frame, rows: int, draw: int, more: float):
    """Return the frame as if it had been trained on so many rows, its scores by `more` higher."""
    return frame.assign(subset=f"n{rows}_d{draw}", train_rows=rows, value=frame["value"] + more)


@pytest.fixture(scope="module")
def frame(invented_frame):
    shifts = [(100, 1, -0.2), (100, 2, -0.1), (1000, 1, 0.0)]
    return pandas.concat([at(invented_frame, *shift) for shift in shifts], ignore_index=True)


def test_draws_and_seeds_are_put_together(frame):
    found = learning_curve.sizes(frame, SPEC).set_index(["task", "strategy", "variant", "train_rows"])
    small, large = (found.loc["entities", "top_k", "k03", rows] for rows in (100, 1000))
    assert (small["runs"], large["runs"]) == (4, 2) and small["mean"] == pytest.approx(large["mean"] - 15)
    assert (small["low"], small["high"]) == pytest.approx((61, 72))
    assert found.loc["entities", "stack_then_finetune", "base", 100]["price"] > 80, "with the run before it"


def test_the_figure_has_the_numbers_of_each_size(frame):
    numbers = pandas.DataFrame(learning_curve.build(OutputData("", frame), SPEC).records)
    assert set(numbers["train_rows"]) == {100, 1000} and "all_full" not in set(numbers["strategy"])


def test_scores_on_training_rows_have_hollow_marks_and_are_in_the_numbers(frame):
    tests = frame[(frame["role"] == "test") & (frame["kind"] == "run")]
    trained = tests.assign(role="train", split="train", value=0.99)
    whole = pandas.concat([frame[frame["role"] != "train"], trained])
    figure = learning_curve.build(OutputData("", whole), SPEC | {"train": True})
    axis = figure.drawn.get_axes()[0]
    hollow = [line for line in axis.get_lines() if line.get_markerfacecolor() == "none"]
    assert hollow and all(set(line.get_ydata()) == {99.0} for line in hollow)
    numbers = pandas.DataFrame(figure.records)
    assert set(numbers["split"]) > {"train"} and (numbers.loc[numbers["split"] == "train", "mean"] == 99).all()
    plain = learning_curve.build(OutputData("", whole), SPEC)
    assert not [line for line in plain.drawn.get_axes()[0].get_lines() if line.get_markerfacecolor() == "none"]


def test_one_size_is_no_curve(invented_frame):
    with pytest.raises(UserError, match="needs several sizes"):
        learning_curve.build(OutputData("", invented_frame), SPEC)


CURVES = {"top_k": [0.70, 0.74, 0.78], "full": [0.70, 0.80, 0.79]}  # validation at three updates, of every seed


def data_of(folder) -> OutputData:
    """Return six seeds of three strategies, two of which scored validation while they trained."""
    runs = scored_runs.write_scores(folder, dict.fromkeys(("frozen", *CURVES), [70.0] * 6))
    runs = runs.assign(role="validation", split="validation")
    for row in runs[runs["strategy"].isin(list(CURVES))].itertuples():
        lines = [f"1,1,{10 * n},0.1,1e-4,{score}" for n, score in enumerate(CURVES[row.strategy], 1)]
        text = "\n".join(["phase,epoch,step,loss,rate,validation_accuracy", *lines])
        (folder / row.folder / "history.csv").write_text(text)
    return OutputData(folder, runs)


def test_a_curve_is_the_mean_over_seeds_at_each_update(tmp_path):
    data = data_of(tmp_path)
    frame = validation_curves.curves(data)
    mine = frame[frame["strategy"] == "full"]
    assert mine["update"].tolist() == [10.0, 20.0, 30.0] and set(mine["seeds"]) == {6}
    assert mine["mean"].tolist() == pytest.approx([70, 80, 79])
    assert set(frame["strategy"]) == set(CURVES), "a convex fit has no curve"
    figure = validation_curves.build(data, invented.shown("f", "validation_figure"))
    assert [axis.get_title("left") for axis in figure.drawn.get_axes()] == ["R&D_50%"]
    assert len(figure.records) == len(frame)


def test_a_curve_counts_the_updates_of_all_phases(tmp_path):
    lines = ["phase,epoch,step,loss,rate,validation_mcc", "1,1,5,0.9,0.1,", "1,1,10,0.7,0.1,0.25", "2,1,4,0.5,0.1,0.5"]
    (tmp_path / "history.csv").write_text("\n".join(lines))
    assert validation_curves.validation_curve(tmp_path, "mcc") == [(10, 25), (14, 50)]
    (tmp_path / "history.csv").write_text("phase,l2,step,loss,validation_mcc\n1,0.1,3,0.5,0.2\n")
    assert validation_curves.validation_curve(tmp_path, "mcc") == [], "a convex fit has no epochs"


def test_runs_without_scores_on_the_way_are_no_curves(tmp_path):
    data = data_of(tmp_path)
    frozen = OutputData(tmp_path, data.runs[data.runs["strategy"] == "frozen"])
    with pytest.raises(UserError, match="a validation_figure needs runs that score validation in training"):
        validation_curves.build(frozen, invented.shown("f", "validation_figure"))
