"""Figure: score against the number of fine-tuned layers."""

import itertools
import textwrap
from functools import partial

from thaw.core.errors import UserError
from thaw.outputs.figures import figure_style, panels, strategy_panels
from thaw.outputs.frame import aggregate
from thaw.words import wording

LETTERS = 16  # of a line of an axis' name
LEAST_SPAN = 5.0  # points on the axis of scores: of two strategies that differ by a tenth none looks far ahead


def build(data, spec: dict) -> panels.Figure:
    """Return the score against the number of thawed layers, one panel per task.

    A line joins the points of one sweep that read pairs alike, with a band over seeds; hollow marks read pairs as a
    bi-encoder; runs that also train the embeddings are separate points on the right; baselines and ensembles
    are broken lines. With `minus` it is the difference to the mean of that strategy, as the authors of Lee et al. 2019
    draw it.
    """
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    if minus := spec.get("minus"):
        summary = _less(summary, minus)
    less = f"less {wording.label(spec['labels'], 'strategies', minus)}" if minus else ""
    of = "\n".join(["", *textwrap.wrap(less, LETTERS)])
    summary["line"] = range(len(summary))  # of the numbers behind the figure
    marks = strategy_panels.strategy_marks(summary, spec)
    layers = int(summary.loc[summary["fitted"], "thawed"].max())
    positions = _positions(summary[summary["fitted"]], list(marks), layers)
    names = dict.fromkeys(aggregate.row_name(row, spec["labels"]) for row in summary[~summary["fitted"]].itertuples())
    broken = dict(zip(names, itertools.cycle(figure_style.BROKEN)))

    shown = strategy_panels.task_panels(summary, spec["labels"])

    def draw(axis, column, rows) -> list[tuple]:
        points = _strategies(axis, rows, marks, positions)
        _layer_axes(axis, layers, positions.values())
        axis.margins(y=0.1)
        low, high = axis.get_ylim()
        if (room := (LEAST_SPAN - high + low) / 2) > 0:
            axis.set_ylim(low - room, high + room)
        axis.set_ylabel(f"{column.metric} × 100{of}")
        strategy_panels.reference_lines(axis, rows, spec["labels"], broken)
        return points

    drawn = [panels.Panel(title, partial(draw, column=column, rows=rows)) for title, column, rows in shown]
    band = panels.band_entry(summary, deviation=True, drawn="Band, bar")
    named = strategy_panels.legend(summary, spec, marks)
    legend = [*named, *strategy_panels.hollow_entry(r for *_, r in shown), *band]
    return panels.compose(drawn, strategy_panels.numbers(summary), legend)


def _less(summary, strategy: str):
    """Return the rows of runs with the mean of a strategy of the same task, encoder, head and subset taken off."""
    cell = [*aggregate.COLUMN, "encoder", "head", "subset"]
    whole = summary[(summary["strategy"] == strategy) & summary["fitted"]].set_index(cell)["mean"]
    if whole.empty:
        raise UserError(f"minus: {strategy} has no result yet; run it, or leave minus out")
    fitted = summary[summary["fitted"]]
    fitted = fitted[[key in whole.index for key in fitted[cell].itertuples(index=False, name=None)]]
    base = whole.loc[list(fitted[cell].itertuples(index=False, name=None))].to_numpy()
    return fitted.assign(**{name: fitted[name] - base for name in ("mean", "low", "high")})


def _positions(fitted, strategies: list[str], layers: int) -> dict[str, float]:
    """Return the horizontal positions of strategies without a sweep: at their number of layers, side by side.

    Strategies that also train the embeddings are right of the last layer.
    """
    single = fitted[~fitted["swept"]].drop_duplicates("strategy").set_index("strategy")
    whole = [id for id in strategies if id in single.index and single.loc[id, "embeddings"]]
    positions = {id: layers + 1.25 + 0.8 * i for i, id in enumerate(whole)}
    swept = set(fitted.loc[fitted["swept"], "thawed"])
    for thawed, rows in single[~single.index.isin(whole)].groupby("thawed"):
        left = thawed - 0.14 * (len(rows) - 1) - 0.25 * (thawed in swept)
        positions |= {id: left + 0.28 * i for i, id in enumerate(id for id in strategies if id in rows.index)}
    return positions


def _strategies(axis, rows, marks: dict, positions: dict) -> list[tuple]:
    """Draw the strategies of a panel, and return their points."""
    fitted = rows[rows["fitted"]]
    drawn: list[tuple] = []
    for id, (colour, marker) in marks.items():
        points = fitted[(fitted["strategy"] == id) & fitted["mean"].notna()].sort_values("thawed")
        if points.empty:
            continue
        low, high = _spread(points)
        if id not in positions:
            _sweep(axis, points, colour)
            axis.fill_between(points["thawed"], low, high, color=colour, alpha=0.2, linewidth=0, zorder=2)
        else:
            bars = panels.bars(points["mean"], low, high)
            axis.errorbar([positions[id]], points["mean"], yerr=bars, fmt="none", ecolor=colour, elinewidth=1, zorder=5)
        for empty, part in points.groupby(strategy_panels.hollow(fitted).loc[points.index]):
            face, across = "white" if empty else colour, [positions.get(id, thawed) for thawed in part["thawed"]]
            look = {"color": colour, "marker": marker, "markerfacecolor": face, "linestyle": "none", "markersize": 6}
            axis.plot(across, part["mean"], zorder=6, **look)
            drawn += zip(across, part["mean"], part["line"], strict=True)
    return drawn


def _sweep(axis, points, colour) -> None:
    """Join the points of a sweep that read pairs in the same way, from one number of layers to the next."""
    rows = list(points.itertuples())
    for one, other in itertools.pairwise(rows):
        if one.pairs == other.pairs:
            axis.plot([one.thawed, other.thawed], [one.mean, other.mean], color=colour, zorder=4)


def _layer_axes(axis, layers: int, positions) -> None:
    """Label the horizontal axis: 0 to L fine-tuned layers, then the full model with the embeddings."""
    ticks = panels.layer_ticks(layers)
    names = [str(n) for n in ticks]
    whole = [position for position in positions if position > layers + 0.6]
    axis.set_xlim(min([-0.1, *positions]) - 0.4, max([layers, *positions]) + 0.5)
    if whole:
        middle = sum(whole) / len(whole)
        ticks, names = [*ticks, middle], [*names, "full"]
        axis.axvline(layers + 0.6, color="#c4c9d0", linewidth=0.7)
    axis.set_xticks(ticks, names)
    axis.set_xlabel("Fine-tuned top layers" + ("\n(full: embeddings too)" if whole else ""))


def _spread(points) -> tuple:
    """Return lower and upper ends of the spread over seeds: mean ± sd from three seeds on, the range for two."""
    if points["seeds"].max() >= 3:
        sd = points["sd"].fillna(0).where(~points["shared"], 0)
        return points["mean"] - sd, points["mean"] + sd
    return points["low"], points["high"]
