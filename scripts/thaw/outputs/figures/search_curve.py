"""Figure: what a search is worth, the best validation score to expect against the number of trials."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import read_json, write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style, label_placement, scores_and_cost
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.runs_frame import CELL
from thaw.statistics.expected_max import expected_maximum

HEADER = ["task", "subset", "encoder", "head", "strategy", "variant", "metric", "seeds", "trials", "expected"]


def trial_figure(runs, spec: dict, results, prefix) -> None:
    """Draw the expected best score of 1, 2, ... trials, a panel for each task, a line for each search.

    Args: runs as `read_runs` gives them; spec as step `figure` gets it; results: the results folder, where chosen.json
    lies. Raises UserError where no run took its settings from a search of its own.
    """
    import pandas

    curves = expected(runs, results)
    if not curves:
        raise UserError("a trial_figure needs strategies with a search: of their own, and none has one here")
    found = aggregate.summarise(runs, "validation", spec["order"])
    found = found[[key in curves for key in found[CELL].itertuples(index=False, name=None)]]
    panels = scores_and_cost.task_panels(found, spec["labels"])
    marks = scores_and_cost.strategy_marks(found, spec)
    with figure_style.panels([title for title, *_ in panels]) as (figure, axes):
        shown = [
            (axis, [(row, curves[tuple(getattr(row, name) for name in CELL)]) for row in rows.itertuples()])
            for axis, (*_, rows) in zip(axes, panels, strict=True)
        ]
        for axis, lines in shown:
            _panel(axis, lines, marks)
        for axis, (_, column, _) in zip(axes, panels, strict=True):
            axis.set_ylabel(f"Best {column.metric} × 100\nto expect on validation")
        figure_style.legend(figure, scores_and_cost.handles(found, spec, marks))
        figure_style.freeze_layout(figure)
        for axis, lines in shown:
            ends = [(len(curve["expected"]), curve["expected"][-1]) for _, curve in lines]
            label_placement.label_points(axis, ends, [wording.point(row.variant) for row, _ in lines])
        figure_style.save(figure, prefix)
    numbers = [
        [*key, curve["metric"], curve["seeds"], n, round(score, 4)]
        for key, curve in curves.items()
        for n, score in enumerate(curve["expected"], 1)
    ]
    frame = pandas.DataFrame([dict(zip([*CELL, *HEADER[6:]], line, strict=True)) for line in numbers])
    write_text(f"{prefix}.csv", frame[HEADER].to_csv(index=False, lineterminator="\n"))


def expected(runs, results) -> dict[tuple, dict]:
    """Return by cell {expected, metric, seeds} of its own search: the best of 1, 2, ... trials to expect, x 100.

    Trials are drawn with replacement from those that were run, each with its mean over seeds; one without a score is
    left out. A cell that takes the settings of another strategy's search has none.
    """
    found, present = {}, runs[(runs["kind"] == "run") & (runs["missing"] == "")]
    for row in present.drop_duplicates(CELL).to_dict("records"):
        run = Path(results, row["folder"])
        record, due = run.parent / "chosen.json", read_json(run / "metrics.json")["spec"].get("chosen")
        made = read_json(record) if due and record.exists() else {}
        trials = [trial for trial in made.get("trials", []) if trial["mean"] is not None]
        if made.get("digest") == due and trials:
            best = expected_maximum([100 * trial["mean"] for trial in trials])
            seeds = len(trials[0]["seeds"])
            found[tuple(row[name] for name in CELL)] = {"expected": best, "metric": made["metric"], "seeds": seeds}
    return found


def _panel(axis, lines: list[tuple], marks: dict) -> None:
    """Draw the searches of one task; a search of one trial is a point."""
    for row, curve in lines:
        colour, marker = marks[row.strategy]
        axis.plot(range(1, len(curve["expected"]) + 1), curve["expected"], color=colour, marker=marker, markersize=4)
    most = max(len(curve["expected"]) for _, curve in lines)
    axis.set_xticks(range(1, most + 1, max(1, most // 6)))
    axis.set_xlim(0.6, most + 0.9)
    axis.set_xlabel("Trials, drawn with replacement")
