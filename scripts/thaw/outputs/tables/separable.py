"""Intervals of a table's scores, and which strategies are shown to be below the highest on validation.

A strategy is below it where the sign-flip test over seeds says so, adjusted by step-down max-T over the column and its
group, and the whole interval of the difference is below 0 (`statistics/significance.py`).
"""

from thaw.declarations.decision import FEWEST_SEEDS
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.tables.table_model import ALIKE, HIGHEST, Row
from thaw.statistics.significance import LOWER, compare


def add_intervals(rows: list[Row], columns, contrasts: Contrasts) -> None:
    """Give each cell of a run its 95 % CI. Args: rows of one group; its scores."""
    for index, column in enumerate(columns):
        for row in rows:
            if row.cells[index] and row.cells[index].mean is not None:
                (made,) = contrasts.sides([_cell(row, column)], column.split)
                row.cells[index].low, row.cells[index].high = made.ci.low, made.ci.high


def mark(rows: list[Row], columns, contrasts: Contrasts, validated: dict[tuple, float]) -> None:
    """Mark in each column the highest on validation, bold where another one is shown to be below it.

    Then those that are not shown to be below it are marked too. Args: rows of one group;
    validated, as `aggregate.validation_means` returns it.
    """
    for index, column in enumerate(columns):
        means = means_on_validation(rows, index, column, validated)
        if means:
            best = max(means, key=means.get)
            others = [place for place in means if place != best]
            below = _below([rows[place] for place in others], rows[best], column, contrasts)
            rows[best].cells[index].mark, rows[best].cells[index].best = HIGHEST, any(below)
            for place, is_below in zip(others, below, strict=True):
                rows[place].cells[index].mark = "" if is_below or not any(below) else ALIKE


def means_on_validation(rows: list[Row], index: int, column, validated: dict[tuple, float]) -> dict[int, float]:
    """Return by place the mean on validation of the rows that have a score in a column. Args: see `mark`."""
    keys = [(column.task, *(row.key[name] for name in aggregate.ROW)) for row in rows]
    scored = [row.cells[index] is not None and row.cells[index].mean is not None for row in rows]
    return {n: validated[key] for n, key in enumerate(keys) if scored[n] and key in validated}


def _below(others: list[Row], best: Row, column, contrasts: Contrasts) -> list[bool]:
    """Return for each of some rows whether it is shown to be below the highest on validation."""
    pairs = [contrasts.between(_cell(row, column), _cell(best, column), column.split) for row in others]
    tested = {n: pair for n, pair in enumerate(pairs) if pair and len(pair.by_seed) >= FEWEST_SEEDS}
    tests = compare([pair.by_seed for pair in tested.values()], [pair.resampled for pair in tested.values()])
    below = {n for n, test in zip(tested, tests, strict=True) if test.answer == LOWER}
    return [n in below for n in range(len(pairs))]


def _cell(row: Row, column) -> tuple:
    """Return the cell of a row in a column, in the order of CELL."""
    return tuple(column.task if name == "task" else row.key[name] for name in CELL)


def notes(rows: list[Row], columns, fewest: int) -> list[str]:
    """Return what brackets, bold and marks mean, and in which columns nothing can be separated.

    Args: rows of all groups; the fewest seeds of a run.
    """
    cells = [cell for row in rows for cell in row.cells if cell]
    lines = [f"In brackets the 95 % CI ({wording.ci_over(fewest, max(cell.seeds for cell in cells))})."]
    if any(cell.best for cell in cells):
        lines.append(
            f"Bold: the highest on validation, where another strategy is shown to be below it. {ALIKE}: not shown to "
            "be below it (sign-flip test over seeds, p at most 0.05, and an interval of the difference, both for the "
            "whole column)."
        )
    open_ = [
        column.label
        for index, column in enumerate(columns)
        if not any(row.cells[index].best for row in rows if row.cells[index])
    ]
    if open_:
        seeds = f": {wording.plural(fewest, 'seed')}, the test needs {FEWEST_SEEDS}" if fewest < FEWEST_SEEDS else ""
        where = "" if len(open_) == len(columns) else f" of {wording.listing(open_)}"
        lines.append(f"{HIGHEST}: the highest on validation{where}, where no strategy is shown to be below it{seeds}.")
    return lines
