"""The skeleton of every figure: records become a frame, its rows panels; then one legend, and the numbers behind it.

A module of a figure says what its rows are and what a panel shows, and hands both to `compose`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from thaw.core.files import atomic_write, write_text
from thaw.outputs.figures import figure_style
from thaw.outputs.render.typed_table import plain, to_csv, write_output
from thaw.words import wording

ROUNDING = 1e-9  # points: the mean of equal scores may differ from them in its last digits
METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}  # no date: equal bytes
REFERENCE: dict[str, Any] = {"color": figure_style.GREY, "linestyle": figure_style.BROKEN[0], "linewidth": 0.9}


@dataclass
class Figure:
    """A figure as matplotlib holds it, and the numbers behind it.

    points: of what a reader may point at the record, and the place in per cent of the picture, left and top. failed:
    why it could not be drawn.
    """

    drawn: object
    records: list[dict]
    points: list[dict] = field(default_factory=list)
    failed: str = ""

    @property
    def csv(self) -> str:
        return to_csv(self.records)

    def write(self, prefix) -> None:
        """Write JSON, CSV, PDF, PNG and SVG under a path prefix; equal content gives equal bytes."""
        write_output(f"{prefix}.json", {"records": self.records, "points": self.points, "failed": self.failed})
        write_text(f"{prefix}.csv", self.csv)
        with figure_style.style():
            figure_style.freeze_layout(self.drawn)  # once for all forms
            for kind in METADATA:
                write_picture(self.drawn, f"{prefix}.{kind}")


def write_picture(figure, path) -> None:
    """Write a figure of matplotlib that is laid out as one file. Args: the file, which ends in .pdf, .svg or .png."""
    kind = Path(path).suffix.removeprefix(".")
    with figure_style.style(), atomic_write(path) as temporary:
        figure.savefig(temporary, format=kind, metadata=METADATA[kind], dpi=figure_style.DPI, facecolor="white")


@dataclass(frozen=True)
class Panel:
    """A panel: its title, what draws it on an axes, and what writes on it once the layout is final.

    Drawing may return what a reader may point at: across, up, and the number of its record.
    """

    title: str
    draw: Callable
    label: Callable | None = None


def compose(
    panels: list[Panel],
    frame,
    legend=(),
    wide: int | None = None,
    size: tuple | None = None,
    colours: str = "",
    digits: int = 4,
) -> Figure:
    """Return the figure of some panels: the first ones where there are too many to read, which it says below them.

    Args: frame, the numbers behind it; entries of the legend, to which the lines of panels are added that have a label;
    how many panels are in a row; the figure's width and a row's height in inches; the name of the colours that all
    panels share; decimals of the numbers.
    """
    every, panels = len(panels), panels[: figure_style.MOST]
    with figure_style.style():
        figure, axes = figure_style.grid([panel.title for panel in panels], wide)
        if size:
            figure.set_size_inches(size[0], size[1] * axes[0].get_gridspec().nrows)
        marks = [(axis, *mark) for axis, panel in zip(axes, panels, strict=True) for mark in panel.draw(axis) or ()]
        if colours:
            figure.colorbar(axes[-1].images[-1], ax=axes, shrink=0.8, aspect=30).set_label(colours)
        left_out = [entry(f"The first {len(panels)} of {every} panels; the CSV has all", linestyle="none")]
        lines = [line for axis in axes for line in axis.get_lines() if not line.get_label().startswith("_")]
        labelled = {line.get_label(): line for line in lines}
        if entries := [*legend, *labelled.values(), *left_out * (every > len(panels))]:
            figure_style.legend(figure, entries)
        if marks or any(panel.label for panel in panels):
            figure_style.freeze_layout(figure)
        for axis, panel in zip(axes, panels, strict=True):
            if panel.label:
                panel.label(axis)
    return Figure(figure, plain(frame.round(digits).to_dict("records")), [_point(*mark) for mark in marks])


def _point(axis, across: float, up: float, number: int) -> dict:
    """Return the place of a mark in per cent of the picture. Args: its coordinates; the number of its record."""
    left, bottom = axis.get_figure().transFigure.inverted().transform(axis.transData.transform((across, up)))
    return {"record": number, "left": round(100 * left, 2), "top": round(100 - 100 * bottom, 2)}


def grouped(frame, columns: list[str], title: Callable[[dict], str], draw: Callable) -> list[Panel]:
    """Return a panel for each value of some columns of a frame. Args: what names it; what draws (axis, cell, rows)."""
    cells = [(dict(zip(columns, key, strict=True)), rows) for key, rows in frame.groupby(columns, sort=False)]
    return [Panel(title(cell), partial(draw, cell=cell, rows=rows)) for cell, rows in cells]


def entry(label: str, mark: tuple = (None, ""), **look):
    """Return an entry of a legend. Args: its text; a colour and a marker; what else a line of matplotlib takes."""
    from matplotlib.lines import Line2D

    with figure_style.style():  # the width of a line and the size of a mark are taken from it here and now
        return Line2D([], [], label=label, **({"color": mark[0], "marker": mark[1]} | look))


def hollow_entry(label: str):
    return entry(label, (figure_style.GREY, "o"), markerfacecolor="white", linestyle="none")


def band_entry(frame, deviation: bool, drawn: str = "Band") -> list:
    """Return the entry of a legend that says what bands over seeds are; none where there is one seed.

    Args: a frame with `seeds`; whether from three seeds on they are mean ± standard deviation, as of `over_seeds`, and
    not the range; what is drawn.
    """
    from matplotlib.patches import Patch

    seeds = int(frame["seeds"].max())
    over = "mean ± sd" if deviation and seeds >= 3 else "range"
    return [Patch(facecolor="#9ca3af", alpha=0.4, label=f"{drawn}: {over} of {seeds} seeds")] if seeds > 1 else []


def marks_of_lines(frame, columns: list[str]) -> dict[tuple, tuple]:
    """Return {line: (colour, marker)}. Args: the columns of a frame whose values make a line."""
    lines = list(frame[columns].drop_duplicates().itertuples(index=False))
    return dict(zip(lines, figure_style.marks(map(" ".join, lines)).values(), strict=True))


def curve(axis, x, rows, mark: tuple, columns=("mean", "low", "high"), alpha: float = 0.2) -> None:
    """Draw a line with marks over a band. Args: columns, of the frame `rows`: heights, and both ends of the band."""
    middle, low, high = columns
    axis.plot(x, rows[middle], color=mark[0], marker=mark[1], zorder=4)
    axis.fill_between(x, rows[low], rows[high], color=mark[0], alpha=alpha, linewidth=0)


def layer_axis(axis, layers: int) -> None:
    axis.set_xlabel("Layer; 0: embeddings")
    axis.set_xticks(layer_ticks(layers))


def layer_ticks(layers: int) -> list[int]:
    """Return the layers that are named on an axis of 0 to L."""
    return list(range(0, layers + 1, 1 if layers <= 6 else 2 if layers <= 12 else 4))


def bars(middle, low, high) -> list:
    """Return the lengths of error bars below and above values; where rounding alone makes one negative it is 0."""
    return [length.mask(length.between(-ROUNDING, 0), 0.0) for length in (middle - low, high - middle)]


def log_axis(axis, steps: tuple = (1.0, 2.0, 5.0)) -> None:
    """Make the horizontal axis logarithmic, with plain numbers. Args: what of each power of ten has a number."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=steps))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: wording.short(value)))
    axis.xaxis.set_minor_formatter(NullFormatter())


def head_grid(axis, rows, values: str, **look) -> None:
    """Draw a map of layers and heads. Args: values, the column of `rows` that is shown."""
    grid = rows.pivot(index="layer", columns="head", values=values)
    axis.imshow(grid.to_numpy(), cmap="viridis", aspect="auto", origin="lower", **look)
    axis.grid(False)
    axis.set_yticks(range(len(grid)), [int(layer) for layer in grid.index])
    axis.set_xlabel("Head")
    axis.set_ylabel("Layer")
