"""Figure: score with its interval against the price or another cost, with the Pareto front of what is shown.

The bag of words, which has no price, is a broken line.
"""

import textwrap
from functools import partial
from math import nan

from thaw.outputs.figures import figure_style, label_placement, panels, strategy_panels
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.words import wording

FREE = "bag_of_words"
BROKEN = {wording.BASELINE_LABELS[FREE]: figure_style.BROKEN[0]}
BEST = 100.0  # of a score x 100, above which no tick is drawn where no score is
# By panels in a row: the most points of a panel whose names stand next to them and not in the legend
NAMED = {1: 8, 2: 8, 3: 4}
LETTERS = 16  # of a line of such a name
COSTS = {
    "seconds": ("price", "Price in s (log scale)"),
    "flops": ("flops", "Training FLOPs, forward and\nbackward (log scale)"),
    "inference": ("inference", "FLOPs of one prediction (log scale)"),
    "parameters": ("parameters", "Trainable parameters (log scale)"),
}


def build(data, spec: dict) -> panels.Figure:
    """Return the score against a cost on a logarithmic axis, one panel per task, with the Pareto front.

    The front is that of the points that are shown. With `intervals` each has a bar, its 95 % CI as tables print it. The
    price is the median over seeds, other costs are the mean. A run without the cost, as one from before predictions
    were counted, is in the CSV alone.
    """
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    cost, axis_name = COSTS[spec.get("cost", "seconds")]
    summary["line"] = summary["fitted"].cumsum() - 1  # of the numbers behind the figure
    labels = spec["labels"]
    contrasts = Contrasts(data.runs, spec["split"], data.predictions) if spec.get("intervals") else None
    ends = [_interval(row, contrasts) for row in summary.itertuples()]
    summary["ci_low"], summary["ci_high"] = zip(*ends, strict=True)
    marks = strategy_panels.strategy_marks(summary, spec)
    fronts, parts, drawn = [], [], []
    for title, column, rows in strategy_panels.task_panels(summary, labels):
        fitted = rows[rows["fitted"] & (rows[cost] > 0)]  # a logarithmic axis has no zero
        front = fitted.loc[front_of(fitted, cost)].sort_values(cost)
        fronts += list(front.index)
        shown = rows[rows.index.isin(fitted.index) | (rows["baseline"] & (rows["strategy"] == FREE))]
        baseline = partial(strategy_panels.reference_lines, rows=shown, labels=labels, broken=BROKEN)
        axes = (axis_name, column.metric)
        draw = partial(_points, fitted=fitted, front=front, marks=marks, cost=cost, names=axes, baseline=baseline)
        parts.append((title, draw, fitted, front))
    most = NAMED[figure_style.per_row(len(parts))]
    direct = all(len(fitted) <= most for *_, fitted, _ in parts)
    for title, draw, fitted, front in parts:
        names = _names(fitted[fitted["mean"].notna()], labels, direct)
        label = partial(_label, rows=fitted, front=front, cost=cost, names=names, marks=marks)
        drawn.append(panels.Panel(title, draw, label))
    line = panels.entry("Pareto front", (figure_style.GREY, None), linewidth=0.8)
    bar = panels.entry("95 % CI", (figure_style.GREY, "|"), markersize=9, linestyle="none")
    named = strategy_panels.legend(summary, spec, {} if direct else marks, lines=False)
    lines = [line] * any(len(front) > 1 for *_, front in parts) + [bar] * bool(contrasts)
    legend = [*named, *strategy_panels.hollow_entry(fitted for *_, fitted, _ in parts), *lines]
    numbers = summary.assign(pareto=summary.index.isin(fronts))
    extra = ["inference"] * (cost == "inference") + ["ci_low", "ci_high", "pareto"]
    return panels.compose(drawn, strategy_panels.numbers(numbers[numbers["fitted"]], extra), legend)


def _interval(row, contrasts: Contrasts | None) -> tuple[float, float]:
    """Return the ends of the 95 % CI of a row of the summary; NaN where it has none."""
    if contrasts is None or not row.fitted or row.mean != row.mean:
        return nan, nan
    ci = contrasts.interval(row._asdict(), row.split)
    return ci.low, ci.high


def _points(axis, fitted, front, marks: dict, cost: str, names: tuple[str, str], baseline) -> list[tuple]:
    """Draw the points of one panel and their front, and return these.

    Args: names of the cost and of the metric; what draws the line of the bag of words.
    """
    _cost_axes(axis, fitted[cost], names[0])
    axis.set_ylabel(f"{names[1]} × 100")
    axis.plot(front[cost], front["mean"], color=figure_style.GREY, linewidth=0.8, zorder=2)
    empty, points = strategy_panels.hollow(fitted), []
    for row in fitted[fitted["mean"].notna()].itertuples():
        colour, marker = marks[row.strategy]
        axis.plot([getattr(row, cost)] * 2, [row.ci_low, row.ci_high], color=colour, linewidth=0.9, zorder=3)
        look = {"color": colour, "marker": marker, "markerfacecolor": "white" if empty[row.Index] else colour}
        axis.plot(getattr(row, cost), row.mean, markersize=5.5, zorder=4, **look)
        points.append((getattr(row, cost), row.mean, row.line))
    axis.margins(y=0.16)
    baseline(axis)
    if fitted["mean"].max() <= BEST:
        low, high = axis.get_ylim()
        axis.set_yticks([tick for tick in axis.get_yticks() if low <= tick <= min(high, BEST)])
    return points


def front_of(rows, cost: str) -> list:
    """Return the index of the rows on the Pareto front of score and cost; what has no score is not on it."""
    points = dict(zip(rows.index, zip(rows[cost], rows["mean"], strict=True), strict=True))
    points = {place: one for place, one in points.items() if one[1] == one[1]}
    return [
        place
        for place, one in points.items()
        if not any(other[0] <= one[0] and other[1] >= one[1] and other != one for other in points.values())
    ]


def _cost_axes(axis, values, name: str) -> None:
    """Make the horizontal axis logarithmic with plain numbers at 1, 2 and 5, or at 1 alone where it is long."""
    least, most = (values.min(), values.max()) if len(values) else (1.0, 1.0)
    panels.log_axis(axis, (1.0,) if most / least > 60 else (1.0, 2.0, 5.0))
    room = max(2.3, (most / least) ** 0.12)  # so that at least two numbers of 1, 2 and 5 are on the axis
    axis.set_xlim(least / room, most * room)
    axis.set_xlabel(name)


def _names(rows, labels: dict, direct: bool) -> list[str]:
    """Return what is written next to each point: its place in a sweep, and with `direct` at the first the strategy."""
    first = ~rows["strategy"].duplicated() & direct
    names = [
        wording.strategy_name(labels, row.strategy, row.variant) if first[row.Index] else wording.point(row.variant)
        for row in rows.itertuples()
    ]
    return [textwrap.fill(name, LETTERS, break_long_words=False) for name in names]


def _label(axis, rows, front, cost: str, names: list[str], marks: dict) -> None:
    """Name points in their colours, clear of marks, bars and the front. Args: names of the rows with a score."""
    rows = rows[rows["mean"].notna()]
    points = list(zip(rows[cost], rows["mean"], strict=True))
    paths = [list(zip(front[cost], front["mean"], strict=True))]
    bars = rows[rows["ci_low"].notna()]
    paths += [[(row[cost], row["ci_low"]), (row[cost], row["ci_high"])] for _, row in bars.iterrows()]
    label_placement.label_points(axis, points, names, paths, [marks[strategy][0] for strategy in rows["strategy"]])
