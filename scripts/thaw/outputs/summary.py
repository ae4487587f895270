"""Means and deviations over seeds: the numbers that every table and figure of an experiment shares.

Scores are x 100 here. A deviation is the sample standard deviation (n - 1), undefined for one seed.
"""

from dataclasses import dataclass

from thaw.outputs import words
from thaw.records import UserError

ROW = ["subset", "encoder", "head", "strategy", "variant"]
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
        """The label, with SYNTHETIC where the data are."""
        return f"{self.label} ({words.SYNTHETIC})" if self.synthetic else self.label


def summarise(runs, spec: dict):
    """Return one row per task, split, subset, encoder, head, strategy and variant: the main metric over seeds.

    Args: runs as `read_runs` gives them; spec: `split` (test or validation) and `order` of an output's spec.
    Columns beside the keys: metric, synthetic, mean, sd, low, high (scores x 100), seeds, undefined (seeds without a
    score), flags (joined), flagged (seeds with a flag), shared (one fit for all seeds), baseline, thawed, embeddings,
    seconds, flops (means), parameters, extraction. Rows are in the spec's order.
    """
    chosen = runs[runs["main"].astype(bool) & (runs["role"] == spec.get("split", "test"))]
    if chosen.empty:
        raise UserError(f"no run has a score on split {spec.get('split', 'test')}; choose another for this output")
    chosen = chosen.assign(
        value=chosen["value"] * 100,
        seconds=chosen["train_seconds"] + chosen["after_seconds"] + chosen["extraction_seconds"],
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
        undefined=("value", lambda values: int(values.isna().sum())),
        flags=("flags", _joined),
        flagged=("flags", lambda flags: int((flags != "").sum())),
        thawed=("thawed", "first"),
        embeddings=("embeddings", "first"),
        optimizer=("optimizer", "first"),
        seconds=("seconds", "mean"),
        flops=("work", "mean"),
        parameters=("trained_parameters", "mean"),
        extraction=("extraction_seconds", "mean"),
        train=("train_seconds", "mean"),
        memory=("peak_memory_mb", "max"),
    ).reset_index()
    summary["baseline"] = summary["encoder"] == ""
    summary["shared"] = summary["optimizer"] == "lbfgs"
    summary["swept"] = summary["variant"] != "base"
    return _ordered(summary, spec["order"])


def columns(summary, labels: dict) -> list[Column]:
    """Return the columns of a summary in its order; a task with several test splits has one for each."""
    found = summary.drop_duplicates(COLUMN)
    several = found["task"].value_counts() > 1
    return [
        Column(
            row.task,
            row.split,
            words.task_name(labels.get("tasks", {}), row.task, row.split if several[row.task] else None),
            words.METRIC_LABELS.get(row.metric, row.metric),
            bool(row.synthetic),
        )
        for row in found.itertuples()
    ]


def group_names(summary, labels: dict) -> dict[tuple, str]:
    """Return {(subset, encoder, head): name} in order; a name has only the parts that differ between groups."""
    keys = summary.loc[~summary["baseline"], ["encoder", "head", "subset"]].drop_duplicates()
    shown = [(kind, f"{kind}s") for kind in keys if keys[kind].nunique() > 1]
    return {
        (row["subset"], row["encoder"], row["head"]): "; ".join(
            labels.get(plural, {}).get(row[kind], row[kind]) for kind, plural in shown
        )
        for row in keys.to_dict("records")
    }


def row_name(row, labels: dict, with_subset: bool = False) -> str:
    """Return the name in print of a summary row: a baseline, or a strategy with its point."""
    if row.baseline:
        name = words.BASELINE_LABELS.get(row.strategy, row.strategy)
        return f"{name} ({labels.get('subsets', {}).get(row.subset, row.subset)})" if with_subset else name
    return words.strategy_name(labels.get("strategies", {}), row.strategy, row.variant)


def _joined(flags) -> str:
    """Return the flags of several runs, each once, joined by semicolons."""
    return ";".join(dict.fromkeys(flag for entry in flags for flag in entry.split(";") if flag))


def _ordered(summary, order: dict):
    """Sort by the spec's order of tasks and strategies; what it leaves out follows in the order of the runs."""
    tasks = {task: place for place, task in enumerate(order.get("tasks", []))}
    strategies = {tuple(pair): place for place, pair in enumerate(order.get("strategies", []))}
    pairs = list(zip(summary["strategy"], summary["variant"], strict=True))
    summary = summary.assign(
        _task=[tasks.get(task, len(tasks)) for task in summary["task"]],
        _strategy=[strategies.get(pair, len(strategies)) for pair in pairs],
        _group=summary.groupby(["subset", "encoder", "head"], sort=False).ngroup(),
    )
    ordered = summary.sort_values(["_task", "_group", "_strategy"], kind="stable")
    return ordered.drop(columns=["_task", "_group", "_strategy"]).reset_index(drop=True)
