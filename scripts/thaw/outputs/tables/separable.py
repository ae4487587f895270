"""Intervals of a table's scores, and which strategies are open against the one that validation takes."""

from thaw.decision.contrasts import OPEN
from thaw.decision.record import TaskAnswer
from thaw.outputs import wording
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.tables.table_model import ALIKE, Row


def add_intervals(rows: list[Row], columns, contrasts: Contrasts) -> None:
    """Give each cell of a run its 95 % CI. Args: rows of one group; its scores."""
    for index, column in enumerate(columns):
        for row in rows:
            if row.cells[index] and row.cells[index].mean is not None:
                (made,) = contrasts.sides([_cell(row, column)], column.split)
                row.cells[index].low, row.cells[index].high = made.ci.low, made.ci.high


def mark(rows: list[Row], columns, answers: dict[str, TaskAnswer]) -> None:
    """Mark in each column what the decision takes, and what is open against it. Args: rows of one group; by task."""
    for index, column in enumerate(columns):
        answer = answers.get(column.task)
        arms = {answer.points.get(arm.name): arm for arm in answer.decision.arms} if answer else {}
        for row in rows:
            arm = arms.get((row.key["strategy"], row.key["variant"]))
            if arm and row.cells[index] and row.cells[index].mean is not None:
                row.cells[index].best = arm.name == answer.decision.taken
                open_ = not row.cells[index].best and arm.difference.answer == OPEN
                row.cells[index].mark = ALIKE if open_ else ""


def _cell(row: Row, column) -> tuple:
    """Return the cell of a row in a column, in the order of CELL."""
    return tuple(column.task if name == "task" else row.key[name] for name in CELL)


def notes(rows: list[Row], fewest: int) -> list[str]:
    """Return what brackets, bold and marks mean. Args: rows of all groups; the fewest seeds of a run."""
    cells = [cell for row in rows for cell in row.cells if cell]
    lines = [f"In brackets the 95 % CI ({wording.ci_over(fewest, max(cell.seeds for cell in cells))})."]
    if any(cell.best for cell in cells):
        lines.append("Bold: what the decision takes by validation.")
    if any(cell.mark for cell in cells):
        lines[-1] += (
            f" {ALIKE}: open against it, since the 95 % interval of their difference on validation, one for "
            "all, holds 0."
        )
    return lines
