"""Figures at a glance: readings of pairs, names next to points, colours, and points that the report finds."""

import csv
import io
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex

import invented
from thaw.outputs.figures import cost_front, figure_style, layer_curve, learning_curve
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.report import output_files, seen_in_figures

COST, LAYERS = (invented.shown("a", kind) for kind in ("cost_figure", "layer_figure"))


def marks(axis, gid: str) -> list:
    return [line for line in axis.get_lines() if (line.get_gid() or "").startswith(gid)]


def test_a_bi_encoder_is_a_hollow_mark_where_others_are_cross_encoders(invented_frame):
    for kind, spec in ((cost_front, COST), (layer_curve, LAYERS)):
        figure = kind.build(OutputData("", invented_frame), spec).drawn
        entities, odd = figure.axes
        faces = [to_hex(line.get_markerfacecolor()) for line in marks(odd, "points")]
        assert faces.count("#ffffff") == 1, "the frozen encoder alone reads texts one by one"
        assert "#ffffff" not in [to_hex(line.get_markerfacecolor()) for line in marks(entities, "points")]
        assert "Hollow: bi-encoder" in [text.get_text() for text in figure.legends[0].get_texts()]


def joined(figure) -> list[list[list[float]]]:
    """Return the number of layers at both ends of each line that joins two points, by panel."""
    lines = [[line for line in axis.get_lines() if line.get_marker() == "None"] for axis in figure.axes]
    return [[list(map(float, line.get_xdata())) for line in part if line.get_linestyle() == "-"] for part in lines]


def test_a_line_joins_only_points_that_read_pairs_alike(invented_frame):
    assert [
        ends for ends in joined(layer_curve.build(OutputData("", invented_frame), LAYERS).drawn)[1] if 3.0 in ends
    ] == [[1.0, 3.0]]
    frame = invented_frame.copy()
    frame.loc[(frame["task"] == "odd") & (frame["variant"] == "k01"), "pairs"] = "separate"
    changed = joined(layer_curve.build(OutputData("", frame), LAYERS).drawn)
    assert [1.0, 3.0] in changed[0] and [1.0, 3.0] not in changed[1]


def test_points_have_their_names_next_to_them_while_they_are_few(invented_frame, monkeypatch):
    figure = cost_front.build(OutputData("", invented_frame), COST).drawn
    texts = [text.get_text() for text in figure.axes[0].texts if text.get_text()]
    assert sorted(texts) == ["Frozen", "Full", "Stack", "Top k (k = 1)", "k = 3"]
    assert not {"Full", "Stack"} & {text.get_text() for text in figure.legends[0].get_texts()}
    monkeypatch.setattr(cost_front, "NAMED", dict.fromkeys(cost_front.NAMED, 3))
    figure = cost_front.build(OutputData("", invented_frame), COST).drawn
    assert sorted(text.get_text() for text in figure.axes[0].texts if text.get_text()) == ["k = 1", "k = 3"]
    assert {"Full", "Stack"} < {text.get_text() for text in figure.legends[0].get_texts()}


def test_a_strategy_has_one_colour_in_every_figure(invented_frame):
    colours = {name: mark[0] for name, mark in figure_style.marks(invented.LABELS["strategies"]).items()}
    frame = invented_frame[invented_frame["strategy"] != "frozen"]
    sizes = learning_curve.sizes(frame.assign(train_rows=1000), LAYERS)
    for (kind, strategy, _), (_, colour, *_) in learning_curve._lines_of(sizes, LAYERS).items():
        assert kind != "run" or colour == colours[strategy]
    numbers = list(csv.DictReader(io.StringIO((made := cost_front.build(OutputData("", frame), COST)).csv)))
    for line in marks(made.drawn.axes[0], "points"):
        assert to_hex(line.get_color()) == colours[numbers[int(line.get_gid().split(".")[1])]["strategy"]]


@pytest.mark.parametrize("kind", ["cost_figure", "layer_figure"])
def test_the_report_finds_each_point_of_a_picture(invented_frame, tmp_path, kind):
    module = {"cost_figure": cost_front, "layer_figure": layer_curve}[kind]
    figure = module.build(OutputData("", invented_frame), invented.shown("a", kind))
    figure.write(tmp_path / "figure")
    svg, numbers = (tmp_path / "figure.svg").read_text(), (tmp_path / "figure.csv").read_text()
    found = output_files.points(svg, numbers, invented.LABELS)
    assert len(found) == 2 * len(invented.POINTS) and len({point["anchor"] for point in found}) == len(found)
    width, height = figure.drawn.get_size_inches() * figure.drawn.dpi
    axis = figure.drawn.axes[1]
    rows = list(csv.DictReader(io.StringIO(numbers)))
    for line in marks(axis, "points"):
        for n, place in zip(line.get_gid().split(".")[1:], axis.transData.transform(line.get_xydata()), strict=True):
            expected = (100 * place[0] / width, 100 - 100 * place[1] / height)
            strategy, variant = rows[int(n)]["strategy"], rows[int(n)]["variant"]
            own = next(p for p in found if p["anchor"] == f"odd.run.all.tiny.linear.{strategy}.{variant}")
            assert np.allclose((own["left"], own["top"]), expected, atol=0.1)
    top = next(point for point in found if point["anchor"] == "odd.run.all.tiny.linear.top_k.k03")
    assert re.match(r"Top k \(k = 3\), R&D_50%: 76\.5; 4\d\ss, ", top["text"])
    assert ("Pareto" in top["text"]) == (kind == "cost_figure")


def test_a_large_picture_is_packed_until_it_is_asked_for(monkeypatch):
    assert output_files.picture(b"<svg/>")["image"].startswith("data:image/svg+xml;base64,")
    monkeypatch.setattr(output_files, "ON_DEMAND", 3)
    packed = output_files.picture(b"<svg/>")
    assert packed["image"] == "" and packed == output_files.picture(b"<svg/>")


def test_below_a_figure_is_said_what_is_seen(invented_frame):
    numbers = cost_front.build(OutputData("", invented_frame), COST).csv
    assert seen_in_figures.sentence("cost_figure", numbers, invented.LABELS) == (
        "On the front: Entities: Frozen, Top k (k = 1) and Top k (k = 3); "
        "R&D_50%: Frozen, Top k (k = 1) and Top k (k = 3)."
    )
    numbers = layer_curve.build(OutputData("", invented_frame), LAYERS).csv
    assert seen_in_figures.sentence("layer_figure", numbers, invented.LABELS) == (
        "Top k: from k = 1 to k = 3 the mean rises in 2 of 2 panels (Entities +10.0, R&D_50% +10.0)."
    )
    assert seen_in_figures.sentence("size_figure", numbers, invented.LABELS) == ""
