"""Shared by figures of strategies: panels per task and group of runs, marks, legend and numbers."""

from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame import aggregate
from thaw.words import wording

COLUMNS = [
    *"task split subset encoder head strategy variant thawed embeddings".split(),
    *"mean sd low high seeds price flops parameters".split(),
]


def task_panels(summary, labels: dict) -> list[tuple]:
    """Return (title, column, rows) per panel: each task with a score, and where there are several, each group of runs.

    A title ends in ‡ where a run is missing.
    """
    shown, rows_of = [], aggregate.SummaryRows(summary)
    for group, name in aggregate.group_names(summary, labels).items():
        parts = rows_of.runs(group), rows_of.baselines(group), rows_of.ensembles
        mine = summary.loc[[row.Index for part in parts for row in part]]
        for column in aggregate.columns(summary, labels):
            rows = aggregate.of_column(mine, column)
            if rows.loc[rows["fitted"], "mean"].notna().any():
                mark = f" {wording.MISSING}" if rows["missing"].any() else ""
                words = [name, column.label + mark, wording.SYNTHETIC if column.synthetic else ""]
                shown.append(("\n".join(word for word in words if word), column, rows))
    return shown


def numbers(frame, extra=()):
    """Return the numbers behind a figure: the same means and standard deviations as in the tables (scores x 100)."""
    return frame[[*COLUMNS, *extra]]


def strategy_marks(summary, spec: dict) -> dict[str, tuple]:
    return marks_of(summary.loc[summary["fitted"], "strategy"], spec)


def marks_of(strategies, spec: dict) -> dict[str, tuple]:
    """Return {strategy: (colour, marker)} of some strategies, the same in every figure of an experiment."""
    known = [strategy for strategy, _ in spec["order"].get("strategies", [])]
    marks, shown = figure_style.marks([*known, *strategies]), set(strategies)
    return {strategy: mark for strategy, mark in marks.items() if strategy in shown}


def hollow(rows):
    """Return which rows get a hollow mark: those that read pairs as a bi-encoder where others do as a cross-encoder."""
    separate = rows["pairs"] == "separate"
    return separate & bool((rows["fitted"] & (rows["pairs"] == "joint")).any())


def hollow_entry(panels_rows) -> list:
    """Return the entry of a legend for hollow marks, if some panel has one. Args: the rows of each panel."""
    if not any(hollow(rows[rows["fitted"]]).any() for rows in panels_rows):
        return []
    return [panels.hollow_entry("Hollow: bi-encoder")]


def legend(summary, spec: dict, marks: dict, lines: bool = True) -> list:
    """Return a legend entry per strategy, a line where it is swept and `lines` are drawn, and one for missing runs."""
    swept = set(summary.loc[summary["swept"] & lines, "strategy"])
    entries = [
        panels.entry(wording.label(spec["labels"], "strategies", id), mark, linestyle="-" if id in swept else "none")
        for id, mark in marks.items()
    ]
    sign = (figure_style.GREY, r"$\ddagger$")
    missing = [panels.entry("A run is missing", sign, markersize=7, linestyle="none")]
    return entries + missing * bool(summary["missing"].any())


def reference_lines(axis, rows, labels: dict, broken: dict) -> None:
    """Draw baselines and ensembles as broken lines; one far below the runs is a note at the lower edge."""
    low, high = axis.get_ylim()
    span, lowest, far = high - low, rows.loc[rows["fitted"], "mean"].min(), []
    for row in rows[~rows["fitted"] & rows["mean"].notna()].sort_values("mean", ascending=False).itertuples():
        name = aggregate.row_name(row, labels)
        if row.mean < lowest - 0.8 * span:
            far.append(f"↓ {name} {wording.number(row.mean)}")
        else:
            look = {"color": figure_style.GREY, "linewidth": 0.9, "linestyle": broken[name]}
            axis.axhline(row.mean, zorder=1, label=name, **look)
            low, high = min(low, row.mean - 0.03 * span), max(high, row.mean + 0.03 * span)
    if far:
        look = {"fontsize": 6.5, "color": figure_style.GREY, "ha": "right", "va": "bottom"}
        position = {"xycoords": "axes fraction", "xytext": (0, 2), "textcoords": "offset points"}
        axis.annotate("\n".join(far), (1, 0), **position, **look)
        share = min(0.11 * len(far), 0.5)
        low = (low - share * high) / (1 - share)
    axis.set_ylim(low, high)
