"""The figures: each goal beside what was measured, and how cost grows, on logarithmic axes."""

from pathlib import Path

from thaw.outputs.figures.figure_style import GREY, MARKERS, grid, legend, style
from thaw.outputs.figures.panels import write_pictures

LINES = {"ours": "o", "default": "s", "tuned_side_by_side": "D", "boundary_loop": "^"}
NAMES = {
    "ours": "Thaw",
    "default": "Trainer, defaults",
    "tuned_side_by_side": "Trainer, tuned",
    "boundary_loop": "torch loop, states in memory",
}


def goals(summary: dict, named: dict, prefix: Path) -> None:
    """Draw what was measured as a dot and what is to be reached as a bar, one line a goal; write SVG, PNG and PDF."""
    measured = {key: summary[key] for key in named if summary[key]}
    with style():
        figure, (axis,) = grid(["Measured (dot) and goal (bar)"], 1)
        figure.set_size_inches(7, 0.34 * max(len(measured), 2) + 0.8)
        for place, (key, value) in enumerate(reversed(measured.items())):
            goal = named[key][0]
            axis.plot([goal, goal], [place - 0.3, place + 0.3], color=GREY, linewidth=2)
            axis.plot(value, place, MARKERS[0], color="C0" if summary["goals"][key]["met"] else "C3")
            axis.annotate(f"{value:.3g}", (value, place), xytext=(5, 4), textcoords="offset points")
        axis.set_yticks(range(len(measured)), [named[key][1] for key in reversed(measured)])
        axis.set_xscale("log")
        axis.set_xlabel("times as fast, or share")
        write_pictures(figure, prefix)


def growth(found: dict[str, dict], prefix: Path) -> None:
    """Draw seconds against examples, layers, seeds and strategies; write SVG, PNG and PDF."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    with style():
        figure, axes = grid([f"More {axis}" for axis in found])
        handles = {}
        for axis, (name, one) in zip(axes, found.items(), strict=True):
            for i, (side, seconds) in enumerate(one["seconds"].items()):
                (line,) = axis.plot(one["points"], seconds, f"{LINES[side]}-", color=f"C{i}", label=NAMES[side])
                handles[side] = line
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.grid(axis="y")
            axis.set_xlabel(f"n, the number of {name}")
            axis.set_ylabel("seconds from start to end")
            axis.set_xticks(one["points"], [str(point) for point in one["points"]])
            axis.minorticks_off()
        legend(figure, list(handles.values()))
        write_pictures(figure, prefix)
