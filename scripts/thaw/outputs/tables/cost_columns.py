"""What strategies cost, as columns of a table of scores: means over its tasks, charged as `wording.COST_RULE` says."""

from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.aggregate import Column
from thaw.outputs.tables.table_model import Row, TextCell

COLUMNS = {  # option: column of a summary, label, unit, in print
    "updates": ("updates", "Updates", "", wording.count),
    "seconds": ("seconds", "Time", "a run", wording.seconds),
    "memory": ("memory", "Memory", "peak", lambda value: f"{wording.short(1e6 * value)}B"),
    "parameters": ("parameters", "Parameters", "trainable", wording.short),
    "share": ("seconds", "Share of full", "time, %", wording.number),
}


def columns(names: list[str]) -> list[Column]:
    """Return the columns of some costs."""
    return [Column("", name, COLUMNS[name][1], COLUMNS[name][2], False) for name in names]


def add(rows: list[Row], names: list[str], fitted) -> None:
    """Add to each row its costs; blank where a run did not note it. Args: fitted, the runs of a summary.

    Those of a strategy are over the tasks that it was run on; its share is of full fine-tuning's time on the same ones.
    """
    by_task = fitted[fitted["seeds"] > 0].drop_duplicates([*aggregate.ROW, "task"])
    full = by_task[by_task["embeddings"].astype(bool)]
    for row in rows:
        own = by_task[(by_task[aggregate.ROW] == [row.key[name] for name in aggregate.ROW]).all(axis=1)]
        row.cells += [_cell(name, own, _full_of(row, full)) for name in names]


def _full_of(row: Row, full):
    """Return full fine-tuning's rows of a row's group: those of the first strategy that trains the embeddings too."""
    mine = full[(full[aggregate.GROUP] == [row.key[name] for name in aggregate.GROUP]).all(axis=1)]
    return mine[mine["rank"] == mine["rank"].min()]


def _cell(name: str, own, full) -> TextCell:
    column, _, _, printed = COLUMNS[name]
    value = own[column].mean()
    if name == "share":
        value = 100 * value / full.loc[full["task"].isin(own["task"]), column].mean()
    return TextCell("" if value != value else printed(value), None if value != value else float(value))
