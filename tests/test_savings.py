"""The claim of ten times: what a frozen encoder costs beside the full model, with extraction whole and shared."""

import pandas
import pytest

import invented
from thaw.core.errors import UserError
from thaw.outputs.figures import figure_style, speedup
from thaw.outputs.frame.output_data import OutputData

SPEC = invented.shown("savings", "saving_figure", reference="full")


def test_the_ratio_by_hand(invented_frame):
    found = speedup.savings(invented_frame, "full").set_index(["task", "strategy"])
    assert list(found.index) == [("entities", "frozen"), ("odd", "frozen")]
    row = found.loc["entities", "frozen"]
    # 90 s in full, 2 s for the head, 6 s for the one pass: whole, or between all that read a boundary of it
    (share,) = invented_frame.query("task == 'entities' and strategy == 'frozen'")["extraction_seconds"].unique()
    assert 0 < share < 6 and row["alone"] == pytest.approx(90 / 8) and row["shared"] == pytest.approx(90 / (2 + share))
    assert row["seeds"] == 2 and row["low_alone"] == row["high_alone"] == row["alone"]


def test_bars_are_over_seeds_and_the_ratio_is_that_of_the_means(invented_frame):
    frame = invented_frame.copy()
    frame.loc[(frame["strategy"] == "full") & (frame["seed"] == 2), "train_seconds"] = 30.0
    row = speedup.savings(frame, "full").set_index("task").loc["entities"]
    assert (row["low_alone"], row["alone"], row["high_alone"]) == pytest.approx((30 / 8, 60 / 8, 90 / 8))


def test_the_figure_and_its_numbers(invented_frame, tmp_path):
    speedup.build(OutputData("", invented_frame), SPEC).write(tmp_path / "savings")
    assert list(pandas.read_csv(tmp_path / "savings.csv")["alone"])[0] == 11.25
    with pytest.raises(UserError, match="needs runs of all_of_it"):
        speedup.build(OutputData("", invented_frame), SPEC | {"reference": "all_of_it"})


def test_panels_that_are_not_drawn_take_no_room(invented_frame, monkeypatch):
    frame = pandas.concat([invented_frame, invented_frame.assign(subset="half")])
    two = speedup.build(OutputData("", frame), SPEC).drawn
    monkeypatch.setattr(figure_style, "MOST", 1)
    one = speedup.build(OutputData("", frame), SPEC).drawn
    assert (len(two.axes), len(one.axes)) == (2, 1)
    assert one.get_figheight() < 0.7 * two.get_figheight()
