"""A table of every strategy less one of them: the difference, its price, and how far it gets from a start. D draws."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from thaw.core.errors import UserError
from thaw.decision.contrasts import LOWER, OPEN, Difference
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import FLAGS, Contrasts, jointly
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.render.typed_table import Cell, Group, Row, Table
from thaw.outputs.tables.footnotes import undefined_note
from thaw.statistics.bootstrap import Interval, Resampled, interval
from thaw.words import wording


@dataclass(frozen=True)
class Compared:
    """A strategy less the reference: its row of the summary, the prices of both, and its share of the way in %."""

    row: Any
    difference: Difference
    seeds: int
    flags: list[str]
    prices: tuple[float, float]
    share: Interval | None


def build(data, spec: dict) -> Table:
    """Return every strategy's difference to `reference` on every task, within each encoder, head and subset.

    Args: spec with `reference`, a strategy without a sweep, and where the share of the way is shown `start`. Raises
    UserError where nothing can be compared.
    """
    labels = spec["labels"]
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    columns = aggregate.columns(summary, labels)
    compared = _compared(summary[summary["fitted"]], Contrasts(data.runs, spec["split"], data.predictions), spec)
    marks = wording.warning_marks(flag for one in compared for flag in one.flags)
    rows: dict[tuple, dict[tuple, list[Compared]]] = {}
    for one in compared:
        group = rows.setdefault((one.row.subset, one.row.encoder, one.row.head), {})
        group.setdefault((one.row.strategy, one.row.variant), []).append(one)
    groups = [
        Group(name, [_row(own, columns, marks, labels) for own in rows[group].values()])
        for group, name in aggregate.group_names(summary, labels).items()
        if group in rows
    ]
    notes = _notes(spec, len(compared), min(one.seeds for one in compared))
    notes += [f"{mark} {FLAGS[flag]}" for flag, mark in marks.items()]
    notes += undefined_note(data.runs, labels, "Differences leave these runs out")
    titles = [*(column.title for column in columns), "Price"]
    return Table.of_spec(spec, titles, groups, notes)


def _compared(fitted, contrasts: Contrasts, spec: dict) -> list[Compared]:
    """Return the comparisons, in the order of the summary's rows, with one interval for all of them."""
    whole, start, kept = spec["reference"], spec.get("start"), []
    for row in fitted[fitted["strategy"] != whole].itertuples():
        cells = _cell(row), _cell(row, whole)
        mean = contrasts.between(*cells, row.split)
        if mean:
            kept.append((row, cells, mean))
    if not kept:
        raise UserError(f"a table of differences needs runs of {whole} and of another strategy with the same seeds")
    differences = jointly([mean for *_, mean in kept])
    prices = {_cell(row): row.price for row in fitted.itertuples()}
    known = {(cells[0], row.split): difference for (row, cells, _), difference in zip(kept, differences, strict=True)}
    compared = []
    for (row, cells, mean), difference in zip(kept, differences, strict=True):
        share, first = None, _cell(row, start)
        way = known.get((first, row.split)) if start and row.strategy != start else None
        if way and way.answer == LOWER:
            share = _share(*contrasts.sides([first, *reversed(cells)], row.split))
        flags = contrasts.flags([*cells], row.split)
        both = prices[cells[0]], prices[cells[1]]
        compared.append(Compared(row, difference, mean.spread.seeds, flags, both, share))
    return compared


def _cell(row, strategy: str | None = None) -> tuple:
    """Return the cell of a row of the summary, or that of another strategy in its place."""
    point = (strategy, "base") if strategy else (row.strategy, row.variant)
    return (row.task, row.subset, row.encoder, row.head, *point)


def _share(start: Resampled, whole: Resampled, score: Resampled) -> Interval | None:
    """Return the share of the way from start to the whole in %, with its 95 % CI; draws without a way are left out."""
    way, gap = whole.value - start.value, whole.draws - start.draws
    if way <= 0:
        return None
    ratio = np.divide(100 * (score.draws - start.draws), gap, out=np.full(len(gap), np.nan), where=gap > 0)
    return interval(100 * (score.value - start.value) / way, ratio)


def _row(own: list[Compared], columns, marks: dict[str, str], labels: dict) -> Row:
    """Return the line of a strategy: a cell for each column, and its price in % of the reference's on its tasks."""
    name = aggregate.row_name(own[0].row, labels)
    line = Row(name, [None] * (len(columns) + 1), [_record(one) for one in own])
    for one in own:
        at, value, share = aggregate.column_index(columns, one.row.task, one.row.split), one.difference, one.share
        line.cells[at] = Cell(
            value.value,
            low=value.low,
            high=value.high,
            runs=one.seeds,
            flags=one.flags,
            marks=",".join(marks[flag] for flag in one.flags),
            best=value.answer != OPEN,
            link=row_anchor(one.row),
            below=f"{wording.number(share.value)} % {wording.interval(share.low, share.high)}" if share else "",
        )
    price, whole = (sum(prices) for prices in zip(*{one.row.task: one.prices for one in own}.values(), strict=True))
    if whole > 0:
        line.cells[-1] = Cell(100 * price / whole, "%")
    return line


def _record(one: Compared) -> dict:
    row, away, share, (price, whole) = one.row, one.difference, one.share, one.prices
    record = {name: getattr(row, name) for name in (*aggregate.COLUMN, *aggregate.GROUP, "strategy", "variant")}
    record |= {"metric": row.metric, "value": away.value, "low": away.low, "high": away.high, "answer": away.answer}
    record |= {"seeds": one.seeds, "flags": ";".join(one.flags)}
    ends = (share.value, share.low, share.high) if share else (None,) * 3
    record |= dict(zip(("share", "share_low", "share_high"), ends, strict=True))
    return record | {"price": price, "price_share": 100 * price / whole if whole > 0 else None}


def _notes(spec: dict, count: int, fewest: int) -> list[str]:
    names = [wording.label(spec["labels"], "strategies", spec[key]) for key in ("reference", "start") if key in spec]
    whole, *start = names
    notes = [
        f"Difference to {whole} in points, with the same encoder, head, examples and seeds. {wording.joint_ci(count)} "
        "Bold: higher or lower, since the interval is on one side of 0; all others are open.",
    ]
    if start:
        notes.append(
            f"Below it the share of the way from {start[0]} to {whole} in %, with a 95 % CI of its own. There is none "
            f"where {start[0]} is not lower than {whole}."
        )
    price = f"Price: in % of {whole}'s, medians over seeds, on the same tasks."
    return [*notes, price, *wording.few_seeds(fewest)]
