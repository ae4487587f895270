"""Figures at a glance: readings of pairs, names next to points, colours, and points that the report finds."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex

import invented
from thaw.decision.record import read_output
from thaw.outputs.figures import cost_front, figure_style, layer_curve, learning_curve
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.report import shown_outputs

COST, LAYERS = (invented.shown("a", kind) for kind in ("cost_figure", "layer_figure"))


def marks(axis) -> list:
    """Return the lines of a panel that are marks of points and no line."""
    return [line for line in axis.get_lines() if line.get_marker() not in ("None", "", None)]


def test_a_bi_encoder_is_a_hollow_mark_where_others_are_cross_encoders(invented_frame):
    for kind, spec in ((cost_front, COST), (layer_curve, LAYERS)):
        figure = kind.build(OutputData("", invented_frame), spec).drawn
        entities, odd = figure.axes
        faces = [to_hex(line.get_markerfacecolor()) for line in marks(odd)]
        assert faces.count("#ffffff") == 1, "the frozen encoder alone reads texts one by one"
        assert "#ffffff" not in [to_hex(line.get_markerfacecolor()) for line in marks(entities)]
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
    made = cost_front.build(OutputData("", frame), COST)
    for line in marks(made.drawn.axes[0]):
        (one,) = (row for row in made.records if row["task"] == "entities" and row["price"] == line.get_xdata()[0])
        assert to_hex(line.get_color()) == colours[one["strategy"]]


@pytest.mark.parametrize("kind", ["cost_figure", "layer_figure"])
def test_the_report_finds_each_point_of_a_picture(invented_frame, tmp_path, kind):
    module = {"cost_figure": cost_front, "layer_figure": layer_curve}[kind]
    figure = module.build(OutputData("", invented_frame), invented.shown("a", kind))
    figure.write(tmp_path / "figure")
    content = read_output(tmp_path / "figure.json")
    found = shown_outputs.points(content, invented.LABELS)
    assert len(found) == 2 * len(invented.POINTS) and len({point["anchor"] for point in found}) == len(found)
    width, height = figure.drawn.get_size_inches() * figure.drawn.dpi
    axis = figure.drawn.axes[1]
    drawn = [place for line in marks(axis) for place in axis.transData.transform(line.get_xydata())]
    expected = sorted((100 * place[0] / width, 100 - 100 * place[1] / height) for place in drawn)
    own = sorted((point["left"], point["top"]) for point in found if point["task"] == "odd")
    assert np.allclose(own, expected, atol=0.1)
    for point in content["points"]:
        row = content["records"][point["record"]]
        assert any(p["left"] == point["left"] and f".{row['strategy']}.{row['variant']}" in p["anchor"] for p in found)
    top = next(point for point in found if point["anchor"] == "odd.run.all.tiny.linear.top_k.k03")
    assert re.match(r"Top k \(k = 3\), R&D_50%: 76\.5; 4\d\ss, ", top["text"])
    assert ("Pareto" in top["text"]) == (kind == "cost_figure")


def test_a_large_picture_is_packed_until_it_is_asked_for(monkeypatch):
    assert shown_outputs.picture(b"<svg/>")["image"].startswith("data:image/svg+xml;base64,")
    monkeypatch.setattr(shown_outputs, "ON_DEMAND", 3)
    packed = shown_outputs.picture(b"<svg/>")
    assert packed["image"] == "" and packed == shown_outputs.picture(b"<svg/>")
