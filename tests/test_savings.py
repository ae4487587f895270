"""The claim of ten times: what a frozen encoder costs beside the full model."""

import pandas
import pytest

import invented
from thaw.core.errors import UserError
from thaw.outputs.figures import figure_style
from thaw.outputs.frame.output_data import OutputData
from thaw.papers import speedup

SPEC = invented.shown("savings", "saving_figure", reference="full")


def test_the_ratio_by_hand(invented_frame):
    found = speedup.savings(invented_frame, "full").set_index(["task", "strategy"])
    assert list(found.index) == [("entities", "frozen"), ("odd", "frozen")]
    row = found.loc["entities", "frozen"]
    # 90 s in full, 2 s for the head, and a share of the one pass of 6 s, between all that read a boundary of it
    (share,) = invented_frame.query("task == 'entities' and strategy == 'frozen'")["extraction_seconds"].unique()
    assert 0 < share < 6 and row["ratio"] == pytest.approx(90 / (2 + share))
    assert row["seeds"] == 2 and row["low"] == row["high"] == row["ratio"]


def test_bars_are_over_seeds_and_the_ratio_is_that_of_the_means(invented_frame):
    frame = invented_frame.copy()
    frame.loc[(frame["strategy"] == "full") & (frame["seed"] == 2), "price_seconds"] = 30.0
    row = speedup.savings(frame, "full").set_index("task").loc["entities"]
    head = row["price"]
    assert (row["low"], row["ratio"], row["high"]) == pytest.approx((30 / head, 60 / head, 90 / head))


def test_the_figure_and_its_numbers(invented_frame, tmp_path):
    speedup.build(OutputData("", invented_frame), SPEC).write(tmp_path / "savings")
    assert list(pandas.read_csv(tmp_path / "savings.csv")["whole"]) == [90, 90]
    with pytest.raises(UserError, match="needs runs of all_of_it"):
        speedup.build(OutputData("", invented_frame), SPEC | {"reference": "all_of_it"})


def test_panels_that_are_not_drawn_take_no_room(invented_frame, monkeypatch):
    frame = pandas.concat([invented_frame, invented_frame.assign(subset="half")])
    two = speedup.build(OutputData("", frame), SPEC).drawn
    monkeypatch.setattr(figure_style, "MOST", 1)
    one = speedup.build(OutputData("", frame), SPEC).drawn
    assert (len(two.axes), len(one.axes)) == (2, 1)
    assert one.get_figheight() < 0.7 * two.get_figheight()
