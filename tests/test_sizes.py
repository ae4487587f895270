"""The figure of sizes: what is put together, what is drawn, on the invented results at several sizes."""

import pandas
import pytest

import invented
from thaw.core.errors import UserError
from thaw.outputs.figures import learning_curve
from thaw.outputs.frame.output_data import OutputData

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
