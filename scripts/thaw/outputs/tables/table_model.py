"""Tables: which rows, columns and cells an output has. `notes` adds the footnotes, `formats` writes them."""

from dataclasses import dataclass, field

from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.tables import footnotes


@dataclass
class Cell:
    """A mean over seeds (scores x 100); sd is None where it says nothing: one seed, or one fit for all seeds.

    missing: so many of its runs are not there.
    """

    mean: float | None
    sd: float | None
    seeds: int
    best: bool = False
    flagged: bool = False
    missing: int = 0

    @property
    def text(self) -> str:
        """The cell in print: `91.2 ± 0.4†`; `‡` where a run is missing, alone where all are."""
        marks = ("†" if self.flagged else "") + (wording.MISSING if self.missing else "")
        if not self.seeds:
            return marks
        spread = "" if self.sd is None else f" ± {wording.number(self.sd)}"
        return wording.number(self.mean) + spread + marks


@dataclass
class Row:
    """A strategy, a baseline, or what stands beside, with a cell per column (None where it was not asked for)."""

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
    """A table before it is written: baselines above the rule, the groups, and below a rule what stands beside them."""

    id: str
    caption: str
    columns: list[aggregate.Column]
    baselines: list[Row]
    groups: list[Group]
    beside: list[Row]
    notes: list[str] = field(default_factory=list)
    of: str = "Strategy"  # what its lines are, in print
    sentences: bool = False  # cells are words and not numbers

    @property
    def synthetic(self) -> bool:
        """Whether any column stands on synthetic data."""
        return any(column.synthetic for column in self.columns)

    def records(self) -> list[list]:
        """Return a header and lines for programs: scores x 100, deviations, seeds, flagged or not, runs missing."""
        names = [f"{c.task}.{c.split}" for c in self.columns]
        parts = ("mean", "sd", "seeds", "flagged", "missing")
        header = ["kind", "encoder", "head", "subset", "strategy", "variant"]
        inner = [row for group in self.groups for row in group.baselines + group.rows]
        lines = [
            [*row.key.values(), *(number for cell in row.cells for number in _numbers(cell))]
            for row in self.baselines + inner + self.beside
        ]
        return [header + [f"{name}.{part}" for name in names for part in parts], *lines]


@dataclass
class TextCell:
    """A cell that is written already; `mean` is what it is sorted by."""

    text: str
    mean: float | None = None
    best: bool = False


@dataclass
class TextTable(Table):
    """A table of cells that are written already; `header` and `lines` are its numbers for programs."""

    header: list[str] = field(default_factory=list)
    lines: list[list] = field(default_factory=list)

    def records(self) -> list[list]:
        """Return the header and the lines."""
        return [self.header, *self.lines]


def _numbers(cell: Cell | None) -> list:
    """Return a cell as mean, sd, seeds, flagged, missing; empty where there is none."""
    if cell is None:
        return [""] * 5
    plain = ["" if value is None else f"{value:.4f}" for value in (cell.mean, cell.sd)]
    return [*plain, cell.seeds, int(cell.flagged), cell.missing]


def table(runs, spec: dict) -> Table:
    """Return the table of strategies (rows) by tasks (columns): the main metric's mean and deviation over seeds.

    The best mean of each column within each group is marked, ties as printed, among the runs alone. A baseline stands
    above all groups where it belongs to every one of them, else within its own.
    Args: runs as `read_runs` gives them; spec as step `table` gets it.
    """
    labels = spec["labels"]
    found = aggregate.summarise(runs, aggregate.role(spec), spec["order"])
    columns = aggregate.columns(found, labels)
    names = aggregate.group_names(found, labels)
    theirs = {group: aggregate.baselines_of(found, group) for group in names}
    common = set.intersection(*(set(part.index) for part in theirs.values()))
    groups = []
    for group, name in names.items():
        own, rows = theirs[group].drop(index=common), _rows(aggregate.runs_of(found, group), columns, labels)
        _mark_best(rows)
        groups.append(Group(name, _rows(own, columns, labels), rows))
    above = _rows(found[found.index.isin(common)], columns, labels)
    below = _rows(found[found["kind"].isin(aggregate.BESIDE)], columns, labels)
    return Table(
        spec["id"], spec["caption"], columns, above, groups, below, footnotes.notes(found, runs, columns, spec)
    )


def cell(row) -> Cell:
    """Return the cell of a summary row."""
    undefined = row.mean != row.mean
    silent = row.sd != row.sd or row.shared or not row.fitted
    mean, sd = (None if undefined else row.mean), (None if silent else row.sd)
    return Cell(mean, sd, int(row.seeds), flagged=bool(row.flags) and row.fitted, missing=int(row.missing))


def _rows(part, columns, labels: dict) -> list[Row]:
    """Return table rows from summary rows, each key once, in the order of the strategies."""
    rows: dict[tuple, Row] = {}
    places = {(column.task, column.split): place for place, column in enumerate(columns)}
    for entry in part.sort_values("place", kind="stable").itertuples():
        key = {name: getattr(entry, name) for name in ("kind", "encoder", "head", "subset", "strategy", "variant")}
        row = rows.setdefault(tuple(key.values()), Row(key, aggregate.row_name(entry, labels), [None] * len(columns)))
        row.cells[places[entry.task, entry.split]] = cell(entry)
    return list(rows.values())


def _mark_best(rows: list[Row]) -> None:
    """Mark in each column the cells whose printed mean is the highest."""
    for cells in zip(*(row.cells for row in rows), strict=True):
        present = [entry for entry in cells if entry and entry.mean is not None]
        top = max((round(entry.mean, 1) for entry in present), default=None)
        for entry in present:
            entry.best = round(entry.mean, 1) == top


def text_table(
    spec: dict, titles, groups: list[Group], notes: list[str], header: str, lines: list[list], **look
) -> TextTable:
    """Return a table of cells that are written already. Args: titles of its columns; the words of the CSV's header."""
    columns = [aggregate.Column("", "", title, "", False) for title in titles]
    base = (spec["id"], spec["caption"], columns, [], groups, [], notes)
    return TextTable(*base, header=header.split(), lines=lines, **look)
