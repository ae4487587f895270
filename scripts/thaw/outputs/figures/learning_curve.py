"""Figure: score and price against the number of training rows, a line for each point of a strategy.

With `train` the scores on the training rows too: how far these are above the others says what was memorised.
"""

import itertools
from functools import partial

from thaw.core.errors import UserError
from thaw.outputs.figures import figure_style, panels, strategy_panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.probe_frame import Names
from thaw.outputs.frame.runs_frame import in_role
from thaw.words import wording

TRAINED = {"linewidth": 0.7, "markerfacecolor": "none", "markeredgewidth": 0.9, "markersize": 7}  # of training scores
LINE = ["task", "split", "encoder", "head", "kind", "strategy", "variant"]


def build(data, spec: dict) -> panels.Figure:
    """Return, for each task, the score and the price against the training rows, both axes of the price logarithmic.

    A line joins the means over all draws of a size and all seeds; bars go from the lowest to the highest. Baselines are
    broken lines, scores on training rows thin ones with hollow marks. One size alone is a UserError.
    """
    import pandas

    frame = sizes(data.runs, spec)
    trained = sizes(data.runs, spec | {"split": "train"}) if spec.get("train") else frame[:0]
    if frame["train_rows"].nunique() < 2:
        raise UserError("a size_figure needs several sizes: name two subsets or more in the experiment")
    names, lines = Names(spec, frame), _lines_of(frame, spec)
    groups = list(frame[["encoder", "head"]][frame["kind"] == "run"].drop_duplicates().itertuples(index=False))
    ticks, drawn = sorted(frame["train_rows"].unique()), []
    for group, column in itertools.product(groups, aggregate.columns(frame, spec["labels"])):
        both = ", ".join(names.of(kind, id) for kind, id in group._asdict().items())
        title = "\n".join([column.title] + [both] * (len(groups) > 1))
        rows = aggregate.of_column(frame, column)
        rows = rows[rows["encoder"].isin(["", group.encoder]) & rows["head"].isin(["", group.head])]
        shared = {"rows": rows, "lines": lines, "ticks": ticks}
        mine = (trained[["task", "encoder", "head"]] == [column.task, group.encoder, group.head]).all(axis=1)
        scored = {"trained": trained[mine], "name": f"{column.metric} × 100"}
        drawn.append(panels.Panel(title, partial(_scores, **shared, **scored)))
        drawn.append(panels.Panel(title, partial(_prices, **shared)))
    legend = [panels.entry(name, (colour, marker), linestyle=style) for name, colour, marker, style in lines.values()]
    legend += [] if trained.empty else [panels.entry("On training rows", (figure_style.GREY, "o"), **TRAINED)]
    return panels.compose(drawn, pandas.concat([frame, trained]), legend, wide=2)


def _scores(axis, rows, lines: dict, ticks: list, trained, name: str) -> None:
    _draw_lines(axis, rows, lines, "mean", ("low", "high"))
    for (_, strategy, variant), line in trained.sort_values("train_rows").groupby(["kind", "strategy", "variant"]):
        if look := lines.get(("run", strategy, variant)):
            axis.plot(line["train_rows"], line["mean"], color=look[1], marker=look[2], **TRAINED)
    axis.set_ylabel(name)
    _rows_axis(axis, ticks)


def _prices(axis, rows, lines: dict, ticks: list) -> None:
    from matplotlib.ticker import LogFormatter

    _draw_lines(axis, rows[rows["kind"] == "run"], lines, "price")
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(LogFormatter())
    axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    axis.set_ylabel("Price in s (log scale)")
    _rows_axis(axis, ticks)


def sizes(runs, spec: dict):
    """Return one row per line and number of training rows: mean, low and high of the score x 100, median price."""
    chosen = runs[runs["main"].astype(bool) & in_role(runs, spec["split"]) & (runs["missing"] == "")]
    chosen = chosen[chosen["kind"] != "ensemble"]
    chosen = chosen.assign(value=100 * chosen["value"])
    return (
        chosen.groupby([*LINE, "train_rows"], sort=False, dropna=False)
        .agg(
            metric=("metric", "first"),
            synthetic=("synthetic", "first"),
            mean=("value", "mean"),
            low=("value", "min"),
            high=("value", "max"),
            price=("price_seconds", "median"),
            runs=("value", "size"),
        )
        .reset_index()
    )


def _lines_of(frame, spec: dict) -> dict[tuple, tuple]:
    """Return {(kind, strategy, variant): (name, colour, marker, line style)}: points of a sweep share their colour."""
    rows = frame.drop_duplicates(["kind", "strategy", "variant"])
    named = {
        (row.kind, row.strategy, row.variant): aggregate.row_name(row, spec["labels"]) for row in rows.itertuples()
    }
    runs = [key for key in named if key[0] == "run"]
    colours = strategy_panels.marks_of([strategy for _, strategy, _ in runs], spec)
    markers, broken = figure_style.marks(runs), itertools.cycle(figure_style.BROKEN)
    return {
        key: (name, colours[key[1]][0], markers[key][1], "-")
        if key in markers
        else (name, figure_style.GREY, "", next(broken))
        for key, name in named.items()
    }


def _draw_lines(axis, rows, names: dict, height: str, ends: tuple = ()) -> None:
    """Draw the lines of a panel; with bars between the columns of `ends`."""
    lines = dict(list(rows.sort_values("train_rows").groupby(["kind", "strategy", "variant"])))
    for key, (_, colour, marker, style) in names.items():
        line = lines.get(key, rows[:0])
        bars = panels.bars(line[height], line[ends[0]], line[ends[1]]) if ends and key[0] == "run" else None
        if not line.empty:
            look = {"color": colour, "marker": marker, "linestyle": style, "markersize": 4.5, "elinewidth": 0.8}
            axis.errorbar(line["train_rows"], line[height], yerr=bars, **look)


def _rows_axis(axis, ticks: list) -> None:
    """Make the horizontal axis logarithmic, with a tick at each size."""
    from matplotlib.ticker import NullFormatter, NullLocator

    axis.set_xscale("log")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xticks(ticks, [wording.count(tick) for tick in ticks])
    axis.set_xlabel("Training examples (log scale)")
