"""A table of how far each strategy gets from one that thaws nothing towards full fine-tuning, and at what cost.

D draws.
"""

from dataclasses import dataclass
from statistics import mean, median
from typing import NamedTuple

import numpy as np

from thaw.core.errors import UserError
from thaw.declarations.decision import FEWEST_OF_INTERVAL
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.aggregation import chance_corrected
from thaw.statistics.bootstrap import Interval, Resampled, interval

HEADER = (
    "task split subset encoder head strategy variant metric seeds score start full far_enough share low high "
    "price cost inference"
)
MEDIAN = "Median"


@dataclass(frozen=True)
class Way:
    """How far a strategy gets on a task: its row of the summary, three mean scores, the share in % with its interval.

    The share is None where full fine-tuning is not clearly above the start. Costs are in % of full fine-tuning's: the
    price, and the operations of one prediction (NaN where they are not known).
    """

    row: object
    seeds: int
    scores: tuple[float, float, float]
    share: Interval | None
    cost: float
    inference: float


def build(data, spec: dict) -> TextTable:
    """Return for every strategy and task the share of the way from start to reference, and of the reference's cost.

    Args: spec with `start` and `reference`, strategies of the experiment. Raises UserError where one has no run.
    """
    labels = spec["labels"]
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    columns, groups, lines, fewest = aggregate.columns(summary, labels), [], [], FEWEST_OF_INTERVAL
    contrasts = Contrasts(data.runs, spec["split"], data.predictions)
    for group, name in aggregate.group_names(summary, labels).items():
        rows: dict[tuple, dict[int, Way]] = {}
        for way in _ways(aggregate.runs_of(summary, group), contrasts, spec):
            at = aggregate.column_index(columns, way.row.task, way.row.split)
            rows.setdefault((way.row.strategy, way.row.variant), {})[at] = way
            lines.append(_line(way))
            fewest = min(fewest, way.seeds)
        groups += [Group(name, [], [_row(ways, len(columns), labels) for ways in rows.values()])] if rows else []
    if not groups:
        raise UserError(
            f"a share of the way needs runs of {spec['start']}, {spec['reference']} and of other strategies"
        )
    titles = [*(column.title for column in columns), MEDIAN]
    return text_table(spec, titles, groups, _notes(spec, fewest), HEADER, lines, sentences=True)


def _ways(mine, contrasts: Contrasts, spec: dict) -> list[Way]:
    """Return how far each strategy of a group gets on each task. Args: the group's rows of the summary."""
    base = mine[mine["variant"] == "base"]
    ends = {name: base[base["strategy"] == spec[name]].set_index(["task", "split"]) for name in ("start", "reference")}
    others = mine[~mine["strategy"].isin([spec["start"], spec["reference"]]) & mine["mean"].notna()]
    ways = []
    for row in others.itertuples():
        key = (row.task, row.split)
        if all(key in end.index for end in ends.values()):
            place = (row.task, row.subset, row.encoder, row.head)
            points = ((spec["start"], "base"), (spec["reference"], "base"), (row.strategy, row.variant))
            cells = [(*place, *point) for point in points]
            sides = contrasts.sides(cells, row.split)
            ways += [_way(row, ends["reference"].loc[key], sides)] if sides else []
    return ways


def _way(row, full, sides: list[Resampled]) -> Way:
    """Return how far a strategy gets.

    Args: its row and that of full fine-tuning; what start, full fine-tuning and strategy score over the same seeds.
    """
    costs = [100 * row.price / full.price, 100 * row.inference / full.inference]
    start, whole, score = (side.value for side in sides)
    return Way(row, sides[0].spread.seeds, (start, whole, score), share(*sides), *costs)


class Drawn(NamedTuple):
    """A score x 100, and its draws [D], or one number for all of them."""

    value: float
    draws: np.ndarray | float


def share(start: Resampled | Drawn, whole: Resampled, score: Resampled) -> Interval | None:
    """Return the share of the way from start to full fine-tuning in %, with its 95 % CI.

    None where the 95 % CI of the way itself is not above 0. Draws without a way to go are left out.
    """
    gap = whole.draws - start.draws
    if not interval(whole.value - start.value, gap).low > 0:
        return None
    ratio = np.divide(100 * (score.draws - start.draws), gap, out=np.full(len(gap), np.nan), where=gap > 0)
    return interval(100 * chance_corrected(score.value, whole.value, start.value), ratio)


def _row(ways: dict[int, Way], columns: int, labels: dict) -> Row:
    """Return the line of a strategy: a cell for each column, and the median over the tasks that have a share.

    A task with several test splits counts once, with their mean.
    """
    cells: list[TextCell | None] = [None] * (columns + 1)
    for at, way in ways.items():
        share, ends = way.share, "" if way.share is None else wording.interval(way.share.low, way.share.high)
        cells[at] = _cell(share and share.value, ends, way.cost, row_anchor(way.row))
    far: dict[str, list[Way]] = {}
    for way in ways.values():
        if way.share is not None:
            far.setdefault(way.row.task, []).append(way)
    if far:
        share = median(mean(way.share.value for way in splits) for splits in far.values())
        cost = median(mean(way.cost for way in splits) for splits in far.values())
        cells[-1] = _cell(share, f"over {wording.plural(len(far), 'task')}", cost)
    return Row({}, aggregate.row_name(next(iter(ways.values())).row, labels), cells)


def _cell(share: float | None, more: str, cost: float, link: str = "") -> TextCell:
    text = wording.DASH if share is None else f"{wording.number(share)} %"
    return TextCell(text, share, interval=more, link=link, below=f"cost {wording.number(cost)} %")


def _line(way: Way) -> list:
    row, share = way.row, way.share
    cell = [row.task, row.split, row.subset, row.encoder, row.head, row.strategy, row.variant, row.metric, way.seeds]
    start, whole, score = way.scores
    ends = ["", "", ""] if share is None else [f"{value:.4f}" for value in (share.value, share.low, share.high)]
    costs = [f"{row.price:.6g}", f"{way.cost:.4f}", f"{way.inference:.4f}" if way.inference == way.inference else ""]
    scores = [f"{value:.4f}" for value in (score, start, whole)]
    return [*cell, *scores, int(share is not None), *ends, *costs]


def _notes(spec: dict, fewest: int) -> list[str]:
    start, whole = (wording.label(spec["labels"], "strategies", spec[name]) for name in ("start", "reference"))
    return [
        f"Share of the way from {start} to {whole}: (score − {start}) / ({whole} − {start}) in %, with its 95 % CI "
        f"({wording.CI}). {wording.DASH}: {whole} is not clearly above {start}, and such a task "
        "is not in the median. Below 0 % a strategy is worse than the start, above 100 % better than full fine-tuning.",
        f"Cost: the price, the median over seeds, in % of that of {whole}.",
    ] + wording.few_seeds(fewest)
