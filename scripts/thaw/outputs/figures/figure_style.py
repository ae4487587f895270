"""The look of all figures: style, a grid of panels, one mark per strategy, one legend below all panels.

Colours are seaborn's palette "colorblind"; every strategy has its own marker shape too, so that a figure
prints in grey. Sizes are inches, at the width of a page's text (7 in), where the fonts are 7 to 9 points.
"""

import math
import textwrap
from typing import Any

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p", "h")
PANEL = (2.3, 2.15)
DPI = 220  # of PNG, and of the layout: widths of letters are rounded to whole dots, so that at fewer others result
MOST = 24  # panels of a figure, which is two pages of a paper; nobody reads more, and 200 take a minute to draw
AXIS_WIDTH = 0.5  # share of a panel's width that the vertical axis and its label take
LETTERS = 14  # of a title, to the inch
MARK, LETTER = 0.57, 0.06  # inches of an entry of a legend: its mark with the space around it, and each letter
GREY = "#6b7280"
BROKEN = ((0, (4, 3)), (0, (1, 1.5)), (0, (7, 2, 1, 2)), (0, (9, 3)), (0, (3, 1.5, 1, 1.5, 1, 1.5)))
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
    "figure.autolayout": False,  # whatever a user's matplotlibrc says of layouts: `freeze_layout` works them out
    "figure.constrained_layout.use": False,
    "savefig.bbox": "standard",
}


def style():
    """Return a context in which figures are drawn and written in Thaw's style."""
    import matplotlib

    return matplotlib.rc_context(STYLE)


def per_row(panels: int) -> int:
    """Return how many panels are in a row: at most three, and four make two rows of two."""
    return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def grid(titles: list[str], wide: int | None = None):
    """Return a figure and one axes per title, `wide` in a row, by default as many as `per_row` says."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    wide = wide or per_row(len(titles))
    high = math.ceil(len(titles) / wide)
    width = PANEL[0] if wide == 3 else 3.2
    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06)
    figure = Figure(figsize=(width * wide, (PANEL[1] + 0.55) * high), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.subplots(high, wide, squeeze=False)
    for axis, title in zip(axes.flat, titles, strict=False):
        lines = [textwrap.fill(line, int(LETTERS * (width - AXIS_WIDTH))) for line in title.splitlines()]
        axis.set_title("\n".join(lines), loc="left", fontweight="bold", y=1.0)  # a given height spares a search for it
    for axis in axes.flat[len(titles) :]:
        axis.remove()
    return figure, list(axes.flat[: len(titles)])


def marks(strategies) -> dict[Any, tuple]:
    """Return {strategy: (colour, marker)}, by its position among the experiment's strategies."""
    import seaborn

    names = list(dict.fromkeys(strategies))
    colours = seaborn.color_palette("colorblind", n_colors=len(names)).as_hex()
    return {name: (colours[i], MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)}


def legend(figure, handles) -> None:
    """Put one legend below all panels, in as few rows as fit, read row by row (matplotlib fills columns).

    The figure becomes higher by what the legend takes. A label wider than the figure is broken into lines.
    """
    for handle in handles:
        handle.set_label(textwrap.fill(handle.get_label(), int((figure.get_figwidth() - MARK) / LETTER)))

    def width(per_row: int) -> float:
        longest = [max(len(handle.get_label()) for handle in handles[i::per_row]) for i in range(per_row)]
        return sum(MARK + LETTER * letters for letters in longest)

    fitting = (count for count in range(len(handles), 1, -1) if width(count) <= figure.get_figwidth())
    per_row = next(fitting, 1)
    by_column = [handle for column in range(per_row) for handle in handles[column::per_row]]
    room = (
        0.1
        + 0.19 * math.ceil(len(handles) / per_row)
        + 0.13 * sum(handle.get_label().count("\n") for handle in handles)
    )
    figure.set_figheight(figure.get_figheight() + room)
    position = {"loc": "outside lower center", "ncols": per_row}
    figure.legend(handles=by_column, frameon=False, handletextpad=0.5, columnspacing=1.5, **position)


def freeze_layout(figure) -> None:
    """Fix the layout where it is not, so that later additions move nothing and all formats share it.

    Nothing is drawn. No layout engine stays, since matplotlib draws a figure that has one twice for each file.
    """
    if layout := figure.get_layout_engine():
        layout.execute(figure)
        figure.set_layout_engine(None)
