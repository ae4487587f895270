"""What figures of strategies share: a panel for each task and group of runs, a mark for each strategy, the CSV."""

from thaw.outputs import wording
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame import aggregate

CSV_COLUMNS = [
    *"task split subset encoder head strategy variant thawed embeddings".split(),
    *"mean sd low high seeds seconds flops parameters".split(),
]


def task_panels(found, labels: dict) -> list[tuple]:
    """Return (title, column, rows) per panel: each task with a score, and where there are several, each group of runs.

    A title ends in ‡ where a run is missing.
    """
    import pandas

    shown = []
    for group, name in aggregate.group_names(found, labels).items():
        beside = found[found["kind"].isin(aggregate.BESIDE)]
        mine = pandas.concat([aggregate.runs_of(found, group), aggregate.baselines_of(found, group), beside])
        for column in aggregate.columns(found, labels):
            rows = mine[(mine["task"] == column.task) & (mine["split"] == column.split)]
            if rows.loc[rows["fitted"], "mean"].notna().any():
                mark = f" {wording.MISSING}" if rows["missing"].any() else ""
                parts = [name, column.label + mark, wording.SYNTHETIC if column.synthetic else ""]
                shown.append(("\n".join(part for part in parts if part), column, rows))
    return shown


def csv_of(frame, extra=()) -> str:
    """Return the numbers behind a figure: the same means and deviations as in the tables (scores x 100)."""
    numbers = frame[[*CSV_COLUMNS, *extra]].round({name: 4 for name in ("mean", "sd", "low", "high", "seconds")})
    return numbers.to_csv(index=False, lineterminator="\n")


def strategy_marks(found, spec: dict) -> dict[str, tuple]:
    """Return the marks of the strategies that a figure shows."""
    shown = set(found.loc[found["fitted"], "strategy"])
    known = [strategy for strategy, _ in spec["order"].get("strategies", [])]
    marks = figure_style.marks([*known, *found.loc[found["fitted"], "strategy"]])
    return {strategy: mark for strategy, mark in marks.items() if strategy in shown}


def legend(found, spec: dict, marks: dict, lines: bool = True) -> list:
    """Return a legend entry per strategy, a line where it is swept and `lines` are drawn, and one for missing runs."""
    names, swept = spec["labels"].get("strategies", {}), set(found.loc[found["swept"] & lines, "strategy"])
    entries = [
        panels.entry(names.get(id, id), mark, linestyle="-" if id in swept else "none") for id, mark in marks.items()
    ]
    sign = (figure_style.GREY, r"$\ddagger$")
    missing = [panels.entry("A run is missing", sign, markersize=7, linestyle="none")]
    return entries + missing * bool(found["missing"].any())
