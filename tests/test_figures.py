"""Figures: the tables' numbers, equal bytes, what stands in a panel and in the legend, on the invented results."""

import csv
import io

import matplotlib
import numpy as np
import pandas
import pytest

import invented
import scored_runs
from thaw.outputs.figures import cost_front, figure_style, layer_curve, panels, strategy_panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import scores
from thaw.papers import students


def with_a_gap(frame):
    """Return a frame in which the full run of `odd` is missing, as `collect` writes it."""
    gone, frame = (frame["task"] == "odd") & (frame["strategy"] == "full"), frame.copy()
    frame.loc[gone, ["value", "train_seconds", "flops", "extraction_seconds"]] = float("nan")
    frame.loc[gone, "missing"] = "not run"
    return frame


@pytest.fixture(scope="module")
def layers(invented_frame):
    """The layer figure, with a gap, as matplotlib holds it."""
    data = OutputData("", with_a_gap(invented_frame))
    return layer_curve.build(data, invented.shown("figure", "layer_figure")).drawn


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("kind", [layer_curve, cost_front])
def test_figures_have_the_tables_numbers(invented_frame, kind):
    made = kind.build(OutputData("", invented_frame), invented.shown("figure", "a_figure"))
    numbers = {(row["task"], row["strategy"], row["variant"]): row for row in made.records}
    for row in scores.build(OutputData("", invented_frame), invented.shown("main", "strategy_table")).groups[0].rows:
        for task, cell in zip(invented.TASKS, row.cells, strict=True):
            assert float(numbers[task, row.key["strategy"], row.key["variant"]]["mean"]) == pytest.approx(
                cell.value, abs=1e-4
            )


def test_layouts_of_ones_own_matplotlibrc_change_no_figure(invented_frame, tmp_path, monkeypatch):
    monkeypatch.setattr(panels, "METADATA", {"svg": panels.METADATA["svg"]})
    spec = invented.shown("figure", "a_figure")
    for name, own in (("one", {}), ("two", {"figure.autolayout": True, "savefig.bbox": "tight"})):
        with matplotlib.rc_context(own):
            layer_curve.build(OutputData("", invented_frame), spec).write(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_cost_may_be_that_of_a_prediction_and_results_without_it_are_not_drawn(invented_frame):
    frame, spec = invented_frame.copy(), invented.shown("figure", "cost_figure") | {"cost": "inference"}
    assert frame["inference_flops"].isna().all(), "the invented records are from before predictions were counted"
    frame["inference_flops"] = (100.0 + frame["thawed"].fillna(0.0)).where(frame["strategy"] != "full")
    made = cost_front.build(OutputData("", frame), spec)
    rows = {(row["task"], row["strategy"], row["variant"]): row for row in csv.DictReader(io.StringIO(made.csv))}
    assert float(rows["odd", "top_k", "k01"]["inference"]) == 101
    assert (rows["odd", "full", "base"]["inference"], rows["odd", "full", "base"]["pareto"]) == ("", "False")
    assert rows["odd", "frozen", "base"]["pareto"] == "True", "nothing is cheaper"


def test_cost_may_be_the_number_of_trained_parameters(invented_frame):
    frame, spec = invented_frame.copy(), invented.shown("figure", "cost_figure") | {"cost": "parameters"}
    frame["trained_parameters"] = 1000.0 * (1 + frame["thawed"].fillna(0.0))
    made = cost_front.build(OutputData("", frame), spec)
    rows = [row for row in csv.DictReader(io.StringIO(made.csv)) if row["task"] == "odd"]
    assert {float(row["parameters"]) for row in rows} == {1000.0 * (1 + int(row["thawed"])) for row in rows}
    ordered = sorted(rows, key=lambda row: (float(row["parameters"]), -float(row["mean"])))
    assert ordered[0]["pareto"] == "True" and {row["pareto"] for row in rows} == {"True", "False"}


def test_what_stands_beside_the_runs_is_in_the_legend_once_and_what_is_far_below_is_a_note(layers):
    names = legend(layers)
    assert len(names) == len(set(names))
    assert {"Bag of words", "Cosine similarity (no training)", "Random weights, frozen", "All full"} < set(names)
    notes = [text.get_text() for text in layers.axes[0].texts]
    assert notes[0] == "↓ Majority class 0.0" and "Majority class" not in names


def test_a_missing_run_is_a_sign_at_its_panel_and_in_the_legend(layers):
    titles = [axis.get_title(loc="left") for axis in layers.axes]
    assert titles == ["Entities\nSYNTHETIC", "R&D_50% ‡"] and "A run is missing" in legend(layers)


def test_a_task_without_any_score_has_no_panel(invented_frame):
    frame = invented_frame.copy()
    frame.loc[(frame["task"] == "odd") & (frame["kind"] == "run"), "value"] = float("nan")
    found = aggregate.summarise(frame, "test", {})
    assert [column.task for _, column, _ in strategy_panels.task_panels(found, invented.LABELS)] == ["entities"]


def fronts_of(frame, task: str) -> list[str]:
    """Return what the CSV of the cost figure has on the front of a task."""
    made = cost_front.build(OutputData("", frame), invented.shown("cost", "cost_figure"))
    rows = [row for row in csv.DictReader(io.StringIO(made.csv)) if row["task"] == task]
    return [row["strategy"] + row["variant"] for row in rows if row["pareto"] == "True"]


def test_the_pareto_front_has_what_nothing_that_is_shown_beats(invented_frame):
    assert fronts_of(invented_frame, "odd") == ["frozenbase", "top_kk01", "top_kk03"]
    frame = invented_frame.copy()
    main = (frame["task"] == "odd") & frame["main"].astype(bool)
    frame.loc[main & (frame["variant"] == "k03") & (frame["role"] == "validation"), "value"] = 0.0
    assert fronts_of(frame, "odd") == fronts_of(invented_frame, "odd"), "validation is not shown"
    frame.loc[main & (frame["strategy"] == "full") & (frame["role"] == "test"), "value"] = 0.999
    assert fronts_of(frame, "odd") == [*fronts_of(invented_frame, "odd"), "fullbase"]


def test_each_point_has_the_interval_that_tables_print(tmp_path):
    frame = scored_runs.write(tmp_path, {("frozen", "base"): 0.6, ("full", "base"): 0.9})
    frame["price_seconds"] = frame["strategy"].map({"frozen": 1.0, "full": 50.0})
    spec = invented.shown("cost", "cost_figure", intervals=True)
    made = cost_front.build(OutputData(tmp_path, frame), spec)
    table = scores.build(OutputData(tmp_path, frame), invented.shown("main", "strategy_table", intervals=True))
    bars = [line.get_ydata() for line in made.drawn.axes[0].get_lines() if line.get_zorder() == 3]
    for row, cell, bar in zip(
        csv.DictReader(io.StringIO(made.csv)), [row.cells[0] for row in table.groups[0].rows], bars, strict=True
    ):
        assert (cell.low, cell.high) == pytest.approx((float(row["ci_low"]), float(row["ci_high"]))) == tuple(bar)
    assert "95 % CI" in legend(made.drawn)


def test_nothing_of_a_figure_of_one_panel_is_cut_off(invented_frame):
    frame = invented_frame[invented_frame["task"] == "odd"]
    named = {"strategies": invented.LABELS["strategies"] | {"full": "Full fine-tuning (Lee et al.)"}}
    less = invented.shown("less", "layer_figure") | {"minus": "full", "labels": invented.LABELS | named}
    for kind, spec in ((cost_front, invented.shown("cost", "cost_figure")), (layer_curve, less)):
        figure = kind.build(OutputData("", frame), spec).drawn
        (axis,) = figure.axes
        boxes = [part.get_window_extent() for part in (*figure.legends, axis.xaxis.label, axis.yaxis.label)]
        low, high = np.min([box.min for box in boxes], axis=0), np.max([box.max for box in boxes], axis=0)
        assert (low >= 0).all() and (high <= figure.bbox.max).all(), (kind, low, high, figure.bbox.max)


def test_each_strategy_has_a_mark_of_its_own():
    marks = figure_style.marks([f"strategy{i}" for i in range(12)])
    assert len(set(marks.values())) == 12 == len({marker for _, marker in marks.values()})


def test_equal_scores_have_bars_of_no_length_and_an_axis_of_some_points(invented_frame):
    """The mean of three is rounded, and may lie outside of them."""
    score = 0.016
    third = invented_frame[invented_frame["seed"] == 1].assign(seed=3)
    frame = pandas.concat([invented_frame, third]).assign(value=score)
    assert pandas.Series([100 * score] * 3).mean() != 100 * score
    points = frame.loc[frame["strategy"] == "top_k", ["encoder", "strategy", "variant"]].drop_duplicates()
    kept = [cell | {"layers": 1} for cell in points.to_dict("records")]
    spec = invented.shown("figure", "student_figure") | {"reference": "full", "students": kept}
    axes = students.build_curve(OutputData("", frame), spec).drawn.axes
    assert any(axis.containers for axis in axes)
    layers = layer_curve.build(OutputData("", frame), invented.shown("figure", "layer_figure")).drawn
    assert all(np.ptp(axis.get_ylim()) >= layer_curve.LEAST_SPAN for axis in layers.axes)


def test_bars_forgive_rounding_and_nothing_more():
    middle, low, high = (pandas.Series(values) for values in ([1.0, 2, 3, 0], [1 + 1e-12, 1, 4, np.nan], [1, 5, 5, 2]))
    below, above = panels.bars(middle, low, high)
    assert below.tolist()[:3] == [0, 1, -1] and np.isnan(below[3]) and above.tolist() == [0, 3, 2, 2]
