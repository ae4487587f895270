"""Intervals of a table's scores, and which strategies are open against the one that validation takes."""

from thaw.decision.contrasts import OPEN
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import Contrasts, jointly
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.tables.table_model import ALIKE, Row


def add_intervals(rows: list[Row], columns, contrasts: Contrasts) -> None:
    """Give each cell of a run its 95 % CI. Args: rows of one group; its scores."""
    for index, column in enumerate(columns):
        for row in rows:
            if row.cells[index] and row.cells[index].mean is not None:
                (made,) = contrasts.sides([_cell(row, column)], column.split)
                row.cells[index].low, row.cells[index].high = made.ci.low, made.ci.high


def mark(rows: list[Row], columns, contrasts: Contrasts, validated: dict[tuple, float]) -> None:
    """Mark in each column the highest on validation, and those that are open against it there.

    One interval holds the differences of a column. Args: rows of one group; validated, as `aggregate.validation_means`
    returns it.
    """
    for index, column in enumerate(columns):
        means = means_on_validation(rows, index, column, validated)
        if means:
            best = max(means, key=means.get)
            rows[best].cells[index].best = True
            pairs = {
                place: contrasts.on_validation(_cell(rows[place], column), _cell(rows[best], column))
                for place in means
                if place != best
            }
            places = [place for place, pair in pairs.items() if pair]
            for place, difference in zip(places, jointly([pairs[place] for place in places]), strict=True):
                rows[place].cells[index].mark = ALIKE if difference.answer == OPEN else ""


def means_on_validation(rows: list[Row], index: int, column, validated: dict[tuple, float]) -> dict[int, float]:
    """Return by place the mean on validation of the rows that have a score in a column. Args: see `mark`."""
    keys = [(column.task, *(row.key[name] for name in aggregate.ROW)) for row in rows]
    scored = [row.cells[index] is not None and row.cells[index].mean is not None for row in rows]
    return {n: validated[key] for n, key in enumerate(keys) if scored[n] and key in validated}


def _cell(row: Row, column) -> tuple:
    """Return the cell of a row in a column, in the order of CELL."""
    return tuple(column.task if name == "task" else row.key[name] for name in CELL)


def notes(rows: list[Row], fewest: int) -> list[str]:
    """Return what brackets, bold and marks mean. Args: rows of all groups; the fewest seeds of a run."""
    cells = [cell for row in rows for cell in row.cells if cell]
    lines = [f"In brackets the 95 % CI ({wording.ci_over(fewest, max(cell.seeds for cell in cells))})."]
    if any(cell.best for cell in cells):
        lines.append("Bold: the highest on validation.")
    if any(cell.mark for cell in cells):
        lines[-1] += (
            f" {ALIKE}: open against it, since the 95 % interval of their difference on validation, one for the "
            "column, holds 0."
        )
    return lines
