"""Reference numbers: what papers print (config/reference), and which result of an experiment reproduces each number."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from thaw.core.errors import UserError, suggestion
from thaw.planning.run_plan import points, variant
from thaw.schema.catalogue import Catalogue
from thaw.schema.reference import PrintedRow, PrintedTable, Reference, Where
from thaw.schema.validation import validate
from thaw.schema.yaml_files import Document, read_yaml

FOLDER = "reference"
NEEDED = ("task", "metric", "encoder", "strategy")


@dataclass(frozen=True)
class Printed:
    """A printed number: its row and column, the value (None where it is not known), and the address of our value.

    at: parts of an address as in `Where`, empty where no result reproduces it; then `reason` says why.
    """

    row: str
    column: str
    value: float | None
    at: dict
    reason: str


def read(folders, name: str) -> tuple[Reference, Document]:
    """Return a paper's numbers and the file that holds them, reference/<name>.yaml of a catalogue folder."""
    files = {path.stem: path for folder in folders for path in sorted(Path(folder, FOLDER).glob("*.yaml"))}
    if name not in files:
        raise UserError(f"reference: there is no {FOLDER}/{name}.yaml{suggestion(name, list(files))}")
    document = read_yaml(files[name])
    return validate(Reference, document.content, document), document


def unknown_table(paper: str, name: str, reference: Reference) -> UserError:
    """Return the error of a table that a paper's file does not hold."""
    return UserError(f"reference: {paper} has no table {name!r}{suggestion(name, list(reference.tables))}")


def printed(table: PrintedTable) -> Iterator[Printed]:
    """Yield every number of a table, row by row, with its address where it has one of its own.

    What follows from other numbers (a difference, a mean over columns) has none and no reason either.
    """
    for row_name, row in table.rows.items():
        values = row.values or [None] * len(table.columns)
        for (column_name, column), value in zip(table.columns.items(), values, strict=True):
            cell = row.cells.get(column_name, Where())
            reason = next((part.not_computed for part in (cell, row, column, table) if part.not_computed), "")
            derived = bool(reason or row.minus or column.over)
            at = {} if derived else table.address() | column.address() | row.address() | cell.address()
            yield Printed(row_name, column_name, value, at, reason)


def check(name: str, reference: Reference, document: Document, catalogue: Catalogue, ensembles=None) -> None:
    """Find out whether every address of a paper's numbers exists in the catalogues; else a UserError with its place.

    Args: ensembles, the ids of those that the paper's experiments define; None where they are not looked at.
    """
    for table_name, table in reference.tables.items():
        for number in printed(table):
            if number.at:
                place = document.place(["tables", table_name, "rows", number.row])
                place += f": {name}.{table_name}.{number.row}, {number.column}"
                _check_address(number.at, table.rows[number.row], catalogue, ensembles, place)


def _check_address(at: dict, row: PrintedRow, catalogue: Catalogue, ensembles, place: str) -> None:
    needed = ("task", "metric") if "ensemble" in at else NEEDED
    if missing := [key for key in needed if key not in at]:
        raise UserError(f"{place}: the {missing[0]} of our number is missing; state it, or say not_computed:")
    task = catalogue.get("tasks", at["task"], place)
    for key, known in (("metric", task.metrics), ("split", [task.validation, *task.test])):
        if at.get(key, known[-1]) not in known:
            raise UserError(f"{place}: {key} {at[key]} is none of task {at['task']}: {', '.join(known)}")
    if "ensemble" in at:
        if ensembles is not None and at["ensemble"] not in ensembles:
            raise UserError(f"{place}: no ensemble {at['ensemble']!r}{suggestion(at['ensemble'], list(ensembles))}")
        return
    head = at.get("head", "linear")
    if catalogue.head(head, task.type) is None:
        raise UserError(f"{place}: head {head} has none for type {task.type}")
    for strategy in filter(None, (at["strategy"], row.full)):
        catalogue.get("strategies", strategy, place)
    _check_variant(at, row, catalogue, place)


def _check_variant(at: dict, row: PrintedRow, catalogue: Catalogue, place: str) -> None:
    """Find out whether a strategy has the variant that is named; a least k takes them all."""
    known = variants(catalogue, at["strategy"], at["encoder"], place)
    if row.least is None and at.get("variant", "base") not in known:
        raise UserError(f"{place}: {at['strategy']} has no variant {at.get('variant', 'base')}: {', '.join(known)}")


def variants(catalogue: Catalogue, strategy: str, encoder: str, place: str) -> list[str]:
    """Return the variants that a strategy has on an encoder, in the order of its sweep."""
    entry, layers = catalogue.get("strategies", strategy, place), catalogue.get("encoders", encoder, place).layers
    return [variant(entry, value) for value in points(entry, layers)]
