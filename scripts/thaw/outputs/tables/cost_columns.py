"""What strategies cost, as columns of a table of scores: means over its tasks."""

import numpy as np

from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.aggregate import Column
from thaw.outputs.frame.summary_rows import SummaryRows
from thaw.outputs.tables.table_model import Row, TextCell

COLUMNS = {  # option: column of a summary, label, unit, in print
    "updates": ("updates", "Updates", "", wording.count),
    "seconds": ("price", "Price", "a run", wording.seconds),
    "memory": ("memory", "Memory", "peak", lambda value: f"{wording.short(1e6 * value)}B"),
    "parameters": ("parameters", "Parameters", "trainable", wording.short),
    "share": ("price", "Price", "% of full", wording.number),
}


def columns(names: list[str]) -> list[Column]:
    """Return the columns of some costs."""
    return [Column("", name, COLUMNS[name][1], COLUMNS[name][2], False) for name in names]


def add(rows: list[Row], names: list[str], summarised: SummaryRows) -> None:
    """Add to each row its costs; blank where a run did not note it.

    Those of a strategy are over the tasks that it was run on; its share is of full fine-tuning's price there.
    """
    for row in rows if names else ():
        runs = [run for run in summarised.runs(tuple(row.key[name] for name in aggregate.GROUP)) if run.seeds > 0]
        own = _by_task(run for run in runs if (run.strategy, run.variant) == (row.key["strategy"], row.key["variant"]))
        rank = min((run.rank for run in runs if run.embeddings), default=None)
        full = _by_task(run for run in runs if run.embeddings and run.rank == rank)
        row.cells += [_cell(name, own, full) for name in names]


def _by_task(runs) -> dict:
    """Return the first of some runs on each task: one that is tested on several splits is as costly in each."""
    first: dict = {}
    for run in runs:
        first.setdefault(run.task, run)
    return first


def _cell(name: str, own: dict, full: dict) -> TextCell:
    """Return a cost. Args: its name; the rows, by task, of a strategy and of full fine-tuning in its group."""
    column, _, _, printed = COLUMNS[name]
    value = _mean([getattr(run, column) for run in own.values()])
    if name == "share":
        whole = _mean([getattr(run, column) for task, run in full.items() if task in own])
        value = 100 * value / whole if whole else float("nan")
    return TextCell("" if value != value else printed(value), None if value != value else float(value))


def _mean(values: list[float]) -> float:
    """Return the mean of the values that were noted, NaN where none was."""
    noted = [value for value in values if value == value]
    return float(np.mean(noted)) if noted else float("nan")
