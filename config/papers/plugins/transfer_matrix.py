"""A table of where runs were trained by where they were tested, for tasks that are scored on each other's tests."""

from thaw.declarations.output_kind import OutputKind, Requirement

TABLES = {
    "transfer_matrix": OutputKind(
        "thaw.papers.transfer_matrix:build",
        "where runs were trained by where they were tested, for tasks that name each other in `transfer_sets:`",
        needs=(Requirement.TRANSFER,),
    ),
}


from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.printed_names import Names
from thaw.outputs.frame.result_links import cell_anchor
from thaw.outputs.render.typed_table import Cell, Group, Row, Table
from thaw.outputs.tables import footnotes

OF_GROUP = ["subset", "encoder", "head", "strategy", "variant"]


def build(data, spec: dict) -> Table:
    """Return a row for each task that was trained on, a column for each that is tested, a group for each strategy.

    Where a task is tested on itself the cell is bold. Raises UserError where no two tasks are scored on one test.
    """
    frame = _means(data, spec)
    tested = [task for task in dict.fromkeys(frame["task"]) if task in set(frame["tested"])]
    tested += [task for task in dict.fromkeys(frame["tested"]) if task not in tested]
    names = Names(spec, frame)
    groups = [
        Group(_group(names, part.iloc[0]), [_row(names, task, rows, tested) for task, rows in _by_task(part)])
        for _, part in frame.groupby(OF_GROUP, sort=False)
    ]
    titles = [names.of("task", task) for task in tested]
    return Table.of_spec(spec, titles, groups, _notes(frame, spec["labels"]), of="Trained on")


def _notes(frame, labels: dict) -> list[str]:
    """Return what is scored, over how many seeds, and why some rows have no deviation."""
    metrics = wording.listing(dict.fromkeys(wording.metric_name(labels, metric) for metric in frame["metric"]))
    first = f"{metrics[0].upper()}{metrics[1:]}, × 100, on the first test split of each task."
    where = "Rows: the task that was trained on; columns: the one that is tested; bold where they are the same."
    return [f"{first} {where} {footnotes.over_seeds(frame, {})}", *footnotes.shared_fits(frame, labels)]


def _means(data, spec: dict):
    """Return mean, sd and seeds of the main score by strategy, task that was trained on and task that is tested.

    Of a task with several test splits the first one counts. `shared`: one convex fit serves all seeds.
    """
    import pandas

    summary = pandas.concat(aggregate.summarise(data.runs, role, spec["order"]) for role in ("transfer", "test"))
    summary = summary[summary["fitted"] & summary["mean"].notna()].sort_values("rank", kind="stable")
    parts = summary["split"].str.rpartition("/")
    frame = summary.assign(tested=parts[0].where(parts[0] != "", summary["task"]), part=parts[2])
    frame = frame[frame["part"] == frame.groupby(["task", "tested"])["part"].transform("first")]
    columns = [*OF_GROUP, "task", "tested", "metric", "mean", "sd", "seeds", "shared"]
    return frame.assign(sd=frame["sd"].mask(frame["shared"]))[columns]


def _group(names: Names, row) -> str:
    strategy = wording.strategy_name(names.labels, row["strategy"], row["variant"])
    return ", ".join([strategy, *names.several(row, *OF_GROUP[:3])])


def _by_task(part):
    return part.groupby("task", sort=False)


def _row(names: Names, task: str, rows, tested: list[str]) -> Row:
    by_test = {row.tested: row for row in rows.itertuples()}
    cells = [_cell(by_test.get(other), task == other) for other in tested]
    return Row(names.of("task", task), cells, rows.to_dict("records"))


def _cell(one, own: bool) -> Cell | None:
    if one is None:
        return None
    key = {"kind": "run", **{name: getattr(one, name) for name in OF_GROUP}}
    sd = wording.shown_sd(one.sd, one.seeds)
    return Cell(one.mean, sd=sd, runs=one.seeds, best=own, link=cell_anchor(one.task, key))
