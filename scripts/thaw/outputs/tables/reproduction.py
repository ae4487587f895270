"""A paper's table: each printed number, ours with its interval, the difference, and what is not as in the paper."""

from dataclasses import dataclass

import numpy as np

from thaw.outputs import wording
from thaw.outputs.frame.aggregate import Column
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.tables import protocol_notes
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable
from thaw.statistics.aggregation import AGGREGATIONS, least, mean
from thaw.statistics.bootstrap import interval, least_interval

DIGITS = {"hundred": 1, "error": 1, "fraction": 3, "number": 0}
HEADER = (
    "row column task encoder head strategy variant metric split scale printed ours low high by_rule difference seeds"
)
CELL = ["task", "encoder", "head", "strategy", "variant"]


@dataclass
class Ours:
    """Our number as the paper would print it, its interval, the same by the paper's way to put seeds together.

    draws [D]: the resampled numbers, None where no answers were kept.
    """

    value: float
    rule: float
    low: float | None
    high: float | None
    seeds: int
    draws: np.ndarray | None = None


def build(data, spec: dict) -> TextTable:
    """Return the table of printed numbers beside ours.

    Args: spec with `beside` as `thaw.planning.papers.table_comparison.shown` makes it.
    """
    beside, runs = spec["beside"], data.runs
    measured = Measured(runs[runs["missing"] == ""], beside, data.predictions)
    ours = measured.all()
    columns = [
        Column("", "", column["label"], _metric(beside, place, spec["labels"]), False)
        for place, column in enumerate(beside["columns"])
    ]
    groups, lines = [], []
    for place, row in enumerate(beside["rows"]):
        found = [ours.get((place, column)) for column in range(len(columns))]
        groups.append(Group(row["label"], [], _rows(row, found, beside)))
        lines += [_line(row, entry, *both) for entry, *both in zip(row["cells"], found, beside["columns"], strict=True)]
    notes = protocol_notes.notes(beside, ours, spec) + protocol_notes.near_chance(measured.near_chance, spec)
    return TextTable(
        spec["id"],
        spec["caption"],
        columns,
        [],
        groups,
        [],
        notes,
        header=[*HEADER.split(), "marks", "reason"],
        lines=lines,
    )


class Measured:
    """Our numbers for the cells of a printed table, by (row, column).

    `near_chance` has the tasks whose full model is not clearly above chance: it has no share that could be reached.
    """

    def __init__(self, runs, beside: dict, answers: PredictionFiles):
        self.runs, self.beside, self.answers = runs[runs["subset"].isin([beside["subset"]])], beside, answers
        self.scales = [column["scale"] for column in beside["columns"]]
        self.near_chance: dict[str, None] = {}

    def all(self) -> dict[tuple[int, int], Ours]:
        """Return every number that there is: those of runs, then differences of rows, then those over columns."""
        found: dict[tuple[int, int], Ours] = {}
        for place, row in enumerate(self.beside["rows"]):
            for column, cell in enumerate(row["cells"]):
                if "at" in cell:
                    made = self._least(cell, row["least"]) if "sweep" in cell else self._score(cell["at"], column)
                    found |= {(place, column): made} if made else {}
        for place, row in enumerate(self.beside["rows"]):
            for column in range(len(self.scales)) if "minus" in row else ():
                pair = [found.get((other, column)) for other in row["minus"]]
                found |= {(place, column): _combined(pair, np.subtract)} if all(pair) else {}
        for column, entry in enumerate(self.beside["columns"]):
            others = [other for other, one in enumerate(self.beside["columns"]) if not one["over"]]
            for place in range(len(self.beside["rows"])) if entry["over"] else ():
                parts = [found.get((place, other)) for other in others]
                way = {"mean": lambda *x: np.mean(x, axis=0), "most": lambda *x: np.max(x, axis=0)}[entry["over"]]
                found |= {(place, column): _combined(parts, way)} if all(parts) else {}
        return found

    def _score(self, at: list[str], column: int) -> Ours | None:
        """Return the number at an address; None where no seed of it is there."""
        rows = self._rows(at)
        if rows.empty:
            return None
        scores, draws = rows["value"].tolist(), self.answers.draws(rows, *at[5:])
        sides = [mean(scores), AGGREGATIONS[self.beside["aggregation"]](scores)]
        scaled = [_scaled(np.asarray(side), self.scales[column]) for side in (*sides, draws)]
        found = interval(float(scaled[0]), scaled[2])
        return Ours(float(scaled[0]), float(scaled[1]), found.low, found.high, len(scores), scaled[2])

    def _least(self, cell: dict, share: float) -> Ours | None:
        """Return the least k of a sweep that reaches a share of the full model; None where a part is not there.

        And where the interval of the full model holds chance, the score of the most frequent answer.
        """
        at, rule = cell["at"], AGGREGATIONS[self.beside["aggregation"]]
        full = self._rows([*at[:3], cell["full"], "base", *at[5:]])
        points = {k: self._rows([*at[:4], name, *at[5:]]) for name, k in cell["sweep"].items()}
        if full.empty or any(rows.empty for rows in points.values()) or rule(full["value"]) <= 0:
            return None
        whole = self.answers.draws(full, *at[5:])
        if interval(mean(full["value"]), whole).low <= self._chance(at):
            self.near_chance[at[0]] = None
            return None
        values = [
            least({k: way(rows["value"]) for k, rows in points.items()}, way(full["value"]), share)
            for way in (mean, rule)
        ]
        drawn = {k: self.answers.draws(rows, *at[5:]) for k, rows in points.items()}
        found = least_interval(values[0], drawn, whole, share)
        beyond = [np.nan if value is None else float(value) for value in (*values, found["low"], found["high"])]
        return Ours(*beyond, len(full))

    def _chance(self, at: list[str]) -> float:
        """Return the score of the most frequent answer, 0 where it is undefined or was not asked for."""
        found = self.runs[(self.runs["kind"] == "baseline") & (self.runs["strategy"] == "majority")]
        for key, value in (("task", at[0]), ("metric", at[5]), ("split", at[6])):
            found = found[found[key] == value]
        return float(found["value"].fillna(0.0).max()) if len(found) else 0.0

    def _rows(self, at: list[str]):
        """Return the rows of runs.csv at an address, one for each seed."""
        wanted = dict(zip(CELL + ["metric", "split"], at, strict=True))
        chosen = self.runs[self.runs["kind"].isin(["run", "ensemble"])]
        for key, value in wanted.items():
            chosen = chosen[chosen[key] == value]
        return chosen[chosen["value"].notna()]


def _scaled(scores: np.ndarray, scale: str) -> np.ndarray:
    """Return scores as a column of the paper prints them."""
    return {"fraction": scores, "error": 100 - 100 * scores}.get(scale, 100 * scores)


def _combined(parts: list[Ours], way) -> Ours:
    """Return a number that follows from others, its interval from their draws where all have some."""
    value, rule = (float(way(*(getattr(part, name) for part in parts))) for name in ("value", "rule"))
    seeds = min(part.seeds for part in parts)
    if any(part.draws is None for part in parts):
        return Ours(value, rule, None, None, seeds)
    draws = way(*(part.draws for part in parts))
    found = interval(value, draws)
    return Ours(value, rule, found.low, found.high, seeds, draws)


def _rows(row: dict, found: list[Ours | None], beside: dict) -> list[Row]:
    """Return the lines of one row of the paper: printed, ours, by the paper's own rule, and the difference."""
    scales = [column["scale"] for column in beside["columns"]]
    printed = [_printed(cell["printed"]) for cell in row["cells"]]
    lines = {"printed": [TextCell(text, cell["printed"]) for text, cell in zip(printed, row["cells"], strict=True)]}
    if rule := row.get("favours"):
        lines["printed speaks for"] = [_favoured(cell["printed"], rule) for cell in row["cells"]]
    every = list(zip(found, row["cells"], scales, strict=True))
    if any(found):
        lines["ours"] = [_ours(*entry) for entry in every]
        if rule:
            lines["ours speaks for"] = [_favoured(one.value if one else None, rule) for one in found]
    if any(found) and beside["aggregation"] != "mean":
        lines["ours, by the paper's rule"] = [
            _number(one.rule, scale) if one else TextCell(wording.DASH) for one, _, scale in every
        ]
    if any(one and cell["printed"] is not None for one, cell, _ in every):
        lines["difference"] = [_difference(*entry) for entry in every]
    return [Row({}, name, cells) for name, cells in lines.items()]


def _printed(value: float | None) -> str:
    """Return a number as it is printed in the paper, a dash where it is not known."""
    return wording.DASH if value is None else str(value).replace("-", "−")


def _favoured(difference: float | None, rule: dict) -> TextCell:
    """Return what a difference speaks for by the paper's rule."""
    if difference is None:
        return TextCell(wording.DASH)
    if abs(difference) <= rule["beyond"]:
        return TextCell("neither")
    return TextCell(rule["above"] if difference > 0 else rule["below"])


def _ours(one: Ours | None, cell: dict, scale: str) -> TextCell:
    """Return our number with its interval and the marks of what is not as in the paper."""
    if one is None:
        return TextCell(wording.DASH)
    text = wording.number(one.value, DIGITS[scale])
    if one.low is not None:
        text += f" [{wording.number(one.low, DIGITS[scale])}, {wording.number(one.high, DIGITS[scale])}]"
    return TextCell(text + "".join(protocol_notes.MARKS[mark] for mark in cell.get("marks", [])), one.value)


def _number(value: float, scale: str) -> TextCell:
    return TextCell(wording.number(value, DIGITS[scale]), value)


def _difference(one: Ours | None, cell: dict, scale: str) -> TextCell:
    """Return our number, put together in the paper's way, less the printed one."""
    if one is None or cell["printed"] is None:
        return TextCell(wording.DASH)
    return _number(one.rule - cell["printed"], scale)


def _metric(beside: dict, column: int, labels: dict) -> str:
    """Return the metrics of a column's addresses in print."""
    found = dict.fromkeys(row["cells"][column]["at"][5] for row in beside["rows"] if "at" in row["cells"][column])
    shown = wording.listing(wording.metric_name(labels, metric) for metric in found)
    return f"error in {shown}" if shown and beside["columns"][column]["scale"] == "error" else shown


def _line(row: dict, cell: dict, one: Ours | None, column: dict) -> list:
    """Return a printed number and ours for programs."""
    at = cell.get("at") or [""] * 7
    numbers = [cell["printed"], *((one.value, one.low, one.high, one.rule) if one else [None] * 4)]
    numbers.append(one.rule - cell["printed"] if one and cell["printed"] is not None else None)
    plain = ["" if value is None or value != value else f"{value:.4f}" for value in numbers]
    place = [row["label"], column["label"], *at, column["scale"]]
    return [*place, *plain, one.seeds if one else "", " ".join(cell.get("marks", [])), cell.get("reason", "")]
