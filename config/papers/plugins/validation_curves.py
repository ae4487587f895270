"""Figure: the score on validation while training, by updates (Howard and Ruder 2018, figure 4)."""

from thaw.declarations.output_kind import OutputKind

FIGURES = {
    "validation_figure": OutputKind(
        "thaw.papers.validation_curves:build",
        "score on validation while training, by updates, a panel for each task, a line for each strategy",
    ),
}


import math
from functools import partial
from pathlib import Path

from thaw.core.errors import UserError
from thaw.outputs.figures import panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.probe_frame import Names
from thaw.outputs.frame.runs_frame import in_role
from thaw.outputs.frame.sanity_flags import notes_of
from thaw.words import wording

CELL = ["task", "subset", "encoder", "head"]
LINE = ["strategy", "variant"]


def build(data, spec: dict) -> panels.Figure:
    """Return a panel for each task, subset, encoder and head, a line for each point of a strategy.

    A line is the mean over seeds, its band goes from the lowest to the highest; a run that ended early is in it
    until then.
    Raises UserError where no run scored validation twice while it trained.
    """
    frame = curves(data)
    if frame.empty:
        raise UserError(
            "a validation_figure needs runs that score validation in training: evaluations: in a phase, or patience"
        )
    names, marks = Names(spec, frame), panels.marks_of_lines(frame, LINE)
    columns = {
        column.task: column
        for column in aggregate.columns(aggregate.summarise(data.runs, "validation", spec["order"]), spec["labels"])
    }
    drawn, cells = [], frame.groupby(CELL, sort=False)
    for cell, rows in sorted(cells, key=lambda pair: list(columns).index(pair[0][0])):
        column, several = columns[cell[0]], names.several(rows.iloc[0], *CELL[1:])
        draw = partial(_lines, rows=rows, marks=marks, metric=column.metric)
        drawn.append(panels.Panel("\n".join([column.title, *several]), draw))
    legend = [panels.entry(wording.strategy_name(spec["labels"], *line), mark) for line, mark in marks.items()]
    return panels.compose(drawn, frame, legend + panels.band_entry(frame, deviation=False))


def curves(data):
    """Return a row for each line and update at which some seed was scored: mean, low, high, and how many seeds."""
    import pandas

    runs, rows = data.runs, []
    shown = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & in_role(runs, "validation")]
    for run in shown[shown["missing"] == ""].to_dict("records"):
        points = validation_curve(data.folder(run), run["metric"])
        if len(points) > 1:
            key = {name: run[name] for name in [*CELL, *LINE]}
            rows += [key | {"update": update, "value": value} for update, value in points]
    table = pandas.DataFrame(rows, columns=[*CELL, *LINE, "update", "value"])
    groups = table.groupby([*CELL, *LINE, "update"], sort=False)["value"]
    return groups.agg(mean="mean", low="min", high="max", seeds="count").reset_index()


def validation_curve(folder: Path, metric: str) -> list[tuple[float, float]]:
    """Return (update, score x 100) of a run's evaluations on validation; none where a convex solver fitted it."""
    notes = notes_of(folder)
    if not notes or "epoch" not in notes[0]:
        return []
    done, last, points = 0.0, notes[0], []
    for note in notes:  # each phase counts its updates from 0
        done += float(last["step"]) if note["phase"] != last["phase"] else 0.0
        last = note
        if score := note.get(f"validation_{metric}"):
            points.append((done + float(note["step"]), 100 * float(score)))
    return [(update, score) for update, score in points if math.isfinite(score)]


def _lines(axis, rows, marks: dict, metric: str) -> None:
    for line, part in rows.sort_values("update").groupby(LINE, sort=False):
        panels.curve(axis, part["update"], part, marks[line], alpha=0.12)
    axis.set_xlabel("Updates")
    axis.set_ylabel(f"{metric} × 100, validation")
