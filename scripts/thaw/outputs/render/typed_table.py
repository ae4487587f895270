"""A table as typed values: rows of cells, each with value, interval, unit, runs and flags; `formats` writes it."""

import csv
import dataclasses
import io
import json
import math
from dataclasses import dataclass, field

from thaw.core.files import write_text
from thaw.decision import record
from thaw.decision.record import VERSION
from thaw.outputs.frame.aggregate import Column
from thaw.words import wording

ALIKE = "≈"  # what is open against the highest on validation
PRINTED = {  # by unit how a value is printed; of other units as a number with `digits` decimals
    "s": wording.seconds,
    "count": wording.count,
    "short": wording.short,
    "MB": lambda value: f"{wording.short(1e6 * value)}B",
}


@dataclass
class Cell:
    """What a table says of a row in a column.

    value: what it is sorted by. unit: see PRINTED. sd: None below three seeds, and for one fit that all share. low,
    high: of the interval that is shown. runs: how many are behind it; missing: how many are not there. flags: of its
    runs. best: in bold. open: against the best. marks: what refers to notes. written: what is printed instead of value
    and sd; of several parts HTML has a line for each. below: what is said in a line of its own. link: the anchor of its
    runs on the page of runs; behind: (name, anchor) where there are several. aside: what the CSV alone says.
    """

    value: int | float | None = None
    unit: str = ""
    digits: int = 1
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    runs: int | None = None
    missing: int = 0
    flags: list[str] = field(default_factory=list)
    best: bool = False
    open: bool = False
    marks: str = ""
    written: str | None = None
    parts: list[str] = field(default_factory=list)
    below: str = ""
    link: str = ""
    behind: list[tuple[str, str]] = field(default_factory=list)
    aside: dict[str, float | None] = field(default_factory=dict)

    @property
    def signs(self) -> str:
        return ALIKE * self.open + self.marks + wording.MISSING * bool(self.missing)

    @property
    def number(self) -> str:
        """The value in print, without its deviation."""
        value = None if self.value is None or self.value != self.value else self.value
        if self.unit in PRINTED:
            return "" if value is None else PRINTED[self.unit](value)
        return wording.number(value, self.digits) + f" {self.unit}" * (self.unit == "%")

    @property
    def interval(self) -> str:
        """The interval in print; empty where none is shown."""
        return "" if self.low is None else wording.interval(self.low, self.high, self.digits)

    @property
    def spread(self) -> str:
        """The standard deviation in print; empty where there is none."""
        return "" if self.sd is None or self.sd != self.sd else wording.number(self.sd, self.digits)

    @property
    def text(self) -> str:
        """The cell in print: `91.2 ± 0.4†`; `‡` where a run is missing, alone where all are."""
        if self.written is not None:
            return self.written + self.signs
        if self.runs == 0:
            return self.signs
        return self.number + (f" ± {self.spread}" if self.spread else "") + self.signs


def said(text: str, value: float | None = None, **more) -> Cell:
    """Return a cell whose text is given. Args: what it is sorted by; further fields."""
    return Cell(value, written=text, **more)


def behind(cell: Cell, runs: list[tuple[str, str]]) -> Cell:
    """Let a cell lead to the runs behind it. Args: their names and anchors; of several there is a list."""
    anchors = dict.fromkeys(anchor for _, anchor in runs)
    if len(anchors) == 1:
        cell.link = next(iter(anchors))
    else:
        cell.behind = runs
    return cell


@dataclass
class Row:
    """A line of a table: a cell for each column, None where it does not apply.

    records: what the CSV says of it, a line each, by column. key: of runs, what they are (aggregate.ROW).
    """

    name: str
    cells: list[Cell | None]
    records: list[dict] = field(default_factory=list)
    key: dict = field(default_factory=dict)


def text_row(name: str, texts, *records: dict) -> Row:
    """Return a row of cells whose text is given, and what the CSV says of it."""
    return Row(name, [said(text) for text in texts], list(records))


@dataclass
class Group:
    """Rows with a common name, empty where there is a single group, and baselines that are theirs alone, above them."""

    name: str
    rows: list[Row]
    baselines: list[Row] = field(default_factory=list)


@dataclass
class Table:
    """A table: baselines above the rule, the groups, and ensembles below a rule.

    short_notes: those of a LaTeX table where not all have room. of: what its rows are, in print. sentences: whether
    cells are words and not numbers. answers: the decisions that a table of recommendations shows. failed: why it could
    not be drawn.
    """

    id: str
    caption: str
    columns: list[Column]
    groups: list[Group]
    notes: list[str] = field(default_factory=list)
    baselines: list[Row] = field(default_factory=list)
    ensembles: list[Row] = field(default_factory=list)
    short_notes: list[str] = field(default_factory=list)
    of: str = "Strategy"
    sentences: bool = False
    answers: list = field(default_factory=list)
    failed: str = ""

    @classmethod
    def of_spec(cls, spec: dict, titles, groups: list[Group], notes: list[str], **look) -> "Table":
        """Return the table of an output. Args: its spec; the titles of its columns; its rows; its notes."""
        columns = [Column("", "", title, "", False) for title in titles]
        return cls(spec["id"], spec["caption"], columns, groups, notes, **look)

    @classmethod
    def read(cls, path) -> "Table":
        """Return the table of a JSON file, without its answers."""
        return record.built(cls, record.read_output(path) | {"answers": []}, path)

    @property
    def content(self) -> dict:
        columns = [dataclasses.asdict(column) for column in self.columns]
        groups = [
            {"name": group.name, "rows": _rows(group.rows), "baselines": _rows(group.baselines)}
            for group in self.groups
        ]
        parts = {"baselines": _rows(self.baselines), "ensembles": _rows(self.ensembles)}
        answers = {"answers": record.entries(self.answers)}
        return plain(vars(self) | {"columns": columns, "groups": groups, "answers": []} | parts) | answers

    @property
    def rows(self) -> list[Row]:
        """All rows: baselines, those of the groups, ensembles."""
        inner = [row for group in self.groups for row in group.baselines + group.rows]
        return [*self.baselines, *inner, *self.ensembles]

    @property
    def texts(self) -> list[bool]:
        """Of each column whether its cells are words, not numbers."""
        columns = ([cell for row in self.rows if (cell := row.cells[place])] for place in range(len(self.columns)))
        return [any(cell.written for cell in cells) and all(cell.value is None for cell in cells) for cells in columns]

    @property
    def synthetic(self) -> bool:
        return any(column.synthetic for column in self.columns)

    @property
    def title(self) -> str:
        """The caption, which says SYNTHETIC first where any column is."""
        return f"[{wording.SYNTHETIC} data] {self.caption}" if self.synthetic else self.caption

    def records(self) -> list[dict]:
        return [{"failed": self.failed}] if self.failed else [plain(one) for row in self.rows for one in row.records]


_DEFAULTS = vars(Cell())


def _rows(rows: list[Row]) -> list[dict]:
    """Return rows as JSON holds them: of a cell what differs from a cell that says nothing."""
    return [
        vars(row)
        | {
            "cells": [
                cell and {name: value for name, value in vars(cell).items() if value != _DEFAULTS[name]}
                for cell in row.cells
            ]
        }
        for row in rows
    ]


def plain(value):
    """Return a value as JSON holds it: floats with ten digits, None for NaN; inside lists and dicts too."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    return value


def to_csv(records: list[dict]) -> str:
    """Return records as CSV; the columns are their keys, in the order in which they first occur."""
    file = io.StringIO()
    names = dict.fromkeys(name for record in records for name in record)
    lines = csv.DictWriter(file, list(names), restval="", lineterminator="\n")
    lines.writeheader()
    lines.writerows(records)
    return file.getvalue()


def write_output(path, content: dict) -> None:
    """Write the values of a table or figure as JSON, keys in the order of the CSV's columns."""
    write_text(path, json.dumps(content | {"version": VERSION}, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
