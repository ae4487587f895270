"""What all figures share: style, a grid of panels, one mark per strategy, labels that do not overlap, fixed bytes.

Colours are seaborn's palette for colour-blind readers; every strategy has its own marker shape too, so that a figure
prints in grey. Sizes are inches, at the width of a page's text (7 in), where the fonts are 7 to 9 points.
"""

import contextlib
import itertools
import math

from thaw.records import replacing

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p", "h")
PANEL = (2.3, 2.15)
GREY = "#6b7280"
NEAR = 8
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 8,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#3b3f45",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "thaw",
}


@contextlib.contextmanager
def panels(titles: list[str], legend_rows: int = 1):
    """Give a figure and one axes per title, at most three in a row (four make two rows of two); close it at the end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    wide = {1: 1, 2: 2, 4: 2}.get(len(titles), 3)
    high = math.ceil(len(titles) / wide)
    size = (PANEL[0] * wide if wide == 3 else 3.2 * wide, (PANEL[1] + 0.55) * high + 0.25 * legend_rows)
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(high, wide, figsize=size, squeeze=False, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
        for axis, title in zip(axes.flat, titles, strict=False):
            axis.set_title(title, loc="left", fontweight="bold")
        for axis in axes.flat[len(titles) :]:
            axis.remove()
        try:
            yield figure, list(axes.flat[: len(titles)])
        finally:
            pyplot.close(figure)


def marks(strategies) -> dict[str, tuple]:
    """Return {strategy: (colour, marker)}, by its place among the experiment's strategies."""
    import seaborn

    names = list(dict.fromkeys(strategies))
    colours = seaborn.color_palette("colorblind", n_colors=len(names))
    return {name: (colours[i], MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)}


def legend(figure, handles) -> None:
    """Put one legend below all panels, in as few rows as fit, read row by row (matplotlib fills columns)."""

    def width(per_row: int) -> float:
        longest = [max(len(handle.get_label()) for handle in handles[i::per_row]) for i in range(per_row)]
        return sum(0.57 + 0.06 * letters for letters in longest)

    fitting = (count for count in range(len(handles), 1, -1) if width(count) <= figure.get_figwidth())
    per_row = next(fitting, 1)
    by_column = [handle for column in range(per_row) for handle in handles[column::per_row]]
    place = {"loc": "outside lower center", "ncols": per_row}
    figure.legend(handles=by_column, frameon=False, handletextpad=0.5, columnspacing=1.5, **place)


def save(figure, prefix) -> None:
    """Write a figure as PDF, SVG and PNG, without a date, so that equal content means equal bytes."""
    bare = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
    for kind, metadata in bare.items():
        with replacing(f"{prefix}.{kind}") as temporary:
            figure.savefig(temporary, format=kind, metadata=metadata, dpi=220, facecolor="white")


def label_points(axis, points: list[tuple[float, float]], texts: list[str], path=()) -> None:
    """Write a text beside each point, where it covers no other text, point, or the line through `path`.

    Greedy: each text takes the cheapest of the places around its point, the widest text first. A thin line leads
    to its point where a text had to move away. Call it when limits and layout are final.
    """
    figure = axis.get_figure()
    figure.canvas.draw()
    scale = figure.dpi / 72
    centres = [axis.transData.transform(point) for point in points]
    taken = [_square(x, y, 4 * scale) for x, y in centres]
    corners = [axis.transData.transform(corner) for corner in path]
    taken += [box for a, b in itertools.pairwise(corners) for box in _beads(a, b, scale)]
    frame, look = axis.get_window_extent(), {"fontsize": 7, "ha": "center", "va": "center", "linespacing": 0.95}
    widest = sorted(range(len(texts)), key=lambda i: -max(map(len, texts[i].split("\n"))))
    for point, centre, text in ((points[i], centres[i], texts[i]) for i in widest):
        label = axis.annotate(text, point, color="#30353b", zorder=6, **look)
        extent = label.get_window_extent()
        places = _places(centre, extent.width, extent.height, scale)
        box, distance = min(places, key=lambda place: _cost(place, centre, taken, frame, scale))
        label.anncoords = "offset points"
        label.xyann = tuple(((box.min + box.max) / 2 - centre) / scale)
        taken.append(box)
        if distance > NEAR:
            end = _nearest(box, centre)
            taken += _beads(centre, end, scale)
            line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
            offset = tuple((end - centre) / scale)
            axis.annotate("", point, xytext=offset, textcoords="offset points", arrowprops=line)


def _square(x: float, y: float, half: float):
    """Return a box around a point, in pixels."""
    from matplotlib.transforms import Bbox

    return Bbox.from_bounds(x - half, y - half, 2 * half, 2 * half)


def _beads(start, end, scale: float) -> list:
    """Return small boxes along a straight line, in pixels: what a text should not cover."""
    count = max(2, int(math.dist(start, end) / (3 * scale)))
    return [_square(*(start + (end - start) * i / count), scale) for i in range(1, count)]


def _nearest(box, centre):
    """Return the point of a box that is nearest to a centre, as an array."""
    return centre.clip(box.min, box.max)


def _places(centre, width: float, height: float, scale: float):
    """Yield (box, distance in points) of the places for a text around a point, in pixels, near ones first."""
    from matplotlib.transforms import Bbox

    for distance in (5, NEAR, 13, 19, 26, 34, 44, 56):
        for step in range(16):
            dx, dy = math.cos(math.pi * step / 8), math.sin(math.pi * step / 8)
            left = centre[0] + dx * (distance * scale + width / 2) - width / 2
            low = centre[1] + dy * (distance * scale + height / 2) - height / 2
            yield Bbox.from_bounds(left, low, width, height), distance


def _cost(place, centre, taken, frame, scale: float) -> float:
    """Return how bad a place is: what it covers, or has outside the frame, counts far more than its distance."""
    box, distance = place
    beads = _beads(centre, _nearest(box, centre), scale) if distance > NEAR else []
    covered = sum(_overlap(part, other) for part in (box, *beads) for other in taken)
    outside = sum(max(0.0, gap) for gap in (frame.x0 - box.x0, box.x1 - frame.x1, frame.y0 - box.y0, box.y1 - frame.y1))
    return covered / scale**2 + 20 * outside / scale + 0.5 * distance


def _overlap(a, b) -> float:
    """Return the area that two boxes share."""
    wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
    return wide * high if wide > 0 and high > 0 else 0.0
