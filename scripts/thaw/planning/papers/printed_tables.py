"""What papers print (config/reference), which result of an experiment reproduces each number, and what differs.

A paper's protocol is compared with the catalogues.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from thaw.core.errors import UserError, suggestion
from thaw.core.phrases import written
from thaw.declarations.output_options import PrintedOptions
from thaw.planning.run_plan import RunPlan, variants
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.keys import fields_by_name
from thaw.schema.phases import PhaseConfig
from thaw.schema.reference import PrintedRow, PrintedTable, ProtocolItem, Reference, Where
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
    if "quantity" in at:
        named = {"tasks": at.get("task"), "encoders": at.get("encoder"), "strategies": at.get("strategy")}
        for block, name in [*named.items(), ("strategies", at.get("against"))]:
            _ = name and catalogue.get(block, name, place)
        return
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
    if catalogue.head(head, task.type, place) is None:
        raise UserError(f"{place}: head {head} has none for type {task.type}")
    for strategy in filter(None, (at["strategy"], row.full)):
        catalogue.get("strategies", strategy, place)
    layers = catalogue.get("encoders", at["encoder"], place).layers
    known = list(variants(catalogue.get("strategies", at["strategy"], place), layers))
    if row.least is None and at.get("variant", "base") not in known:
        raise UserError(f"{place}: {at['strategy']} has no variant {at.get('variant', 'base')}: {', '.join(known)}")


def comparison_for_spec(
    experiment: ExperimentConfig, catalogue: Catalogue, runs: list[RunPlan], output: PrintedOptions, origins: dict
) -> dict:
    """Return what the spec of a paper's table says: the printed numbers, our address of each, and what differs.

    Args: runs of the experiment; origins, from which kind of source each corpus comes. A cell has `printed`, and `at`
    (an address, with `marks` of what is not as in the paper: encoder, split, rows) or `reason`, why there is no number.
    """
    paper, document = read(catalogue.folders, output.paper)
    check(output.paper, paper, document, catalogue)
    if output.table not in paper.tables:
        near = suggestion(output.table, list(paper.tables))
        raise UserError(f"reference: {output.paper} has no table {output.table!r}{near}")
    table = paper.tables[output.table]
    comparison = PaperComparison(experiment, catalogue, runs, origins, table)
    rows = {name: comparison.row(name) for name in table.rows}
    for number in printed(table):
        rows[number.row]["cells"].append(comparison.cell(number))
    columns = [{"label": c.label or name, "scale": c.scale, "over": c.over} for name, c in table.columns.items()]
    others = [[other.source, other.not_computed] for other in paper.tables.values() if other.not_computed]
    facts = table.model_dump(include={"source", "provenance", "seeds", "note", "aggregation"}, exclude_none=True)
    facts |= {"cite": paper.cite, "arxiv": paper.arxiv, "subset": experiment.subsets[0], "not_computed": others}
    return facts | {"columns": columns, "rows": list(rows.values())}


@dataclass
class PaperComparison:
    """An experiment compared with one printed table."""

    experiment: ExperimentConfig
    catalogue: Catalogue
    runs: list[RunPlan]
    origins: dict[str, str]
    table: PrintedTable

    def __post_init__(self):
        runs = [run for run in self.runs if not run.trial and run.seed in self.experiment.seeds]
        self.present = {(run.task, run.encoder, run.head, run.strategy, run.variant): run for run in runs}

    def row(self, name: str) -> dict:
        row, order = self.table.rows[name], list(self.table.rows)
        entry = {"label": row.label or name, "cells": []}
        entry |= row.model_dump(include={"seeds", "note", "provenance", "least", "favours"}, exclude_none=True)
        return entry | ({"minus": [order.index(other) for other in row.minus]} if row.minus else {})

    def cell(self, number: Printed) -> dict:
        cell = {"printed": number.value}
        if not number.at:
            return cell | ({"reason": number.reason} if number.reason else {})
        if "quantity" in number.at:
            return cell | self._quantity(number.at)
        row, column = self.table.rows[number.row], self.table.columns[number.column]
        at, marks = self._address(number.at, column.same_split)
        if at[0] not in self.experiment.tasks:
            return cell | {"reason": "its task is left out here"}
        if row.least is not None:
            sweep = self._sweep(at)
            full = self.present.get((*at[:3], row.full, "base"))
            if not sweep or not full:
                return cell | {"reason": "not run here"}
            return cell | {"at": at, "sweep": sweep, "full": row.full, "marks": marks}
        made = tuple(at[:5]) in self.present or number.at.get("ensemble") in self.experiment.ensembles
        if made:
            return cell | {"at": at, "marks": marks}
        needs = at[1] in self.experiment.optional  # what is left of them was left out
        return cell | {"reason": "its encoder needs weights that are not here" if needs else "not run here"}

    def _quantity(self, at: dict) -> dict:
        """Return the address of what is no score, or why nothing here has it; another encoder may take its place."""
        encoder = at["encoder"] if at["encoder"] in self.experiment.encoders else self.experiment.encoders[0]
        cells = {(run.encoder, run.strategy, run.variant) for run in self.present.values()}
        point = encoder, at.get("strategy"), at.get("variant", "base")
        if at.get("task", self.experiment.tasks[0]) not in self.experiment.tasks:
            return {"reason": "its task is left out here"}
        known = at["merge"] in self.experiment.merges if "merge" in at else point in cells
        marks = ["encoder"] * (encoder != at["encoder"])
        return {"quantity": at | {"encoder": encoder}, "marks": marks} if known else {"reason": "not run here"}

    def _address(self, at: dict, same_split: str) -> tuple[list[str], list[str]]:
        """Return an address with every default filled in, and what differs by it.

        The only encoder of an experiment takes the place of those that it does not name.
        """
        task = self.catalogue.get("tasks", at["task"], "reference")
        same = same_split in ("always", self.origins.get(task.corpus))
        marks = [] if same else ["unknown_split" if same_split == "unknown" else "split"]
        subset = self.catalogue.get("subsets", self.experiment.subsets[0], "reference")
        marks += ["rows"] * bool(subset.in_print != "all" or subset.scored or self._is_carved(task.corpus))
        split = at.get("split", task.test[0])
        if "ensemble" in at:
            return [at["task"], "", "", at["ensemble"], "base", at["metric"], split], marks
        encoder, named, head = at["encoder"], self.experiment.encoders, at.get("head", "linear")
        if len(named) == 1 and encoder not in [*named, *self.experiment.optional]:
            encoder, marks = named[0], ["encoder", *marks]
        return [at["task"], encoder, head, at["strategy"], at.get("variant", "base"), at["metric"], split], marks

    def _is_carved(self, corpus: str) -> bool:
        """Return whether rows of train are held out for a split that the corpus' source lacks."""
        entry = self.catalogue.get("corpora", corpus, "reference")
        source = {"files": entry.files, "hub": entry.hub}.get(self.origins.get(corpus, ""))
        return source is not None and not entry.carve.keys() <= source.splits.keys()

    def _sweep(self, at: list[str]) -> dict[str, int]:
        """Return the variants of an address' strategy that were run, with their points."""
        variants = {key[4]: run.value for key, run in self.present.items() if list(key[:4]) == at[:4]}
        return dict(sorted(variants.items(), key=lambda item: item[1]))


def protocol_for_spec(paper: str, catalogue: Catalogue) -> list[list]:
    """Return the lines of a paper's protocol: what, as the paper, as here, why, whether ours is read from a setting.

    Without a difference why is empty. Raises UserError for a setting that the catalogues lack, and for a difference
    without a reason.
    """
    reference, document = read(catalogue.folders, paper)
    lines = []
    for index, item in enumerate(reference.protocol):
        place = f"{document.place(['protocol', index])}: {paper}.protocol: {item.what}"
        lines.append([item.what, _said(item.paper), *_here(item, catalogue, place), item.setting is not None])
    if precision := catalogue.computed.get("precision"):
        why = "the experiment says so (compute: precision)"
        lines.append(["precision of what trains", "not stated", precision, why, True])
    return lines


def _here(item: ProtocolItem, catalogue: Catalogue, place: str) -> tuple[str, str]:
    """Return what is here and why it differs."""
    if item.setting is None:
        return item.here or "", item.why or ""
    value = setting(item.setting, catalogue, place)
    if value == item.paper or _said(value) == _said(item.paper):
        return "the same", ""
    if not item.why:
        raise UserError(f"{place}: the paper has {_said(item.paper)}, {item.setting} is {_said(value)}; say why:")
    return _said(value), item.why


def setting(path: str, catalogue: Catalogue, place: str):
    """Return a setting of the catalogues by its path, as strategies.lee_full.phases.1.batch_size."""
    block, name, *keys = path.split(".")
    value = catalogue.get(block, name, place)
    for key in keys:
        try:
            value = _step(value, key)
        except (AttributeError, IndexError, KeyError) as error:
            raise UserError(f"{place}: {path}: there is no {key}") from error
    return list(value) if isinstance(value, tuple) else value


def _step(value, key: str):
    """Return what a key leads to: a field by any of its names, an item of a list counted from 1, an entry of a grid."""
    if isinstance(value, list):
        return value[int(key) - 1]
    if isinstance(value, dict):
        return value[fields_by_name(PhaseConfig).get(key, key)]
    if key == "options":
        return value.kind_options
    model: type[BaseModel] = type(value)
    return getattr(value, fields_by_name(model).get(key, key))


def _said(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(written, value)) if isinstance(value, list) else written(value)
