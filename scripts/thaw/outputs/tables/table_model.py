"""Tables: rows, columns and cells. `footnotes` adds the notes, `writers` writes the files."""

from dataclasses import dataclass, field

from thaw.decision.contrasts import OPEN
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.result_links import cell_anchor

ALIKE = "≈"  # what is open against the highest on validation
KEY = ("kind", "encoder", "head", "subset", "strategy", "variant")  # of a row of scores, in the order of its CSV


@dataclass
class Cell:
    """A mean over seeds (scores x 100); sd is None below three seeds, and for one fit shared by all.

    warnings: the marks of the warnings of its runs; missing: the number of missing runs; low, high: the 95 % CI, None
    where none is shown; best: in bold; mark: ALIKE or nothing.
    """

    mean: float | None
    sd: float | None
    seeds: int
    best: bool = False
    warnings: str = ""
    missing: int = 0
    low: float | None = None
    high: float | None = None
    mark: str = ""
    below, parts = "", ()  # of a TextCell

    @property
    def marks(self) -> str:
        """What follows the numbers."""
        return self.mark + self.warnings + (wording.MISSING if self.missing else "")

    @property
    def interval(self) -> str:
        """The 95 % CI in print; empty where none is shown."""
        return "" if self.low is None else wording.interval(self.low, self.high)

    @property
    def text(self) -> str:
        """The cell in print: `91.2 ± 0.4†`; `‡` where a run is missing, alone where all are."""
        marks = self.marks
        if not self.seeds:
            return marks
        spread = "" if self.sd is None else f" ± {wording.number(self.sd)}"
        return wording.number(self.mean) + spread + marks


@dataclass
class Row:
    """A strategy, a baseline, or external predictions, with a cell per column (None where it does not apply)."""

    key: dict
    name: str
    cells: list[Cell | None]


@dataclass
class Group:
    """Rows that share encoder, head and subset, and the baselines that are theirs alone, above them.

    The name is empty where there is a single group.
    """

    name: str
    baselines: list[Row]
    rows: list[Row]


@dataclass
class Table:
    """A table before it is written: baselines above the rule, the groups, and external rows below a rule."""

    id: str
    caption: str
    columns: list[aggregate.Column]
    baselines: list[Row]
    groups: list[Group]
    external: list[Row]
    notes: list[str] = field(default_factory=list)
    short_notes: list[str] = field(default_factory=list)  # those of a LaTeX table, where not all have room
    of: str = "Strategy"  # what its lines are, in print
    sentences: bool = False  # cells are words and not numbers

    @property
    def synthetic(self) -> bool:
        """Whether any column is about synthetic data."""
        return any(column.synthetic for column in self.columns)

    def anchor(self, row: Row, index: int) -> str:
        """Return where the page of examples lists the runs of a cell; empty where it is not of runs alone."""
        if isinstance(row.cells[index], TextCell) and row.cells[index].link:
            return row.cells[index].link
        task = self.columns[index].task
        return cell_anchor(task, row.key) if task and "strategy" in row.key else ""

    def runs(self, row: Row, index: int) -> list[tuple[str, str]]:
        """Return (name, anchor) of the runs that a cell of sentences is about."""
        return getattr(row.cells[index], "runs", [])

    def records(self) -> list[list]:
        """Return the header and lines of the CSV: scores x 100 with all that a cell has, and costs."""
        parts = ("mean", "sd", "seeds", "flagged", "missing", "low", "high", "mark")
        names = [[f"{c.task}.{c.split}.{part}" for part in parts] if c.task else [c.split] for c in self.columns]
        inner = [row for group in self.groups for row in group.baselines + group.rows]
        lines = [[*KEY, *(name for own in names for name in own)]]
        for row in self.baselines + inner + self.external:
            numbers = [n for cell, own in zip(row.cells, names, strict=True) for n in _numbers(cell, own)]
            lines.append([*(row.key[name] for name in KEY), *numbers])
        return lines


def caption(table: Table) -> str:
    """Return the caption, which says SYNTHETIC first where any column is."""
    return f"[{wording.SYNTHETIC} data] {table.caption}" if table.synthetic else table.caption


@dataclass
class TextCell:
    """A cell that is written already; `mean` is what it is sorted by, `link` the anchor of the runs behind it.

    interval and below, what more is said of it, are lines of their own where there is room. runs: names and anchors of
    what a sentence is about, where it is about several. parts: those of a long text, which HTML prints line by line.
    """

    text: str
    mean: float | None = None
    best: bool = False
    interval: str = ""
    link: str = ""
    runs: list[tuple[str, str]] = field(default_factory=list)
    below: str = ""
    parts: list[str] = field(default_factory=list)


@dataclass
class TextTable(Table):
    """A table of cells that are written already; `header` and `lines` are its numbers for programs."""

    header: list[str] = field(default_factory=list)
    lines: list[list] = field(default_factory=list)
    answers: list = field(default_factory=list)  # of a table of recommendations, written next to it as values

    def records(self) -> list[list]:
        """Return the header and the lines."""
        return [self.header, *self.lines]


def _numbers(cell: Cell | TextCell | None, names: list[str]) -> list:
    """Return a cell's fields of the CSV, one for each of its names; empty where there is none."""
    if cell is None:
        return [""] * len(names)
    if isinstance(cell, TextCell):
        return ["" if cell.mean is None else f"{cell.mean:.6g}"]
    mean, sd, low, high = ("" if n is None else f"{n:.4f}" for n in (cell.mean, cell.sd, cell.low, cell.high))
    mark = "taken" if cell.best else OPEN if cell.mark else ""
    return [mean, sd, cell.seeds, int(bool(cell.warnings)), cell.missing, low, high, mark]


def linked_cell(text: str, mean: float | None, behind: list[tuple[str, str]]) -> TextCell:
    """Return a cell that leads to the runs behind it. Args: their names and anchors; of several there is a list."""
    anchors = dict.fromkeys(anchor for _, anchor in behind)
    if len(anchors) == 1:
        return TextCell(text, mean, link=next(iter(anchors)))
    return TextCell(text, mean, runs=behind)


def text_row(name: str, texts) -> Row:
    """Return a row of cells that are written already."""
    return Row({}, name, [TextCell(text) for text in texts])


def text_table(
    spec: dict, titles, groups: list[Group], notes: list[str], header: str, lines: list[list], **look
) -> TextTable:
    """Return a table of cells that are written already. Args: titles of its columns; the words of the CSV's header."""
    columns = [aggregate.Column("", "", title, "", False) for title in titles]
    base = (spec["id"], spec["caption"], columns, [], groups, [], notes)
    return TextTable(*base, header=header.split(), lines=lines, **look)
