"""A paper's table: published numbers, reproduced numbers with their 95 % CI, differences, and protocol notes."""

from dataclasses import dataclass, field

import numpy as np

from thaw.outputs.frame.aggregate import ROW, Column
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, behind, said
from thaw.outputs.tables import footnotes, protocol_notes
from thaw.statistics.aggregation import AGGREGATIONS, least, least_lasting, mean
from thaw.statistics.bootstrap import interval, least_interval
from thaw.words import wording

DIGITS = {"hundred": 1, "error": 1, "fraction": 3, "number": 0}
ADDRESS = [*(name for name in CELL if name != "subset"), "metric", "split"]  # of a number that is reproduced


@dataclass
class Reproduced:
    """A reproduced number on the paper's scale, its 95 % CI, and the number by the paper's aggregation of seeds.

    draws [D]: the resampled numbers, None of a least k and of what is computed from one. rows: of runs.csv, one for
    each seed, with metric and split, None of what is computed from other numbers. behind: {anchor: (task, strategy,
    variant)} of the runs that it is from.
    """

    value: float
    rule: float
    low: float | None
    high: float | None
    seeds: int
    draws: np.ndarray | None = None
    rows: tuple | None = None
    behind: dict[str, tuple] = field(default_factory=dict)


def build(data, spec: dict) -> Table:
    """Return the table of published and reproduced numbers.

    Args: spec with `beside` as `thaw.planning.papers.printed_tables.comparison_for_spec` makes it.
    """
    comparison, runs = spec["beside"], data.runs
    measured = Measured(runs[runs["missing"] == ""], comparison, data)
    reproduced = measured.all()
    columns = [
        Column("", "", column["label"], _metric(comparison, index, spec["labels"]), False)
        for index, column in enumerate(comparison["columns"])
    ]
    groups = []
    for index, row in enumerate(comparison["rows"]):
        numbers = [reproduced.get((index, column)) for column in range(len(columns))]
        groups.append(Group(row["label"], _rows(row, numbers, comparison, spec["labels"])))
        groups[-1].rows[0].records = [
            _record(row, entry, *both)
            for entry, *both in zip(row["cells"], numbers, comparison["columns"], strict=True)
        ]
    notes = protocol_notes.notes(comparison, reproduced, spec) + protocol_notes.near_chance(measured.near_chance, spec)
    tasks = [cell["at"][0] for row in comparison["rows"] for cell in row["cells"] if "at" in cell]
    notes += footnotes.same_split(runs[runs["task"].isin(tasks)], spec["labels"])
    return Table(spec["id"], spec["caption"], columns, groups, notes)


class Measured:
    """Reproduced numbers for the cells of a published table, by (row, column).

    `near_chance`: the tasks whose full model is not clearly above chance, so that no share of its score is meaningful.
    """

    def __init__(self, runs, comparison: dict, data):
        self.runs = runs[runs["subset"] == comparison["subset"]]
        self.comparison, self.data = comparison, data
        self.predictions: PredictionFiles = data.predictions
        self.scales = [column["scale"] for column in comparison["columns"]]
        self.near_chance: dict[str, None] = {}

    def all(self) -> dict[tuple[int, int], Reproduced]:
        """Return all reproduced numbers: of runs, then differences of rows, then aggregates over columns."""
        numbers: dict[tuple[int, int], Reproduced] = {}
        for index, row in enumerate(self.comparison["rows"]):
            for column, cell in enumerate(row["cells"]):
                if "quantity" in cell and (made := self._quantity(cell["quantity"])):
                    numbers[index, column] = made
                if "at" in cell:
                    made = self._least(cell, row["least"]) if "sweep" in cell else self._score(cell["at"], column)
                    if made:
                        numbers[index, column] = made
        for index, row in enumerate(self.comparison["rows"]):
            for column in range(len(self.scales)) if "minus" in row else ():
                first, second = (numbers.get((other, column)) for other in row["minus"])
                if first and second:
                    numbers[index, column] = self._difference(first, second, self.scales[column])
        for column, entry in enumerate(self.comparison["columns"]):
            others = [other for other, one in enumerate(self.comparison["columns"]) if not one["over"]]
            for index, row in enumerate(self.comparison["rows"]) if entry["over"] else ():
                places = [(index, other) for other in _counted(row, others)]
                way = {"mean": lambda *x: np.mean(x, axis=0), "most": lambda *x: np.max(x, axis=0)}[entry["over"]]
                if all(place in numbers for place in places):
                    numbers[index, column] = _combined([numbers[place] for place in places], way)
        return numbers

    def _score(self, at: list[str], column: int) -> Reproduced | None:
        """Return the number at an address; None if no seed has a result."""
        rows = self._rows(at)
        if rows.empty:
            return None
        scores, draws = rows["value"].tolist(), self.predictions.draws(rows, *at[5:])
        sides = [mean(scores), AGGREGATIONS[self.comparison["aggregation"]](scores)]
        scaled = [_scaled(np.asarray(side), self.scales[column]) for side in (*sides, draws)]
        ci = interval(float(scaled[0]), scaled[2])
        numbers = (float(scaled[0]), float(scaled[1]), ci.low, ci.high, len(scores), scaled[2])
        return Reproduced(*numbers, (rows, *at[5:]), _behind(rows))

    def _quantity(self, at: dict) -> Reproduced | None:
        """Return what is no score: a merge's layers and mean, or how many parameters a strategy trains and stores."""
        if "merge" in at:
            of = self.data.merges.get((self.comparison["subset"], at["encoder"], at["merge"]))
            return None if of is None else _alone(_of_merge(of, at), 1)
        runs = self.runs[(self.runs["kind"] == "run") & (self.runs["encoder"] == at["encoder"])]
        own = runs[(runs["strategy"] == at["strategy"]) & (runs["variant"] == at.get("variant", "base"))]
        whole = runs[runs["strategy"] == at["against"]]
        shared = set(own["task"]) & set(whole["task"])
        trained = [
            of[of["task"].isin(shared)].groupby("task")["trained_parameters"].mean().mean() for of in (own, whole)
        ]
        if not shared:
            return None
        share = trained[0] / trained[1]
        models = at.get("models", 1) * share + (share < 1)
        return _alone(100 * share if at["quantity"] == "trained" else models, own["seed"].nunique())

    def _difference(self, first: Reproduced, second: Reproduced, scale: str) -> Reproduced:
        """Return one number less another, over the seeds that both have; an ensemble has no seeds of its own."""
        if first.rows is None or second.rows is None or first.rows[1:] != second.rows[1:]:
            return _combined([first, second], np.subtract)
        sides = [rows.sort_values("seed") for rows in (first.rows[0], second.rows[0])]
        if all((side["kind"] == "run").all() for side in sides):
            shared = set(sides[0]["seed"]) & set(sides[1]["seed"])
            sides = [side[side["seed"].isin(shared)] for side in sides]
        if not all(len(side) for side in sides):
            return _combined([first, second], np.subtract)
        times = float(_scaled(np.array(1.0), scale) - _scaled(np.array(0.0), scale))
        of_points = abs(times) / 100  # a CI is in points
        weighted = [(times / of_points, sides[0]), (-times / of_points, sides[1])]
        made = self.predictions.resampled(weighted, *first.rows[1:])
        value, low, high = (of_points * number for number in (made.value, made.ci.low, made.ci.high))
        scores = [np.asarray(AGGREGATIONS[self.comparison["aggregation"]](side["value"].tolist())) for side in sides]
        by_rule = float(_scaled(scores[0], scale) - _scaled(scores[1], scale))
        numbers = (value, by_rule, low, high, made.spread.seeds, of_points * made.draws)
        return Reproduced(*numbers, behind=first.behind | second.behind)

    def _least(self, cell: dict, share: float) -> Reproduced | None:
        """Return the smallest k of a sweep from which on every k reaches a share of the full model; by the paper's
        rule, the first that does.

        None if a run is missing, or if the 95 % CI of the full model contains the score of the majority class.
        """
        at, of_seeds = cell["at"], AGGREGATIONS[self.comparison["aggregation"]]
        full = self._rows([*at[:3], cell["full"], "base", *at[5:]])
        points = {k: self._rows([*at[:4], name, *at[5:]]) for name, k in cell["sweep"].items()}
        middle, by_paper = mean(full["value"]), of_seeds(full["value"])
        if middle is None or not by_paper or by_paper < 0 or any(rows.empty for rows in points.values()):
            return None
        whole = self.predictions.draws(full, *at[5:])
        lowest = interval(middle, whole).low
        if lowest is not None and lowest <= self._chance(at):
            self.near_chance[at[0]] = None
            return None
        lasting = least_lasting({k: mean(rows["value"]) for k, rows in points.items()}, middle, share)
        by_rule = least({k: of_seeds(rows["value"]) for k, rows in points.items()}, by_paper, share)
        drawn = {k: self.predictions.draws(rows, *at[5:]) for k, rows in points.items()}
        ends = least_interval(drawn, whole, share)
        value, rule, low, high = (np.nan if k is None else float(k) for k in (lasting, by_rule, *ends))
        behind = {anchor: cell for rows in (full, *points.values()) for anchor, cell in _behind(rows).items()}
        return Reproduced(value, rule, low, high, len(full), behind=behind)

    def _chance(self, at: list[str]) -> float:
        """Return the score of the majority class, 0 if it is undefined or not part of the experiment."""
        rows = self.runs[(self.runs["kind"] == "baseline") & (self.runs["strategy"] == "majority")]
        for key, value in (("task", at[0]), ("metric", at[5]), ("split", at[6])):
            rows = rows[rows[key] == value]
        return float(rows["value"].fillna(0.0).max()) if len(rows) else 0.0

    def _rows(self, at: list[str]):
        """Return the rows of runs.csv at an address, one for each seed."""
        wanted = dict(zip(ADDRESS, at, strict=True))
        chosen = self.runs[self.runs["kind"].isin(["run", "ensemble"])]
        for key, value in wanted.items():
            chosen = chosen[chosen[key] == value]
        return chosen[chosen["value"].notna()]


def _of_merge(record: dict, at: dict) -> float:
    """Return a number of a merge, of one task or of all."""
    tasks = [record["tasks"][at["task"]]] if "task" in at else list(record["tasks"].values())
    numbers = {
        "shared": max(one["frozen"] for one in tasks),
        "own": sum(one["own"] for one in tasks),
        "executed": 100 * record["layers"]["executed"] / record["layers"]["of"],
        "test": np.mean([one["test"] for one in tasks]),
    }
    return numbers[at["quantity"]]


def _alone(value: float, seeds: int) -> Reproduced:
    """Return a number without an interval."""
    return Reproduced(float(value), float(value), None, None, seeds)


def _counted(row: dict, columns: list[int]) -> list[int]:
    """Return the columns that an aggregate of a row is over: those that the paper has a number of, if of any."""
    return [column for column in columns if row["cells"][column]["printed"] is not None] or columns


def _scaled(scores: np.ndarray, scale: str) -> np.ndarray:
    return {"fraction": scores, "error": 100 - 100 * scores}.get(scale, 100 * scores)


def _combined(parts: list[Reproduced], way) -> Reproduced:
    """Return a number computed from others, with its 95 % CI if all of them have draws."""
    value, rule = (float(way(*(getattr(part, name) for part in parts))) for name in ("value", "rule"))
    seeds = min(part.seeds for part in parts)
    behind = {anchor: cell for part in parts for anchor, cell in part.behind.items()}
    if any(part.draws is None for part in parts):
        return Reproduced(value, rule, None, None, seeds, behind=behind)
    draws = way(*(part.draws for part in parts))
    ci = interval(value, draws)
    return Reproduced(value, rule, ci.low, ci.high, seeds, draws, behind=behind)


def _behind(rows) -> dict[str, tuple]:
    """Return {anchor: (task, strategy, variant)} of rows of runs.csv."""
    cells = rows[["task", *ROW]].drop_duplicates().itertuples()
    return {row_anchor(cell): (cell.task, cell.strategy, cell.variant) for cell in cells}


def _rows(row: dict, numbers: list[Reproduced | None], comparison: dict, labels: dict) -> list[Row]:
    """Return the lines of one row of the paper: published, reproduced, by the paper's rule, and the difference."""
    scales = [column["scale"] for column in comparison["columns"]]
    printed = [
        wording.DASH if cell["printed"] is None else str(cell["printed"]).replace("-", "−") for cell in row["cells"]
    ]
    lines = {"published": [said(text, cell["printed"]) for text, cell in zip(printed, row["cells"], strict=True)]}
    if rule := row.get("favours"):
        lines["published favours"] = [_favoured(cell["printed"], rule) for cell in row["cells"]]
    every = list(zip(numbers, row["cells"], scales, strict=True))
    if any(numbers):
        lines["reproduced"] = [_reproduced(*entry, labels) for entry in every]
        if rule:
            lines["reproduced favours"] = [_favoured(one.value if one else None, rule) for one in numbers]
    if any(numbers) and comparison["aggregation"] != "mean":
        lines["reproduced, by the paper's rule"] = [
            _number(one.rule, one, scale, labels) if one else said(wording.DASH) for one, _, scale in every
        ]
    if any(one and cell["printed"] is not None for one, cell, _ in every):
        lines["difference"] = [_difference(*entry, labels) for entry in every]
    return [Row(name, [*cells]) for name, cells in lines.items()]


def _favoured(difference: float | None, rule: dict) -> Cell:
    """Return which side a difference favours by the paper's rule."""
    if difference is None:
        return said(wording.DASH)
    if abs(difference) <= rule["beyond"]:
        return said("neither")
    return said(rule["above"] if difference > 0 else rule["below"])


def _reproduced(one: Reproduced | None, cell: dict, scale: str, labels: dict) -> Cell:
    """Return a reproduced number with its 95 % CI, the marks of protocol differences, and the runs that it is from."""
    if one is None:
        return said(wording.DASH)
    marks = "".join(protocol_notes.MARKS[mark] for mark in cell.get("marks", []))
    return _number(one.value, one, scale, labels, low=one.low, high=one.high, marks=marks)


def _number(value: float, one: Reproduced, scale: str, labels: dict, **more) -> Cell:
    """Return a number with the runs that it is from. Args: further fields of the cell."""
    runs = [
        (f"{wording.task_name(labels, task)}: {wording.strategy_name(labels, *point)}", anchor)
        for anchor, (task, *point) in one.behind.items()
    ]
    return behind(Cell(value, digits=DIGITS[scale], **more), runs)


def _difference(one: Reproduced | None, cell: dict, scale: str, labels: dict) -> Cell:
    """Return the reproduced number, aggregated by the paper's rule, minus the published one."""
    if one is None or cell["printed"] is None:
        return said(wording.DASH)
    return _number(one.rule - cell["printed"], one, scale, labels)


def _metric(comparison: dict, column: int, labels: dict) -> str:
    metrics = dict.fromkeys(row["cells"][column]["at"][5] for row in comparison["rows"] if "at" in row["cells"][column])
    shown = wording.listing(wording.metric_name(labels, metric) for metric in metrics)
    return f"error in {shown}" if shown and comparison["columns"][column]["scale"] == "error" else shown


def _record(row: dict, cell: dict, one: Reproduced | None, column: dict) -> dict:
    record = {"row": row["label"], "column": column["label"]}
    record |= dict(zip(ADDRESS, cell.get("at") or [""] * len(ADDRESS), strict=True))
    record |= {"scale": column["scale"], "printed": cell["printed"]}
    names = {"ours": "value", "low": "low", "high": "high", "by_rule": "rule"}
    record |= {name: getattr(one, attribute, None) for name, attribute in names.items()}
    record["difference"] = one.rule - cell["printed"] if one and cell["printed"] is not None else None
    return record | {
        "seeds": one.seeds if one else None,
        "marks": " ".join(cell.get("marks", [])),
        "reason": cell.get("reason", ""),
    }
