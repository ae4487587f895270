"""Means and standard deviations over seeds, shared by all tables and figures of an experiment.

A row is a point of a strategy, a baseline, or an ensemble. Scores are x 100. The standard deviation is the
sample standard deviation (n - 1), undefined for one seed.
"""

from collections import defaultdict
from dataclasses import dataclass

from thaw.core.errors import UserError
from thaw.outputs.frame.price import FITTED
from thaw.outputs.frame.runs_frame import in_role
from thaw.words import wording

GROUP = ["subset", "encoder", "head"]
ROW = ["kind", *GROUP, "strategy", "variant"]
COLUMN = ["task", "split"]


@dataclass(frozen=True)
class Column:
    """A column of a table, a panel of a figure: a task's main metric on one split."""

    task: str
    split: str
    label: str
    metric: str
    synthetic: bool

    @property
    def title(self) -> str:
        return f"{self.label} ({wording.SYNTHETIC})" if self.synthetic else self.label


def summarise(runs, shown: str, order: dict):
    """Return one row per task, split and `ROW`: the main metric over seeds.

    Args: runs as `read_runs` gives them; shown, the role of the scores; order, as in an output's spec. Columns besides
    the keys: metric, synthetic, mean, sd, low, high (scores x 100), seeds (with a result), missing (without), undefined
    (without a score), flags (joined), flagged (seeds with a flag), shared (one fit for all seeds), fitted, baseline,
    thawed, embeddings, pairs, flops, parameters, memory, inference (operations of one prediction), and as a
    median, since a machine that stalls in one training would make all others look cheap: price, in seconds, see
    `price`. Rows are in the order given.
    """
    chosen = runs[runs["main"].astype(bool) & in_role(runs, shown)]
    if chosen.empty and shown == "transfer":
        raise UserError("no run is scored on another task: give a task `transfer_sets:`, or leave the table out")
    if chosen.empty:
        raise UserError(f"no run has a score on split {shown}; choose another for this output")
    absent = chosen["missing"] != ""
    chosen = chosen.assign(
        value=chosen["value"] * 100,
        absent=absent,
        undefined=chosen["value"].isna() & ~absent,
        work=chosen["flops"] + chosen["after_flops"],
    )
    groups = chosen.groupby(COLUMN + ROW, sort=False, dropna=False)
    summary = groups.agg(
        metric=("metric", "first"),
        synthetic=("synthetic", "first"),
        mean=("value", "mean"),
        sd=("value", "std"),
        low=("value", "min"),
        high=("value", "max"),
        seeds=("value", "size"),
        distinct=("value", "nunique"),
        missing=("absent", "sum"),
        undefined=("undefined", "sum"),
        flags=("flags", _joined),
        flagged=("flags", lambda flags: int((flags != "").sum())),
        thawed=("thawed", "first"),
        embeddings=("embeddings", "first"),
        optimizer=("optimizer", "max"),
        pairs=("pairs", "max"),
        price=("price_seconds", "median"),
        flops=("work", "mean"),
        parameters=("trained_parameters", "mean"),
        memory=("peak_memory_mb", "max"),
        inference=("inference_flops", "mean"),
    ).reset_index()
    summary["seeds"] -= summary["missing"]
    summary["fitted"] = summary["kind"] == "run"
    summary["baseline"] = summary["kind"] == "baseline"
    summary["shared"] = (summary["optimizer"] == FITTED) & (summary["distinct"] <= 1)  # draws are fits of their own
    summary["swept"] = summary["variant"] != "base"
    return _ordered(summary, order)


def validation_means(runs) -> dict[tuple, float]:
    """Return the mean over seeds on validation, x 100, by task and `ROW`, where there is a score."""
    rows = runs[runs["main"].astype(bool) & in_role(runs, "validation") & runs["value"].notna()]
    return (100 * rows.groupby(["task", *ROW], dropna=False)["value"].mean()).to_dict()


def columns(summary, labels: dict) -> list[Column]:
    """Return the columns of a summary in its order; a task with several test splits has one for each."""
    unique = summary.drop_duplicates(COLUMN)
    several = unique["task"].value_counts() > 1
    return [
        Column(
            row.task,
            row.split,
            wording.column_name(labels, row.task, row.split, several[row.task]),
            wording.metric_name(labels, row.metric),
            bool(row.synthetic),
        )
        for row in unique.itertuples()
    ]


def of_column(rows, column: Column):
    """Return the rows of a summary, or of runs, on the task and split of a column."""
    return rows[(rows["task"] == column.task) & (rows["split"] == column.split)]


def column_index(columns: list[Column], task: str, split: str) -> int:
    return [(column.task, column.split) for column in columns].index((task, split))


def group_names(summary, labels: dict) -> dict[tuple, str]:
    """Return {(subset, encoder, head): name} in order; a name has only the parts that differ between groups."""
    keys = summary.loc[summary["fitted"], ["encoder", "head", "subset"]].drop_duplicates()
    shown = [(kind, f"{kind}s") for kind in keys if keys[kind].nunique() > 1]
    return {
        (row["subset"], row["encoder"], row["head"]): "; ".join(
            wording.label(labels, plural, row[kind]) for kind, plural in shown
        )
        for row in keys.to_dict("records")
    }


def runs_of(summary, group: tuple):
    subset, encoder, head = group
    mine = (summary["subset"] == subset) & (summary["encoder"] == encoder) & (summary["head"] == head)
    return summary[mine & summary["fitted"]]


def row_key(row) -> tuple:
    """Return what a row of a summary or of runs is, by ROW."""
    return tuple(getattr(row, name) for name in ROW)


def row_name(row, labels: dict) -> str:
    """Return the printed name of a summary row: a baseline, an ensemble, or a strategy with its point."""
    if row.kind == "run":
        return wording.strategy_name(labels, row.strategy, row.variant)
    known = wording.BASELINE_LABELS if row.kind == "baseline" else labels.get("ensembles", {})
    return known.get(row.strategy, row.strategy)


def _joined(flags) -> str:
    """Return the flags of several runs, each once, joined by semicolons."""
    return ";".join(dict.fromkeys(flag for entry in flags for flag in entry.split(";") if flag))


def _ordered(summary, order: dict):
    """Sort by the order of tasks and strategies; the others follow in the order of the runs.

    Adds the column `rank`, the position of a row's strategy in that order.
    """
    tasks = {task: rank for rank, task in enumerate(order.get("tasks", []))}
    pairs = list(zip(summary["strategy"], summary["variant"], strict=True))
    known = dict.fromkeys([*(tuple(pair) for pair in order.get("strategies", [])), *pairs])
    ranks = {pair: rank for rank, pair in enumerate(known)}
    summary = summary.assign(
        _task=[tasks.get(task, len(tasks)) for task in summary["task"]],
        _group=summary.groupby(GROUP, sort=False).ngroup(),
        rank=[ranks[pair] for pair in pairs],
    )
    ordered = summary.sort_values(["_task", "_group", "rank"], kind="stable")
    return ordered.drop(columns=["_task", "_group"]).reset_index(drop=True)


class SummaryRows:
    """The rows of a summary by what they are, as filtering a frame for each takes ten times as long."""

    def __init__(self, summary):
        self.all = list(summary.itertuples())
        self.ensembles = [row for row in self.all if row.kind == "ensemble"]
        self._runs, self._baselines = defaultdict(list), defaultdict(list)
        for row in self.all:
            if row.fitted:
                self._runs[row.subset, row.encoder, row.head].append(row)
            elif row.baseline:
                self._baselines[row.subset].append(row)

    def runs(self, group: tuple) -> list:
        return self._runs[group]

    def baselines(self, group: tuple) -> list:
        subset, encoder, _ = group
        return [row for row in self._baselines[subset] if row.encoder in ("", encoder)]


def in_column(rows: list, column: Column) -> list:
    """Return those of some rows that are on the task and split of a column."""
    return [row for row in rows if (row.task, row.split) == (column.task, column.split)]
