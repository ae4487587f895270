"""A table of scores: strategies by tasks, on a split of the tasks or on the test splits of others, with their costs."""

import numpy as np

from thaw.decision.contrasts import OPEN
from thaw.decision.record import TaskAnswer
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.aggregate import Column
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.frame.task_arms import answers
from thaw.outputs.render.typed_table import ALIKE, Cell, Group, Row, Table, said
from thaw.outputs.tables import footnotes
from thaw.words import wording

KEY = ("kind", "encoder", "head", "subset", "strategy", "variant")  # of a row of scores, in the order of its CSV
COSTS = {  # option: column of a summary, label, what it is of, unit of its cells; means over the tasks of the table
    "seconds": ("price", "Price", "a run", "s"),
    "parameters": ("parameters", "Parameters", "trainable", "short"),
}


def build(data, spec: dict) -> Table:
    """Return mean and standard deviation of every strategy on every task.

    Bold is, in each column and group, the strategy with the highest score on validation: the highest on test is chosen
    by what it is meant to measure. With `intervals` those that are open against it are marked.
    """
    return _of_role(data, spec, spec["split"])


def build_transfer(data, spec: dict) -> Table:
    """Return the scores on the test splits of other tasks than the training task."""
    return _of_role(data, spec, "transfer")


def _of_role(data, spec: dict, role: str) -> Table:
    labels, runs, costs = spec["labels"], data.runs, spec.get("costs", [])
    contrasts = Contrasts(runs, role, data.predictions) if spec.get("intervals") else None
    summary = aggregate.summarise(runs, role, spec["order"])
    columns = aggregate.columns(summary, labels)
    names, summarised = aggregate.group_names(summary, labels), aggregate.SummaryRows(summary)
    validated, marks = aggregate.validation_means(runs), footnotes.warning_marks(summary)
    theirs = {group: {row.Index: row for row in summarised.baselines(group)} for group in names}
    common = set.intersection(*map(set, theirs.values()))
    by_group: dict[tuple, dict[str, TaskAnswer]] = {}
    for answer in answers(data, spec) if contrasts else ():
        by_group.setdefault((answer.subset, answer.encoder, answer.head), {})[answer.task] = answer

    def rows_of(part: list) -> list[Row]:
        return _rows(part, columns, labels, marks)

    groups = []
    for group, name in names.items():
        rows = rows_of(summarised.runs(group))
        if contrasts:
            _add_intervals(rows, columns, contrasts)
            _mark_answers(rows, columns, by_group.get(group, {}))
        else:
            _mark_best(rows, columns, validated)
        own = [row for index, row in theirs[group].items() if index not in common]
        groups.append(Group(name, rows, rows_of(own)))
    every = [row for group in groups for row in group.rows]
    fewest = int(summary.loc[summary["fitted"], "seeds"].min())
    notes, short = footnotes.notes(
        summary, runs, columns, spec, role, _interval_notes(every, fewest) if contrasts else []
    )
    shown = [*columns, *(Column("", name, COSTS[name][1], COSTS[name][2], False) for name in costs)]
    above = rows_of([row for row in summarised.all if row.Index in common])
    table = Table(
        spec["id"], spec["caption"], shown, groups, notes, above, rows_of(summarised.ensembles), short_notes=short
    )
    fitted = {id(row) for row in every}
    for row in table.rows:
        row.cells += _costs(row, costs, summarised) if id(row) in fitted else [None] * len(costs)
    cells = [[cell for row in table.rows if (cell := row.cells[index])] for index in range(len(shown))]
    aside = [list(dict.fromkeys(name for cell in column for name in cell.aside)) for column in cells]
    for row in table.rows:
        row.records = [_record(row, shown, aside)]
    return table


def _rows(part: list, columns, labels: dict, marks: dict[str, str]) -> list[Row]:
    """Return table rows from summary rows, each key once, in the order of the strategies. Args: marks of warnings."""
    rows: dict[tuple, Row] = {}
    indices = {(column.task, column.split): index for index, column in enumerate(columns)}
    for entry in sorted(part, key=lambda entry: entry.rank):
        key = {name: getattr(entry, name) for name in KEY}
        empty = Row(aggregate.row_name(entry, labels), [None] * len(columns), key=key)
        row = rows.setdefault(tuple(key.values()), empty)
        flags = [flag for flag in entry.flags.split(";") if flag in marks] if entry.fitted else []
        row.cells[indices[entry.task, entry.split]] = Cell(
            None if entry.mean != entry.mean else entry.mean,
            sd=wording.shown_sd(entry.sd, entry.seeds) if entry.fitted and not entry.shared else None,
            runs=int(entry.seeds),
            missing=int(entry.missing),
            flags=flags,
            marks=",".join(marks[flag] for flag in flags),
            link=row_anchor(entry),
        )
    return list(rows.values())


def _scored(rows: list[Row], index: int) -> list[tuple[Row, Cell]]:
    return [(row, cell) for row in rows if (cell := row.cells[index]) and cell.value is not None]


def _mark_best(rows: list[Row], columns, validated: dict[tuple, float]) -> None:
    """Mark in each column the cells whose mean on validation is, as printed, the highest."""
    for index, column in enumerate(columns):
        keys = [((column.task, *(row.key[name] for name in aggregate.ROW)), cell) for row, cell in _scored(rows, index)]
        known = [(round(validated[key], 1), cell) for key, cell in keys if key in validated]
        for mean, cell in known:
            cell.best = mean == max(mean for mean, _ in known)


def _add_intervals(rows: list[Row], columns, contrasts: Contrasts) -> None:
    """Give each cell of a run its 95 % CI. Args: rows of one group; its scores."""
    for index, column in enumerate(columns):
        for row, cell in _scored(rows, index):
            ci = contrasts.interval(row.key | {"task": column.task}, column.split)
            cell.low, cell.high = ci.low, ci.high


def _mark_answers(rows: list[Row], columns, known: dict[str, TaskAnswer]) -> None:
    """Mark in each column what the decision takes, and what is open against it; say calibration aside.

    Args: rows of one group; answers by task, whose calibration is that of the task's first column.
    """
    first = {column.task: index for index, column in reversed([*enumerate(columns)])}
    for index, column in enumerate(columns):
        if not (answer := known.get(column.task)):
            continue
        arms = {answer.points.get(arm.name): arm for arm in answer.decision.arms}
        for row, cell in _scored(rows, index):
            if arm := arms.get((row.key["strategy"], row.key["variant"])):
                cell.best = arm.name == answer.decision.taken
                cell.open = not cell.best and arm.difference.answer == OPEN
                if first[column.task] == index and (calibration := answer.calibration.get(arm.name)):
                    cell.aside = vars(calibration)


def _interval_notes(rows: list[Row], fewest: int) -> list[str]:
    """Return what brackets, bold and marks mean. Args: rows of all groups; the fewest seeds of a run."""
    cells = [cell for row in rows for cell in row.cells if cell]
    lines = [f"In brackets the 95 % CI ({wording.ci_over(fewest, max(cell.runs or 0 for cell in cells))})."]
    if any(cell.best for cell in cells):
        lines.append("Bold: what the decision takes by validation.")
    if any(cell.open for cell in cells):
        lines[-1] += (
            f" {ALIKE}: open against it, since the 95 % interval of their difference on validation, one for "
            "all, holds 0."
        )
    return lines


def _costs(row: Row, names: list[str], summarised: aggregate.SummaryRows) -> list[Cell]:
    """Return the costs of a strategy, means over the tasks that it was run on."""
    runs = [run for run in summarised.runs(tuple(row.key[name] for name in aggregate.GROUP)) if run.seeds > 0]
    point = row.key["strategy"], row.key["variant"]
    # a task that is tested on several splits counts once
    by_task = {run.task: run for run in runs if (run.strategy, run.variant) == point}
    cells = []
    for column, _, _, unit in (COSTS[name] for name in names):
        values = [value for run in by_task.values() if (value := getattr(run, column)) == value]
        cells.append(Cell(float(np.mean(values)), unit) if values else said(""))
    return cells


def _record(row: Row, columns, aside: list[list[str]]) -> dict:
    """Return what the CSV says of a row: of scores all that a cell has, of costs their value.

    Args: of each column what its cells say aside.
    """
    record = {name: row.key[name] for name in KEY}
    for column, cell, names in zip(columns, row.cells, aside, strict=True):
        if not column.task:
            record[column.split] = cell and cell.value
            continue
        flagged = {"flagged": int(bool(cell.flags)), "missing": cell.missing} if cell else {}
        mark = ("taken" if cell.best else OPEN if cell.open else "") if cell else None
        parts: dict = {"mean": cell and cell.value, "sd": cell and cell.sd, "seeds": cell and cell.runs}
        parts |= {name: flagged.get(name) for name in ("flagged", "missing")}
        parts |= {"low": cell and cell.low, "high": cell and cell.high, "mark": mark}
        parts |= {name: cell and cell.aside.get(name) for name in names}
        record |= {f"{column.task}.{column.split}.{name}": value for name, value in parts.items()}
    return record
