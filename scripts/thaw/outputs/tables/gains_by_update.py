"""A table of what a part of a training shows: gains on validation after shares of the updates, and on test at the end.

Its CSV is what `thaw advise` reads as past tasks (advisor/past_tasks.py).
"""

import numpy as np

from thaw.advisor.beliefs import RUNGS
from thaw.advisor.past_tasks import KEY, POINT, SCORES
from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.choice_points import WITH_RUNGS, Points, points_by_task
from thaw.outputs.tables.table_model import Group, TextTable, text_row, text_table

HEADER = ["encoder", *KEY, *POINT, *SCORES]


def build(data, spec: dict) -> TextTable:
    """Return a row for each strategy: its mean gain over `start` after each of RUNGS, and on test.

    Args: spec with `start`, a strategy. Means are over tasks; the CSV has the scores x 100 of each task and seed.
    Raises UserError where no task has runs of `start`.
    """
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    groups, lines = [], []
    for group, name in aggregate.group_names(summary, spec["labels"]).items():
        if points := points_by_task(data, spec, group, spec["start"], WITH_RUNGS):
            groups.append(Group(name, [], _rows(points, spec)))
            subset, encoder, head = group
            lines += [[encoder, head, subset, *line] for task, one in points.items() for line in _lines(task, one)]
    if not groups:
        raise UserError(f"a progress_table needs runs of {spec['start']}")
    titles = [*(f"{100 * rung:g} %" for rung in RUNGS), "Test"]
    return text_table(spec, titles, groups, _notes(spec), " ".join(HEADER), lines)


def _lines(task: str, points: Points) -> list[list]:
    """Return what the CSV says of a task: for each seed and point the scores after RUNGS and on test."""
    return [
        [points.corpus, task, seed, *point, *map(_written, (*points.rungs[seed, point], points.test.loc[seed, point]))]
        for seed in points.test.index
        for point in points.test.columns
    ]


def _written(score: float) -> str:
    return "" if np.isnan(score) else f"{score:.4f}"


def _rows(points: dict[str, Points], spec: dict) -> list:
    """Return a row for each point but those of `start`: mean gains over the tasks that have it."""
    rows = []
    for point in map(tuple, spec["order"]["strategies"]):
        gains = [_gains(one, point, spec["start"]) for one in points.values() if point in one.test.columns]
        if gains and point[0] != spec["start"]:
            name = wording.strategy_name(spec["labels"], *point)
            rows.append(
                text_row(name, [wording.number(None if np.isnan(gain) else gain) for gain in np.mean(gains, axis=0)])
            )
    return rows


def _gains(points: Points, point: tuple, start: str) -> np.ndarray:
    """Return a point's mean gains over seeds: after each of RUNGS on validation, and on test."""
    (first,) = points.of([start])[:1]
    seeds = points.test.index
    seen = [np.array(points.rungs[seed, point]) - points.rungs[seed, first][-1] for seed in seeds]
    return np.append(np.mean(seen, axis=0), (points.test[point] - points.test[first]).mean())


def _notes(spec: dict) -> list[str]:
    start = wording.label(spec["labels"], "strategies", spec["start"])
    return [
        f"Points over {start} (score × 100), means over seeds and tasks: on validation after a share of the updates of "
        "the last phase, and on test at the end. A probe that is fitted to convergence has one score. A dash: "
        "validation was not scored by then in some run.",
    ]
