"""Figure: expected best validation score against the number of search trials."""

from collections.abc import Iterator
from functools import partial

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.declarations.needs import NEEDS
from thaw.outputs.figures import label_placement, panels, strategy_panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.runs_frame import CELL
from thaw.statistics.aggregation import expected_maximum
from thaw.words import wording

HEADER = ["task", "subset", "encoder", "head", "strategy", "variant", "metric", "seeds", "trials", "expected"]


def build(data, spec: dict) -> panels.Figure:
    """Return the expected best score of 1, 2, ... trials, a panel per task, a line per search.

    Raises UserError if no run has a search of its own.
    """
    import pandas

    curves = expected(data)
    if not curves:
        raise UserError("a trial_figure needs a strategy with a search: of its own")
    summary = aggregate.summarise(data.runs, "validation", spec["order"])
    summary = summary[[key in curves for key in summary[CELL].itertuples(index=False, name=None)]]
    marks, drawn = strategy_panels.strategy_marks(summary, spec), []
    for title, column, rows in strategy_panels.task_panels(summary, spec["labels"]):
        lines = [(row, curves[tuple(getattr(row, name) for name in CELL)]) for row in rows.itertuples()]
        name = f"Expected best {column.metric} × 100\non validation"
        draw = partial(_searches, lines=lines, marks=marks, name=name)
        drawn.append(panels.Panel(title, draw, partial(_points_of_sweeps, lines=lines)))
    numbers = [
        [*key, curve["metric"], curve["seeds"], n, score]
        for key, curve in curves.items()
        for n, score in enumerate(curve["expected"], 1)
    ]
    frame = pandas.DataFrame(numbers, columns=HEADER)
    return panels.compose(drawn, frame, strategy_panels.legend(summary, spec, marks))


def _points_of_sweeps(axis, lines: list[tuple]) -> None:
    """Name the last point of each line by its point of the sweep."""
    ends = [(len(curve["expected"]), curve["expected"][-1]) for _, curve in lines]
    label_placement.label_points(axis, ends, [wording.point(row.variant) for row, _ in lines])


def expected(data) -> dict[tuple, dict]:
    """Return by cell {expected, metric, seeds} of its own search: the expected best score of 1, 2, ... trials, x 100.

    Trials are drawn with replacement from those that were run, each with its mean over seeds; an undefined score, as of
    a model that always says the same, counts as 0. A cell that uses another strategy's search has none.
    """
    curves = {}
    for cell, made in searches(data):
        best = expected_maximum([100 * (trial["mean"] or 0.0) for trial in made["trials"]])
        curves[cell] = {"expected": best, "metric": made["metric"], "seeds": len(made["trials"][0]["seeds"])}
    return curves


def searches(data) -> Iterator[tuple[tuple, dict]]:
    """Yield by cell the record of its own search, which has trials."""
    runs = data.runs
    present = runs[(runs["kind"] == "run") & (runs["missing"] == "")]
    for row in present.drop_duplicates(CELL).to_dict("records"):
        run = data.folder(row)
        search = NEEDS["settings"]
        record, digest = run.parent / search.file, search.stated(read_json(run / "metrics.json")["spec"])
        made = read_json(record) if digest and record.exists() else {}
        if made.get("digest") == digest and made.get("trials"):
            yield tuple(row[name] for name in CELL), made


def _searches(axis, lines: list[tuple], marks: dict, name: str) -> None:
    """Draw the searches of one task; a search of one trial is a point."""
    for row, curve in lines:
        colour, marker = marks[row.strategy]
        axis.plot(range(1, len(curve["expected"]) + 1), curve["expected"], color=colour, marker=marker, markersize=4)
    most = max(len(curve["expected"]) for _, curve in lines)
    axis.set_xticks(range(1, most + 1, max(1, most // 6)))
    axis.set_xlim(0.6, most + 0.9)
    axis.set_xlabel("Trials, drawn with replacement")
    axis.set_ylabel(name)
