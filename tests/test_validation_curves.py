"""The figure of validation while training: the numbers behind it."""

import pytest

import invented
import scored_runs
from thaw.core.errors import UserError
from thaw.outputs.frame.output_data import OutputData
from thaw.papers import validation_curves

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
