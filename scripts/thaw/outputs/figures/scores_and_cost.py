"""Figures: score against number of thawed layers, and score against cost; with the numbers behind them."""

import itertools

from thaw.core.files import write_text
from thaw.outputs import wording
from thaw.outputs.figures import figure_style, label_placement
from thaw.outputs.figures.learning_curve import size_figure
from thaw.outputs.figures.speedup import saving_figure
from thaw.outputs.frame import aggregate
from thaw.statistics.non_inferiority import pareto

CSV_COLUMNS = [
    *"task split subset encoder head strategy variant thawed embeddings".split(),
    *"mean sd low high seeds seconds flops parameters".split(),
]
COSTS = {
    "seconds": ("seconds", "Training time in s, with share of\nfeature extraction (log scale)"),
    "flops": ("flops", "Training FLOPs, forward and\nbackward (log scale)"),
    "parameters": ("parameters", "Trained parameters (log scale)"),
}


def draw(runs, spec: dict, prefix) -> None:
    """Draw an output's figure and write PDF, SVG, PNG and the CSV behind them under a path prefix."""
    if draw := {"size_figure": size_figure, "saving_figure": saving_figure}.get(spec["kind"]):
        return draw(runs, spec, prefix)
    found = aggregate.summarise(runs, aggregate.role(spec), spec["order"])
    panels = task_panels(found, spec["labels"])
    return {"layer_figure": layer_figure, "cost_figure": cost_figure}[spec["kind"]](found, panels, spec, prefix)


def task_panels(found, labels: dict) -> list[tuple]:
    """Return (title, column, rows) per panel: each task with a score, and where there are several, each group of runs.

    A title ends in ‡ where a run is missing.
    """
    import pandas

    panels = []
    for group, name in aggregate.group_names(found, labels).items():
        beside = found[found["kind"].isin(aggregate.BESIDE)]
        mine = pandas.concat([aggregate.runs_of(found, group), aggregate.baselines_of(found, group), beside])
        for column in aggregate.columns(found, labels):
            rows = mine[(mine["task"] == column.task) & (mine["split"] == column.split)]
            if rows.loc[rows["fitted"], "mean"].notna().any():
                mark = f" {wording.MISSING}" if rows["missing"].any() else ""
                parts = [name, column.label + mark, wording.SYNTHETIC if column.synthetic else ""]
                panels.append(("\n".join(part for part in parts if part), column, rows))
    return panels


def _write_csv(frame, prefix, extra=()) -> None:
    """Write the numbers behind a figure: the same means and deviations as in the tables (scores x 100)."""
    numbers = frame[[*CSV_COLUMNS, *extra]].round({name: 4 for name in ("mean", "sd", "low", "high", "seconds")})
    write_text(f"{prefix}.csv", numbers.to_csv(index=False, lineterminator="\n"))


def strategy_marks(found, spec: dict) -> dict[str, tuple]:
    """Return the marks of the strategies that a figure shows."""
    shown = set(found.loc[found["fitted"], "strategy"])
    known = [strategy for strategy, _ in spec["order"].get("strategies", [])]
    marks = figure_style.marks([*known, *found.loc[found["fitted"], "strategy"]])
    return {strategy: mark for strategy, mark in marks.items() if strategy in shown}


def handles(found, spec: dict, marks: dict, lines: bool = True) -> list:
    """Return a legend entry per strategy, a line where it is swept and `lines` are drawn, and one for missing runs."""
    from matplotlib.lines import Line2D

    names, swept = spec["labels"].get("strategies", {}), set(found.loc[found["swept"] & lines, "strategy"])
    handles = [
        Line2D([], [], color=colour, marker=marker, label=names.get(id, id), linestyle="-" if id in swept else "none")
        for id, (colour, marker) in marks.items()
    ]
    sign = Line2D(
        [], [], color=figure_style.GREY, marker=r"$\ddagger$", markersize=7, linestyle="none", label="A run is missing"
    )
    return handles + [sign] * bool(found["missing"].any())


# --- score against number of thawed layers ---------------------------------------------------------------------


def layer_figure(found, panels, spec: dict, prefix) -> None:
    """Draw the score against the number of thawed layers, one panel per task.

    A line joins the points of one sweep, with a band over seeds; the runs that train the embeddings too stand apart on
    the right and are never joined; baselines and external predictions are broken lines.
    """
    from matplotlib.patches import Patch

    marks = strategy_marks(found, spec)
    layers = int(found.loc[found["fitted"], "thawed"].max())
    places = _places(found[found["fitted"]], list(marks), layers)
    names = dict.fromkeys(aggregate.row_name(row, spec["labels"]) for row in found[~found["fitted"]].itertuples())
    broken = dict(zip(names, itertools.cycle(figure_style.BROKEN)))
    with figure_style.panels([title for title, *_ in panels]) as (figure, axes):
        for axis, (_, column, rows) in zip(axes, panels, strict=True):
            _layer_panel(axis, rows, marks, places)
            _layer_axes(axis, layers, places.values())
            axis.margins(y=0.1)
            axis.set_ylabel(f"{column.metric} × 100")
            _beside_lines(axis, rows, spec["labels"], broken)
        spread = _spread_name(found)
        band = [Patch(facecolor="#9ca3af", alpha=0.4, label=spread)] if spread else []
        figure_style.legend(figure, [*handles(found, spec, marks), *band, *_beside_handles(axes)])
        figure_style.save(figure, prefix)
    _write_csv(found, prefix)


def _places(fitted, strategies: list[str], layers: int) -> dict[str, float]:
    """Return where the strategies without a sweep stand: at their number of layers, each clear of the others there.

    Those that train the embeddings too stand right of the last layer.
    """
    single = fitted[~fitted["swept"]].drop_duplicates("strategy").set_index("strategy")
    whole = [id for id in strategies if id in single.index and single.loc[id, "embeddings"]]
    places = {id: layers + 1.25 + 0.8 * i for i, id in enumerate(whole)}
    swept = set(fitted.loc[fitted["swept"], "thawed"])
    for thawed, rows in single[~single.index.isin(whole)].groupby("thawed"):
        left = thawed - 0.14 * (len(rows) - 1) - 0.25 * (thawed in swept)
        places |= {id: left + 0.28 * i for i, id in enumerate(id for id in strategies if id in rows.index)}
    return places


def _layer_panel(axis, rows, marks: dict, places: dict) -> None:
    """Draw one panel's strategies."""
    fitted = rows[rows["fitted"]]
    for id, (colour, marker) in marks.items():
        points = fitted[fitted["strategy"] == id].sort_values("thawed")
        if points.empty:
            continue
        low, high = _spread(points)
        if id not in places:
            axis.plot(points["thawed"], points["mean"], color=colour, marker=marker, zorder=4)
            axis.fill_between(points["thawed"], low, high, color=colour, alpha=0.2, linewidth=0, zorder=2)
        else:
            bars = [points["mean"] - low, high - points["mean"]]
            axis.errorbar(
                places[id], points["mean"], yerr=bars, fmt=marker, color=colour, markersize=6, elinewidth=1, zorder=5
            )


def _layer_axes(axis, layers: int, places) -> None:
    """Label the horizontal axis: 0 to L thawed layers, then everything with the embeddings."""
    step = 1 if layers <= 6 else 2 if layers <= 12 else 4
    ticks, names = list(range(0, layers + 1, step)), [str(n) for n in range(0, layers + 1, step)]
    whole = [place for place in places if place > layers + 0.6]
    axis.set_xlim(min([-0.1, *places]) - 0.4, max([layers, *places]) + 0.5)
    if whole:
        middle = sum(whole) / len(whole)
        ticks, names = [*ticks, middle], [*names, "full"]
        axis.axvline(layers + 0.6, color="#c4c9d0", linewidth=0.7)
    axis.set_xticks(ticks, names)
    axis.set_xlabel("Thawed layers, from the top" + ("\n(full: embeddings too)" if whole else ""))


def _spread(points) -> tuple:
    """Return lower and upper ends of the spread over seeds: mean ± sd from three seeds on, the range for two."""
    if points["seeds"].max() >= 3:
        sd = points["sd"].fillna(0).where(~points["shared"], 0)
        return points["mean"] - sd, points["mean"] + sd
    return points["low"], points["high"]


def _spread_name(found) -> str:
    """Return what band and bars show, empty for a single seed."""
    seeds = int(found["seeds"].max())
    if seeds < 2:
        return ""
    return f"Band, bar: mean ± sd of {seeds} seeds" if seeds >= 3 else "Band, bar: range of 2 seeds"


def _beside_lines(axis, rows, labels: dict, broken: dict) -> None:
    """Draw baselines and external predictions as broken lines; one far below the runs is a note at the lower edge."""
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
        place = {"xycoords": "axes fraction", "xytext": (0, 2), "textcoords": "offset points"}
        axis.annotate("\n".join(far), (1, 0), **place, **look)
        share = min(0.11 * len(far), 0.5)
        low = (low - share * high) / (1 - share)
    axis.set_ylim(low, high)


def _beside_handles(axes) -> list:
    """Return one legend entry for each of the broken lines that some panel has."""
    lines = [line for axis in axes for line in axis.get_lines() if not line.get_label().startswith("_")]
    return list({line.get_label(): line for line in lines}.values())


# --- score against cost ----------------------------------------------------------------------------------------


def cost_figure(found, panels, spec: dict, prefix) -> None:
    """Draw the score against the cost of training on a logarithmic axis, one panel per task, with the Pareto front.

    Cost is the mean over seeds, with the runs that a run started from; seconds have the run's share of extraction.
    """
    from matplotlib.lines import Line2D

    cost, axis_name = COSTS[spec.get("cost", "seconds")]
    marks = strategy_marks(found, spec)
    # What cost nothing has no place on a logarithmic axis.
    panels = [(title, column, rows[~rows["fitted"] | (rows[cost] > 0)]) for title, column, rows in panels]
    fronts = [index for _, _, rows in panels for index in front_of(rows[rows["fitted"]], cost)]
    with figure_style.panels([title for title, *_ in panels]) as (figure, axes):
        for axis, (_, column, rows) in zip(axes, panels, strict=True):
            fitted = rows[rows["fitted"]]
            _cost_axes(axis, fitted[cost], axis_name)
            axis.set_ylabel(f"{column.metric} × 100")
            front = fitted[fitted.index.isin(fronts)].sort_values(cost)
            axis.step(front[cost], front["mean"], where="post", color=figure_style.GREY, linewidth=0.8, zorder=2)
            for row in fitted.itertuples():
                colour, marker = marks[row.strategy]
                axis.plot(getattr(row, cost), row.mean, color=colour, marker=marker, markersize=5.5, zorder=4)
            axis.margins(y=0.16)
        line = Line2D([], [], color=figure_style.GREY, linewidth=0.8, label="Pareto front")
        figure_style.legend(figure, [*handles(found, spec, marks, lines=False), line])
        figure_style.freeze_layout(figure)
        for axis, (_, _, rows) in zip(axes, panels, strict=True):
            front = rows[rows.index.isin(fronts)].sort_values(cost)
            _sweep_labels(axis, rows[rows["fitted"]], front, cost)
        figure_style.save(figure, prefix)
    found = found.assign(pareto=found.index.isin(fronts))
    _write_csv(found[found["fitted"]], prefix, ["pareto"])


def front_of(rows, cost: str) -> list:
    """Return the index of the rows on the Pareto front of score and cost; what has no score is not on it."""
    rows = rows[rows["mean"].notna()].sort_values(cost)
    return list(rows.index[pareto([{"cost": row[cost], "score": -row["mean"]} for _, row in rows.iterrows()])])


def _cost_axes(axis, values, name: str) -> None:
    """Make the horizontal axis logarithmic with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_xscale("log")
    least, most = (values.min(), values.max()) if len(values) else (1.0, 1.0)
    room = max(1.6, (most / least) ** 0.12)
    axis.set_xlim(least / room, most * room)
    wide = most / least > 60
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: wording.short(value)))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel(name)


def _sweep_labels(axis, rows, front, cost: str) -> None:
    """Name the points of sweeps by their value, clear of all marks and of the front; the legend names strategies."""
    rows = rows[rows["mean"].notna()]
    points = list(zip(rows[cost], rows["mean"], strict=True))
    steps = list(zip(front[cost], front["mean"], strict=True))
    corners = [corner for a, b in itertools.pairwise(steps) for corner in (a, (b[0], a[1]), b)]
    label_placement.label_points(axis, points, [wording.point(variant) for variant in rows["variant"]], corners)
