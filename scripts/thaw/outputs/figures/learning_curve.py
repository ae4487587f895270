"""Figure: score and seconds of training against the number of training rows, a line for each point of a strategy."""

import itertools

from thaw.core.errors import UserError
from thaw.core.files import write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style
from thaw.outputs.frame import aggregate

LINE = ["task", "split", "encoder", "head", "kind", "strategy", "variant"]


def size_figure(runs, spec: dict, prefix) -> None:
    """Draw, for each task, the score and the seconds against the training rows, both axes of the seconds logarithmic.

    A line joins the means over all draws of a size and all seeds; bars go from the lowest to the highest. Baselines are
    broken lines. Args: runs as `read_runs` gives them; spec as step `figure` gets it. One size alone is a UserError.
    """
    found = sizes(runs, spec)
    if found["train_rows"].nunique() < 2:
        raise UserError("a size_figure needs several sizes: name two subsets or more in the experiment")
    names = _names(found, spec["labels"])
    groups = list(found[["encoder", "head"]][found["kind"] == "run"].drop_duplicates().itertuples(index=False))
    panels = [(group, column) for group in groups for column in aggregate.columns(found, spec["labels"])]
    titles = [_title(group, column, spec["labels"], len(groups) > 1) for group, column in panels]
    with figure_style.panels([title for title in titles for _ in range(2)], wide=2) as (figure, axes):
        for place, (group, column) in enumerate(panels):
            mine = found[(found["task"] == column.task) & (found["split"] == column.split)]
            mine = mine[mine["encoder"].isin(["", group.encoder]) & mine["head"].isin(["", group.head])]
            score, seconds = axes[2 * place], axes[2 * place + 1]
            _lines(score, mine, names, "mean", ("low", "high"))
            _lines(seconds, mine[mine["kind"] == "run"], names, "seconds")
            seconds.set_yscale("log")
            score.set_ylabel(f"{column.metric} × 100")
            seconds.set_ylabel("Training time in s (log scale)")
            for axis in (score, seconds):
                _rows_axis(axis, sorted(found["train_rows"].unique()))
        figure_style.legend(figure, _handles(names))
        figure_style.save(figure, prefix)
    numbers = found.round({name: 4 for name in ("mean", "low", "high", "seconds")})
    write_text(f"{prefix}.csv", numbers.to_csv(index=False, lineterminator="\n"))


def sizes(runs, spec: dict):
    """Return one row per line and number of training rows: mean, low and high of the score x 100, seconds, seeds."""
    chosen = runs[runs["main"].astype(bool) & (runs["role"] == aggregate.role(spec)) & (runs["missing"] == "")]
    chosen = chosen[~chosen["kind"].isin(aggregate.BESIDE)]
    spent = chosen["train_seconds"] + chosen["after_seconds"] + chosen["extraction_seconds"]
    chosen = chosen.assign(value=100 * chosen["value"], spent=spent)
    return (
        chosen.groupby([*LINE, "train_rows"], sort=False, dropna=False)
        .agg(
            metric=("metric", "first"),
            synthetic=("synthetic", "first"),
            mean=("value", "mean"),
            low=("value", "min"),
            high=("value", "max"),
            seconds=("spent", "mean"),
            runs=("value", "size"),
        )
        .reset_index()
    )


def _names(found, labels: dict) -> dict[tuple, tuple]:
    """Return {(kind, strategy, variant): (name, colour, marker, line style)}."""
    rows = found.drop_duplicates(["kind", "strategy", "variant"])
    named = {(row.kind, row.strategy, row.variant): aggregate.row_name(row, labels) for row in rows.itertuples()}
    marks = figure_style.marks([name for key, name in named.items() if key[0] == "run"])
    broken = itertools.cycle(figure_style.BROKEN)
    return {
        key: (name, *marks[name], "-") if key[0] == "run" else (name, figure_style.GREY, "", next(broken))
        for key, name in named.items()
    }


def _title(group, column, labels: dict, several: bool) -> str:
    """Return a panel's title: the task, with encoder and head where there are several of them."""
    names = [labels.get(f"{kind}s", {}).get(id, id) for kind, id in zip(group._fields, group, strict=True)]
    return "\n".join([column.title, ", ".join(names)] if several else [column.title])


def _lines(axis, rows, names: dict, height: str, ends: tuple = ()) -> None:
    """Draw the lines of a panel; with bars between the columns of `ends`."""
    lines = dict(list(rows.sort_values("train_rows").groupby(["kind", "strategy", "variant"])))
    for key, (_, colour, marker, style) in names.items():
        line = lines.get(key, rows[:0])
        bars = [line[height] - line[ends[0]], line[ends[1]] - line[height]] if ends and key[0] == "run" else None
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
    axis.set_xlabel("Training rows (log scale)")


def _handles(names: dict) -> list:
    """Return a legend entry for each line."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=colour, marker=marker, linestyle=style, label=name)
        for name, colour, marker, style in names.values()
    ]
