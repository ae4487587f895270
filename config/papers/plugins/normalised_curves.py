"""Figure: scores by layer on a scale of their own for each task, pretrained and adapted side by side.

As in figure 1 of Peters et al. 2019: a panel for the pretrained encoder and for each strategy, a line for each task.
"""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import OF_PROBES, OutputKind

FIGURES = {
    "normalised_figure": OutputKind(
        "thaw.papers.normalised_curves:build",
        "scores of linear probes by layer, each task on a scale of its own, pretrained and adapted side by side",
        options.SplitOptions,
        **OF_PROBES,
    ),
}


from functools import partial

from thaw.outputs import wording
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.figures.probe_curves import points
from thaw.outputs.frame.printed_names import Names
from thaw.outputs.frame.probe_frame import run_names

SCALED = ("scaled_mean", "scaled_low", "scaled_high")


def build(data, spec: dict) -> panels.Figure:
    """Return scores by layer, each task from 0, its lowest mean of all panels, to 1, its highest."""
    frame = scaled(points(data.probes, spec["split"])[0], spec["labels"])
    runs = run_names(data.probes, spec["labels"])
    names = Names(spec, frame, runs)
    titles = [
        "; ".join([names.of("run", row["run"]), *names.several(row, "subset", "encoder", "probe")])
        for row in frame.to_dict("records")
    ]
    frame = frame.assign(panel=titles)
    marks = figure_style.marks(frame["line"])

    def draw(axis, rows) -> None:
        for line, part in rows.groupby("line", sort=False):
            panels.curve(axis, part["layer"], part, marks[line], SCALED, alpha=0.15)
        axis.set_ylim(-0.1, 1.1)
        panels.layer_axis(axis, int(frame["layer"].max()))
        axis.set_ylabel("Score, lowest 0, highest 1")

    shown = [title for run in runs for title in dict.fromkeys(frame.loc[frame["run"] == run, "panel"])]
    drawn = [panels.Panel(title, partial(draw, rows=frame[frame["panel"] == title])) for title in shown]
    legend = [panels.entry(line, mark) for line, mark in marks.items()] + panels.band_entry(frame, deviation=True)
    return panels.compose(drawn, frame.drop(columns=["line", "panel"]), legend)


def scaled(frame, labels: dict):
    """Return the rows of `points` with `scaled_` columns, and the name of each one's line: its task and measure.

    A task is scaled over all its layers and encoders of one probe; where nothing differs, it is 0.
    """
    groups = frame.groupby(["task", "subset", "measure", "probe"], sort=False)["mean"]
    low = groups.transform("min")
    span = groups.transform("max") - low
    for name in SCALED:
        frame[name] = ((frame[name.removeprefix("scaled_")] - low) / span.where(span > 0)).fillna(0.0)
    tasks = [wording.task_name(labels, task) for task in frame["task"]]
    frame["line"] = [
        f"{task} ({wording.metric_name(labels, measure)})"
        for task, measure in zip(tasks, frame["measure"], strict=True)
    ]
    return frame
