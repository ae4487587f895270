"""A table of where runs were trained by where they were tested, for tasks that are scored on each other's tests."""

from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.frame.printed_names import Names
from thaw.outputs.frame.result_links import cell_anchor
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table

OF_GROUP = ["subset", "encoder", "head", "strategy", "variant"]


def build(data, spec: dict) -> TextTable:
    """Return a row for each task that was trained on, a column for each that is tested, a group for each strategy.

    Where a task is tested on itself the cell is bold. Raises UserError where no two tasks are scored on one test.
    """
    frame = _means(data.runs)
    tested = [task for task in dict.fromkeys(frame["task"]) if task in set(frame["tested"])]
    tested += [task for task in dict.fromkeys(frame["tested"]) if task not in tested]
    names = Names(spec, frame)
    groups = [
        Group(_group(names, part.iloc[0]), [], [_row(names, task, rows, tested) for task, rows in _by_task(part)])
        for _, part in frame.groupby(OF_GROUP, sort=False)
    ]
    seeds = sorted(set(frame["seeds"]))
    number = wording.plural(seeds[-1], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    metrics = dict.fromkeys(wording.metric_name(spec["labels"], metric) for metric in frame["metric"])
    measured = wording.listing(metrics)
    notes = [
        f"{measured[0].upper()}{measured[1:]}, × 100, on test. Rows: the task that was trained on; columns: "
        f"the one whose test is scored; bold where they are the same. Mean ± standard deviation (n − 1) over {number}."
    ]
    titles = [names.of("task", task) for task in tested]
    lines = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    return text_table(spec, titles, groups, notes, " ".join(frame), lines, of="Trained on")


def _means(runs):
    """Return mean, sd and seeds of the main score by strategy, task that was trained on and task that is tested."""
    rows = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & runs["role"].isin(["test", "transfer"])]
    rows = rows[rows["value"].notna()]
    other = rows["split"].str.rpartition("/")[0]
    rows = rows.assign(tested=other.where(other != "", rows["task"]), value=100 * rows["value"])
    if not (rows["tested"] != rows["task"]).any():
        raise UserError("no run is scored on another task: give tasks `transfer_sets:`, or leave the table out")
    found = rows.groupby([*OF_GROUP, "task", "tested"], sort=False, dropna=False)
    shared = (found["optimizer"].max() == "lbfgs") & (found["value"].nunique() <= 1)  # one convex fit, for all seeds
    means = found.agg(metric=("metric", "first"), mean=("value", "mean"), sd=("value", "std"), seeds=("value", "size"))
    return means.assign(sd=means["sd"].mask(shared)).reset_index()


def _group(names: Names, row) -> str:
    strategy = wording.strategy_name(names.labels, row["strategy"], row["variant"])
    return ", ".join([strategy, *names.several(row, *OF_GROUP[:3])])


def _by_task(part):
    return part.groupby("task", sort=False)


def _row(names: Names, task: str, rows, tested: list[str]) -> Row:
    by_test = {row.tested: row for row in rows.itertuples()}
    return Row({}, names.of("task", task), [_cell(by_test.get(other), task == other) for other in tested])


def _cell(one, own: bool) -> TextCell | None:
    if one is None:
        return None
    spread = "" if one.sd != one.sd else f" ± {wording.number(one.sd)}"
    key = {"kind": "run", **{name: getattr(one, name) for name in OF_GROUP}}
    return TextCell(wording.number(one.mean) + spread, one.mean, own, link=cell_anchor(one.task, key))
