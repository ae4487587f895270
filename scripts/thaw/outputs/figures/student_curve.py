"""Figure: score against the number of layers that a student keeps, a line for each way of making one."""

from functools import partial

from thaw.outputs import wording
from thaw.outputs.figures import figure_style, panels, strategy_panels
from thaw.outputs.frame import aggregate


def build(data, spec: dict) -> panels.Figure:
    """Return the score against the layers kept, a panel for each task; the full model is a broken line.

    Args: spec with `reference` and `students`, as for thaw.outputs.tables.students.
    """
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    layers = {(one["encoder"], one["strategy"], one["variant"]): one["layers"] for one in spec["students"]}
    keys = zip(summary["encoder"], summary["strategy"], summary["variant"], strict=True)
    summary = summary.assign(layers=[layers.get(key) for key in keys])
    students = summary[summary["layers"].notna()]
    marks = strategy_panels.strategy_marks(students, spec)
    drawn = []
    for title, column, rows in strategy_panels.task_panels(summary, spec["labels"]):
        draw = partial(_panel, rows=rows, marks=marks, whole=spec["reference"], name=f"{column.metric} × 100")
        drawn.append(panels.Panel(title, draw))
    line = panels.entry(
        wording.label(spec["labels"], "strategies", spec["reference"]),
        (figure_style.GREY, None),
        linestyle="--",
    )
    legend = [*strategy_panels.legend(students, spec, marks), line]
    return panels.compose(drawn, strategy_panels.numbers(students, ["layers"]), legend)


def _panel(axis, rows, marks: dict, whole: str, name: str) -> None:
    """Draw the students of a task, with the range over seeds, and the full model's mean."""
    for strategy, (colour, marker) in marks.items():
        points = rows[(rows["strategy"] == strategy) & rows["mean"].notna()].sort_values("layers")
        if not points.empty:
            bars = panels.bars(points["mean"], points["low"], points["high"])
            axis.errorbar(
                points["layers"], points["mean"], yerr=bars, color=colour, marker=marker, markersize=5, elinewidth=0.8
            )
    for score in rows.loc[(rows["strategy"] == whole) & rows["mean"].notna(), "mean"]:
        axis.axhline(score, color=figure_style.GREY, linestyle="--", linewidth=0.9, zorder=1)
    shown = sorted({int(n) for n in rows["layers"].dropna()})
    axis.set_xticks(shown, [str(n) for n in shown])
    axis.set_xlabel("Layers kept")
    axis.set_ylabel(name)
    axis.margins(x=0.12, y=0.12)
