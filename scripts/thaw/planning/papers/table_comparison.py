"""A paper's table compared with an experiment: which result reproduces each printed number, and what differs."""

from dataclasses import dataclass

from thaw.declarations.output_options import PrintedOptions
from thaw.planning.offline import rescale_layer_count, stand_in_for
from thaw.planning.papers import printed_tables
from thaw.planning.papers.printed_tables import Printed
from thaw.planning.run_plan import RunPlan, variant
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.reference import PrintedTable


def comparison_for_spec(
    experiment: ExperimentConfig, catalogue: Catalogue, runs: list[RunPlan], output: PrintedOptions, origins: dict
) -> dict:
    """Return what the spec of a paper's table says: the printed numbers, our address of each, and what differs.

    Args: runs of the experiment; origins, from which kind of source each corpus comes. A cell has `printed`, and `at`
    (an address, with `marks` of what is not as in the paper: encoder, split, rows) or `reason`, why there is no number.
    """
    paper, document = printed_tables.read(catalogue.folders, output.paper)
    printed_tables.check(output.paper, paper, document, catalogue)
    if output.table not in paper.tables:
        raise printed_tables.unknown_table(output.paper, output.table, paper)
    table = paper.tables[output.table]
    comparison = PaperComparison(experiment, catalogue, runs, origins, table)
    rows = {name: comparison.row(name) for name in table.rows}
    for number in printed_tables.printed(table):
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
        """Return a row without its cells."""
        row, order = self.table.rows[name], list(self.table.rows)
        entry = {"label": row.label or name, "cells": []}
        entry |= row.model_dump(include={"seeds", "note", "provenance", "least", "favours"}, exclude_none=True)
        return entry | ({"minus": [order.index(other) for other in row.minus]} if row.minus else {})

    def cell(self, number: Printed) -> dict:
        """Return the cell of a printed number."""
        cell = {"printed": number.value}
        if not number.at:
            return cell | ({"reason": number.reason} if number.reason else {})
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

    def _address(self, at: dict, same_split: str) -> tuple[list[str], list[str]]:
        """Return an address with every default filled in and a stand-in in place, and what differs by it."""
        task = self.catalogue.get("tasks", at["task"], "reference")
        same = same_split in ("always", self.origins.get(task.corpus))
        marks = [] if same else ["unknown_split" if same_split == "unknown" else "split"]
        subset = self.catalogue.get("subsets", self.experiment.subsets[0], "reference")
        marks += ["rows"] * bool(subset.rows or subset.scored)
        split = at.get("split", task.test[0])
        if "ensemble" in at:
            return [at["task"], "", "", at["ensemble"], "base", at["metric"], split], marks
        encoder, name = at["encoder"], at.get("variant", "base")
        if encoder not in self.experiment.encoders and self.experiment.scale_down:
            stand_in = self.experiment.scale_down.stand_in
            before, encoder = encoder, stand_in_for(encoder, stand_in) if stand_in else encoder
            name, marks = self._moved(at["strategy"], name, before, encoder), ["encoder", *marks]
        return [at["task"], encoder, at.get("head", "linear"), at["strategy"], name, at["metric"], split], marks

    def _moved(self, strategy: str, name: str, before: str, now: str) -> str:
        """Return the variant that corresponds to one of another encoder: points of a sweep over layers are rescaled."""
        entry = self.catalogue.get("strategies", strategy, "reference")
        if "layers" not in entry.sweep.values():
            return name
        layers = [self.catalogue.get("encoders", encoder, "reference").layers for encoder in (before, now)]
        points = {variant(entry, point): point for point in range(layers[0] + 1)}
        return variant(entry, rescale_layer_count(points[name], *layers)) if name in points else name

    def _sweep(self, at: list[str]) -> dict[str, int]:
        """Return the variants of an address' strategy that were run, with their points."""
        variants = {key[4]: run.value for key, run in self.present.items() if list(key[:4]) == at[:4]}
        return dict(sorted(variants.items(), key=lambda item: item[1]))
