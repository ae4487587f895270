"""A table of relative quality: of every strategy the difference to the full model, its share of the full model's score,
and the share of the way from chance that it has gone. D draws.
"""

import numpy as np

from thaw.core.errors import UserError
from thaw.declarations.decision import FEWEST_OF_INTERVAL
from thaw.declarations.task_types import CLASS_METRICS
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import Contrasts
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.tables import share_of_way
from thaw.outputs.tables.share_of_way import Drawn
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.bootstrap import Resampled

HEADER = (
    "task split subset encoder head strategy variant metric seeds score full chance above_chance difference relative "
    "corrected corrected_low corrected_high"
)


def build(data, spec: dict) -> TextTable:
    """Return for every strategy and task the difference, the relative quality and the chance-corrected ratio.

    Both ratios are left out unless the 95 % CI of the full model's score less chance, the score of the most frequent
    label (0 for metrics without one, such as correlations), is above 0; and where that score is missing. Args: spec
    with `reference`, the strategy that trains everything. Raises UserError where that was not run. With `start` in the
    spec the table is that of `share_of_way`.
    """
    if spec.get("start"):
        return share_of_way.build(data, spec)
    labels, contrasts = spec["labels"], Contrasts(data.runs, spec["split"], data.predictions)
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    columns, groups, lines = aggregate.columns(summary, labels), [], []
    near, unknown = {}, {}  # columns without ratios
    chances, fewest = _chances(data, spec["split"]), FEWEST_OF_INTERVAL
    for group, name in aggregate.group_names(summary, labels).items():
        mine, rows = aggregate.runs_of(summary, group), {}
        for row in mine[(mine["strategy"] != spec["reference"]) & mine["mean"].notna()].itertuples():
            sides = contrasts.sides(_cells(row, spec["reference"]), row.split)
            if sides:
                lacking = None if row.metric in CLASS_METRICS else Drawn(0.0, 0.0)
                chance = chances.get((row.task, row.split, row.subset), lacking)
                numbers = _numbers(*sides, chance) if chance else {}
                at = aggregate.column_index(columns, row.task, row.split)
                if not numbers:
                    (unknown if chance is None else near)[columns[at].label] = None
                fewest = min(fewest, sides[0].spread.seeds)
                line = Row({}, aggregate.row_name(row, labels), [None] * len(columns))
                line = rows.setdefault((row.strategy, row.variant), line)
                line.cells[at] = _cell(sides[0].value - sides[1].value, numbers, row_anchor(row))
                lines.append(_line(row, *sides, chance, numbers))
        groups += [Group(name, [], list(rows.values()))] if rows else []
    if not groups:
        raise UserError(f"a relative_table needs runs of {spec['reference']} and of other strategies")
    titles = [column.title for column in columns]
    whole = wording.label(labels, "strategies", spec["reference"])
    return text_table(
        spec, titles, groups, _notes(whole, list(near), list(unknown), fewest), HEADER, lines, sentences=True
    )


def _chances(data, role: str) -> dict[tuple, Drawn]:
    """Return chance by task, split and subset; 0 where the majority's score is not defined or below 0.

    R² of the majority may be below 0, and a share of a score below 0 says nothing. Where draws of the training rows are
    shown as one subset, each has its majority class, and chance is their mean. Args: role of the split, as test.
    """
    runs, chances = data.runs, {}
    shown = runs["main"].astype(bool) & (runs["role"] == role) & (runs["missing"] == "")
    rows = runs[shown & (runs["kind"] == "baseline") & (runs["strategy"] == "majority")]
    for key, own in rows.groupby(["task", "split", "subset"], sort=False):
        value = 100 * float(own["value"].fillna(0.0).mean())
        chances[key] = Drawn(0.0, 0.0)
        if value > 0:
            draws = 100 * data.predictions.by_row(own, own["metric"].iloc[0], key[1])
            chances[key] = Drawn(value, np.nan_to_num(draws).mean(0).clip(min=0.0))
    return chances


def _cells(row, whole: str) -> list[tuple]:
    group = (row.task, row.subset, row.encoder, row.head)
    return [(*group, row.strategy, row.variant), (*group, whole, "base")]


def _numbers(one: Resampled, whole: Resampled, chance: Drawn) -> dict[str, float]:
    """Return relative quality and chance-corrected ratio in %, the latter with its interval.

    {} where the 95 % CI of the full model's score less chance is not above 0.
    """
    corrected = share_of_way.share(chance, whole, one)
    if corrected is None:
        return {}
    ratios = {"relative": 100 * one.value / whole.value, "corrected": corrected.value}
    return ratios | {"low": corrected.low, "high": corrected.high}


def _cell(difference: float, numbers: dict[str, float], link: str) -> TextCell:
    text = wording.number(difference)
    if numbers:
        relative, corrected = (wording.number(numbers[key]) for key in ("relative", "corrected"))
        text += f"; {relative} %; {corrected} % {wording.interval(numbers['low'], numbers['high'])}"
    return TextCell(text, difference, link=link)


def _line(row, one: Resampled, whole: Resampled, chance: Drawn | None, numbers: dict[str, float]) -> list:
    cell = [row.task, row.split, row.subset, row.encoder, row.head, row.strategy, row.variant, row.metric]
    plain = [f"{numbers[key]:.4f}" if numbers else "" for key in ("relative", "corrected", "low", "high")]
    scores = ["" if number is None else f"{number:.4f}" for number in (one.value, whole.value, chance and chance.value)]
    return [*cell, one.spread.seeds, *scores, int(bool(numbers)), f"{one.value - whole.value:.4f}", *plain]


def _notes(whole: str, near: list[str], unknown: list[str], fewest: int) -> list[str]:
    notes = [
        f"Difference to {whole} in points over the seeds that both have; score in % of {whole}; and chance-corrected "
        f"score in % of {whole}, where chance is the score of the majority class, with its 95 % CI ({wording.CI}). For "
        "scores that can be near 0, such as correlations, the second number is not informative.",
    ]
    if near:
        notes.append(f"No ratios where {whole} is not clearly above chance: {wording.listing(near)}.")
    if unknown:
        notes.append(f"No ratios where the score of the majority class is missing: {wording.listing(unknown)}.")
    return notes + wording.few_seeds(fewest)
