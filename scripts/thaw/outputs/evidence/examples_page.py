"""The page of examples: for each task and group of runs what is behind its scores, with links to the runs' files.

It is made from runs.csv, the runs' predictions and the prepared datasets; its spec is the report's.
"""

from pathlib import Path

from thaw.core import layout
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.runtime import log
from thaw.data.corpus import Corpus
from thaw.outputs import templates
from thaw.outputs.evidence import evidence_blocks
from thaw.outputs.evidence.task_predictions import PredictedCell, TaskPredictions, read_cell, task_of
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.result_links import cell_anchor, files_of, record_anchor, record_names, section_anchor
from thaw.words import wording

FEW, MANY, ALL_EXAMPLES = 5, 20, 800  # examples of a section; of the whole page, about
ON_ONE_PAGE = 1000  # runs; with more each task has a page of its own


def page(content: dict) -> str:
    return templates.render("examples.html.j2", **content)


def pages(content: dict) -> dict[str, str]:
    """Return each page by its name: one, or one that leads to those of the tasks. Args: what `content` returns."""
    sections = content["sections"]
    if sum(len(row["seeds"]) for section in sections for row in section["rows"]) <= ON_ONE_PAGE:
        return {"examples.html": page(content)}
    by_name: dict[str, list] = {}
    for section in sections:
        by_name.setdefault(f"examples-{section['column'].task}.html", []).append(section)
    of_tasks = {name: page(content | {"sections": own, "records": []}) for name, own in by_name.items()}
    return {"examples.html": page(content | {"sections": [], "elsewhere": by_name})} | of_tasks


def content(runs, spec: dict, results, logs, folder: Path, records=()) -> dict:
    """Return the values of the template by name.

    Args: runs as `read_runs` gives them; spec of the report; the folders of results, of logs, and of the page; the
    records of probes and merges.
    """
    summary = aggregate.summarise(runs, "test", spec["order"])
    groups, rows = aggregate.group_names(summary, spec["labels"]), aggregate.SummaryRows(summary)
    first = {column.task: column for column in reversed(aggregate.columns(summary, spec["labels"]))}  # test splits
    places = [
        (column, group, name)
        for column in reversed(first.values())
        for group, name in groups.items()
        if aggregate.in_column(rows.runs(group), column)
    ]
    most = max(FEW, min(MANY, ALL_EXAMPLES // max(len(places), 1)))
    reader = _Reader(Path(results), logs, folder, _results_of_cells(runs), spec, most)
    sections = [reader.section(rows, *place) for place in places]
    return {
        "spec": spec,
        "labels": spec["labels"],
        "words": wording,
        "sections": sections,
        "elsewhere": {},  # sections by the name of another page
        "records": [_record(path, results, logs, folder) for path in records],
        "synthetic": any(section["column"].synthetic for section in sections),
    }


def _record(path, results, logs, folder: Path) -> dict:
    """Return what the page lists of the record of a probe or a merge: step, name, anchor, files."""
    step, names = record_names(path, results)
    own = Path(path).absolute().parent.relative_to(Path(results).absolute()).as_posix()
    name = " · ".join(names.values())
    anchor = record_anchor(step, layout.key(step, names))
    return {"step": step, "name": name, "anchor": anchor, "files": files_of(own, results, logs, folder)}


def _results_of_cells(runs) -> dict[tuple, list]:
    """Return the rows of the main metric by task, split and ROW: a row for each seed, present ones alone."""
    there = runs[runs["main"].astype(bool) & (runs["missing"] == "")].sort_values("seed", kind="stable")
    cells: dict[tuple, list] = {}
    for row in there.itertuples():
        cells.setdefault(_key(row), []).append(row)
    return cells


def _key(row) -> tuple:
    return (row.task, row.split, *aggregate.row_key(row))


class _Reader:
    """Reads the sections of a page, each dataset and split once."""

    def __init__(self, results: Path, logs, folder: Path, cells: dict[tuple, list], spec: dict, most: int):
        self.results, self.logs, self.folder, self.cells, self.most = results, logs, folder, cells, most
        self.labels = spec["labels"]
        self.named: set[str] = set()
        self.corpora: dict[str, Corpus] = {}
        self.examples: dict[tuple[str, str], TaskPredictions] = {}

    def section(self, rows: aggregate.SummaryRows, column, group: tuple, name: str) -> dict:
        """Return what the page shows of a task and a group of runs (subset, encoder, head)."""
        predicted = aggregate.in_column([*rows.runs(group), *rows.ensembles], column)
        baselines = aggregate.in_column(rows.baselines(group), column)
        section = {"column": column, "group": name, "subset": group[0], "encoder": group[1], "head": group[2]}
        section["anchor"] = section_anchor(column.task, group)
        section["rows"] = [self._row(row) for row in [*baselines, *predicted]]
        try:
            data, cells = self._predictions(column, predicted)
        except (UserError, OSError) as error:  # a dataset that was deleted since must not take the page with it
            log(f"{section['anchor']}: no examples: {error}")
            return section | {"why": str(error)}
        if data is None or not cells:
            return section | {"why": "no run of it has stored predictions"}
        looks = [{"name": cell.name, "strategy": cell.key["strategy"]} for cell in cells]
        blocks = evidence_blocks.blocks(data, cells, self.most)
        return section | {"why": "", "looks": looks, "texts": data.texts, "count": len(data.frame), **blocks}

    def _row(self, row) -> dict:
        """Return a line of the list of runs: name, anchor, and of each seed its score and files."""
        runs = self.cells.get(_key(row), [])
        anchor = cell_anchor(row.task, row._asdict())
        first = anchor not in self.named  # a baseline may be that of several groups; an id is written once
        self.named.add(anchor)
        seeds = [
            {
                "seed": wording.seed(one.seed),
                "score": 100 * one.value,
                "files": files_of(one.folder, self.results, self.logs, self.folder),
            }
            for one in runs
        ]
        name = aggregate.row_name(row, self.labels)
        return {"name": name, "anchor": anchor if first else "", "row": row, "seeds": seeds}

    def _predictions(self, column, rows: list) -> tuple[TaskPredictions | None, list[PredictedCell]]:
        """Return the examples of a task's split and the predictions of some rows of a summary."""
        runs = [(row, self.cells.get(_key(row), [])) for row in rows]
        task = next((task_of(self.results, own[0].folder) for _, own in runs if own), None)
        if task is None:
            return None, []
        data = self._examples(task, column.split)
        cells = []
        for row, own in runs:
            name, folders = aggregate.row_name(row, self.labels), [one.folder for one in own]
            cells.append(read_cell(data, self.results, name, row._asdict(), folders))
        return data, [cell for cell in cells if cell]

    def _examples(self, task: dict, split: str) -> TaskPredictions:
        key = canonical(task), split
        if key not in self.examples:
            self.examples[key] = TaskPredictions(task, self._corpus(task["corpus"]), split)
        return self.examples[key]

    def _corpus(self, name: str) -> Corpus:
        if name not in self.corpora:
            self.corpora[name] = Corpus(self.results / layout.folder("prepare", {"corpus": name}))
        return self.corpora[name]
