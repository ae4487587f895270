"""A table of scores: strategies by tasks, on a split of the tasks or on the test splits of others."""

from thaw.decision.record import TaskAnswer
from thaw.declarations.decision import FEWEST_OF_INTERVAL
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.outputs.frame.summary_rows import SummaryRows
from thaw.outputs.frame.task_arms import answers
from thaw.outputs.tables import cost_columns, footnotes, separable
from thaw.outputs.tables.table_model import KEY, Cell, Group, Row, Table


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
    labels, runs = spec["labels"], data.runs
    contrasts = Contrasts(runs, role, data.predictions) if spec.get("intervals") else None
    summary = aggregate.summarise(runs, role, spec["order"])
    columns = aggregate.columns(summary, labels)
    names, summarised = aggregate.group_names(summary, labels), SummaryRows(summary)
    validated, warned = aggregate.validation_means(runs), footnotes.warning_marks(summary)
    theirs = {group: {row.Index: row for row in summarised.baselines(group)} for group in names}
    common = set.intersection(*map(set, theirs.values()))
    by_group: dict[tuple, dict[str, TaskAnswer]] = {}
    for answer in answers(data, spec) if contrasts else ():
        by_group.setdefault((answer.subset, answer.encoder, answer.head), {})[answer.task] = answer
    groups = []
    for group, name in names.items():
        own = [row for index, row in theirs[group].items() if index not in common]
        rows = _rows(summarised.runs(group), columns, labels, warned)
        if contrasts:
            separable.add_intervals(rows, columns, contrasts)
            separable.mark(rows, columns, by_group.get(group, {}))
        else:
            _mark_best(rows, columns, validated)
        groups.append(Group(name, _rows(own, columns, labels, warned), rows))
    above = _rows([row for row in summarised.all if row.Index in common], columns, labels, warned)
    below = _rows(summarised.external, columns, labels, warned)
    every = [row for group in groups for row in group.rows]
    fewest = int(summary.loc[summary["fitted"], "seeds"].min())
    marks = separable.notes(every, fewest) if contrasts else []
    notes, short = footnotes.notes(summary, runs, columns, spec, role, marks)
    costs = spec.get("costs", [])
    cost_columns.add(every, costs, summarised)
    for row in [*above, *below, *(row for group in groups for row in group.baselines)]:
        row.cells += [None] * len(costs)
    columns = [*columns, *cost_columns.columns(costs)]
    return Table(spec["id"], spec["caption"], columns, above, groups, below, notes, short)


def cell(row, marks: dict[str, str]) -> Cell:
    """Return the cell of a summary row. Args: the marks of warnings, see `footnotes.warning_marks`."""
    undefined = row.mean != row.mean
    silent = row.seeds < FEWEST_OF_INTERVAL or row.sd != row.sd or row.shared or not row.fitted
    mean, sd = (None if undefined else row.mean), (None if silent else row.sd)
    warnings = ",".join(marks[flag] for flag in row.flags.split(";") if flag in marks) if row.fitted else ""
    return Cell(mean, sd, int(row.seeds), warnings=warnings, missing=int(row.missing))


def _rows(part: list, columns, labels: dict, marks: dict[str, str]) -> list[Row]:
    """Return table rows from summary rows, each key once, in the order of the strategies."""
    rows: dict[tuple, Row] = {}
    indices = {(column.task, column.split): index for index, column in enumerate(columns)}
    for entry in sorted(part, key=lambda entry: entry.rank):
        key = {name: getattr(entry, name) for name in KEY}
        row = rows.setdefault(tuple(key.values()), Row(key, aggregate.row_name(entry, labels), [None] * len(columns)))
        row.cells[indices[entry.task, entry.split]] = cell(entry, marks)
    return list(rows.values())


def _mark_best(rows: list[Row], columns, validated: dict[tuple, float]) -> None:
    """Mark in each column the cells whose mean on validation is, as printed, the highest."""
    for index, column in enumerate(columns):
        means = _means_on_validation(rows, index, column, validated)
        printed = {place: round(mean, 1) for place, mean in means.items()}
        top = max(printed.values(), default=None)
        for place, mean in printed.items():
            rows[place].cells[index].best = mean == top


def _means_on_validation(rows: list[Row], index: int, column, validated: dict[tuple, float]) -> dict[int, float]:
    """Return by place the mean on validation of the rows that have a score in a column. Args: see `mark`."""
    keys = [(column.task, *(row.key[name] for name in aggregate.ROW)) for row in rows]
    scored = [row.cells[index] is not None and row.cells[index].mean is not None for row in rows]
    return {n: validated[key] for n, key in enumerate(keys) if scored[n] and key in validated}
