"""A table of students: their teacher's score, their own alone and taught, the share that they keep, layers and cost."""

from thaw.declarations import output_options as options
from thaw.declarations.output_kind import Addition, OutputKind, Requirement

TABLES = {
    "student_table": OutputKind(
        "thaw.papers.students:build",
        "students, alone and with a teacher: score and share of the full model's by task, layers kept, price, "
        "bytes and operations of a prediction",
        options.ReferenceSplitOptions,
        needs=(Requirement.FULL_AND_STUDENT,),
        adds=(Addition.STUDENTS,),
    ),
}

FIGURES = {
    "student_figure": OutputKind(
        "thaw.papers.students:build_curve",
        "score against the number of layers that a student keeps, a panel for each task, a line for each way of making "
        "one; the full model as a broken line",
        options.ReferenceSplitOptions,
        needs=(Requirement.FULL_AND_STUDENT,),
        adds=(Addition.STUDENTS,),
    ),
}


from functools import partial

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.encoders.parameter_counts import parameter_counts
from thaw.outputs.figures import figure_style, panels, strategy_panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, said
from thaw.words import wording


def build(data, spec: dict) -> Table:
    """Return a line for the full model and for each student: score and share kept by task, layers and costs.

    Args: spec with `reference`, the strategy that trains everything, and `students`, the points that are one: encoder,
    strategy, variant, layers, and taught_by, the strategy of its teacher (empty for a student alone). Raises UserError
    where an experiment has none with a result.
    """
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    labels, columns = spec["labels"], aggregate.columns(summary, spec["labels"])
    groups = []
    for group, name in aggregate.group_names(summary, labels).items():
        mine = aggregate.runs_of(summary, group)
        sizes = parameter_counts(data.results / layout.folder("fetch", {"encoder": group[1]}))
        points = _points(spec, group[1], sizes.layers)
        full = mine[mine["strategy"] == spec["reference"]].set_index(["task", "split"])["mean"].to_dict()
        rows = []
        for (strategy, variant), point in points.items():
            own = mine[(mine["strategy"] == strategy) & (mine["variant"] == variant) & mine["mean"].notna()]
            if own.empty:
                continue
            size = 4 * (sizes.embeddings + point["layers"] * sizes.in_layers / max(1, sizes.layers))
            shown = aggregate.row_name(next(own.itertuples()), labels)
            records = [_record(row, point, size, full.get((row.task, row.split))) for row in own.itertuples()]
            rows.append(Row(shown, _cells(own, columns, full, size, point), records))
        groups += [Group(name, rows)] if len(rows) > 1 else []
    if not groups:
        raise UserError("a student_table needs results of the full model and of a student")
    titles = [*(column.title for column in columns), "Taught", "Layers", "Price", "MB", "MFLOPs"]
    whole = wording.label(labels, "strategies", spec["reference"])
    notes = [
        f"Score × 100, in brackets in % of {whole}. Taught: trained towards a teacher's outputs. Layers: those kept. "
        "Price: medians over seeds, with those of the teacher and of its outputs. MB: of the encoder's "
        "weights in fp32, without the head; a layer counts with the mean of all. MFLOPs: operations of one prediction, "
        "the mean over test examples. Prices and MFLOPs are means over tasks.",
    ]
    return Table.of_spec(spec, titles, groups, notes)


def _record(row, point: dict, size: float, whole: float | None) -> dict:
    """Return what the CSV says of a point on a task. Args: bytes of its encoder; the full model's score."""
    record = {name: getattr(row, name) for name in (*aggregate.GROUP, "strategy", "variant")}
    record |= {"taught_by": point["taught_by"], "layers": point["layers"], "bytes": round(size)}
    record |= {name: getattr(row, name) for name in (*aggregate.COLUMN, "metric", "seeds")}
    record |= {"score": row.mean, "full": whole, "kept": _kept(row.mean, whole)}
    return record | {"price": row.price, "mflops": row.inference / 1e6}


def _points(spec: dict, encoder: str, layers: int) -> dict[tuple[str, str], dict]:
    """Return what is known of each point that is shown: the full model, then the students of an encoder in order."""
    students = {
        (point["strategy"], point["variant"]): point for point in spec["students"] if point["encoder"] == encoder
    }
    return {(spec["reference"], "base"): {"layers": layers, "taught_by": ""}} | students


def _cells(rows, columns, full: dict, size: float, point: dict) -> list[Cell | None]:
    """Return the cells of a line: score with the share kept by task; whether it was taught, layers, and three costs."""
    cells: list[Cell | None] = [None] * len(columns)
    for row in rows.itertuples():
        kept = _kept(row.mean, full.get((row.task, row.split)))
        share = "" if kept is None else f" ({kept:.1f} %)"
        at = aggregate.column_index(columns, row.task, row.split)
        cells[at] = said(wording.number(row.mean) + share, row.mean, runs=int(row.seeds), link=row_anchor(row))
    facts = [said("yes" if point["taught_by"] else wording.DASH), Cell(point["layers"], digits=0)]
    costs = rows.drop_duplicates("task")[["price", "inference"]].mean()  # a task with two test splits counts once
    numbers = [Cell(costs["price"], "s"), Cell(size / 1e6), Cell(costs["inference"] / 1e6, digits=0)]
    return cells + facts + numbers


def _kept(score: float, full: float | None) -> float | None:
    """Return a score in % of the full model's, None where that is not above 0."""
    return 100 * score / full if full is not None and full > 0 else None


def build_curve(data, spec: dict) -> panels.Figure:
    """Return the score against the layers kept, a panel for each task; the full model is a broken line.

    Args: spec with `reference` and `students`.
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
