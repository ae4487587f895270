"""The page of runs: for each task and group of runs the scores of each seed, with links to the runs' files.

It is made from runs.csv; its spec is the report's.
"""

from pathlib import Path

from thaw.core import layout
from thaw.outputs import templates
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.result_links import cell_anchor, files_of, record_anchor, record_names, section_anchor
from thaw.words import wording

ON_ONE_PAGE = 1000  # runs; with more each task has a page of its own


def page(content: dict) -> str:
    return templates.render("runs.html.j2", **content)


def pages(content: dict) -> dict[str, str]:
    """Return each page by its name: one, or one that leads to those of the tasks. Args: what `content` returns."""
    sections = content["sections"]
    if sum(len(row["seeds"]) for section in sections for row in section["rows"]) <= ON_ONE_PAGE:
        return {"runs.html": page(content)}
    by_name: dict[str, list] = {}
    for section in sections:
        by_name.setdefault(f"runs-{section['column'].task}.html", []).append(section)
    of_tasks = {name: page(content | {"sections": own, "records": []}) for name, own in by_name.items()}
    return {"runs.html": page(content | {"sections": [], "elsewhere": by_name})} | of_tasks


def content(runs, spec: dict, results, logs, folder: Path, records=()) -> dict:
    """Return the values of the template by name.

    Args: runs as `read_runs` gives them; spec of the report; the folders of results, of logs, and of the page; the
    records of probes and merges.
    """
    summary = aggregate.summarise(runs, "test", spec["order"])
    groups, rows = aggregate.group_names(summary, spec["labels"]), aggregate.SummaryRows(summary)
    first = {column.task: column for column in reversed(aggregate.columns(summary, spec["labels"]))}  # test splits
    there = runs[runs["main"].astype(bool) & (runs["missing"] == "")].sort_values("seed", kind="stable")
    cells: dict[tuple, list] = {}
    for run in there.itertuples():
        cells.setdefault(_key(run), []).append(run)
    named: set[str] = set()

    def line(row) -> dict:
        """Return a line of the list of runs: name, anchor, and of each seed its score and files."""
        anchor = cell_anchor(row.task, row._asdict())
        shown = "" if anchor in named else anchor  # a baseline may be that of several groups; an id is written once
        named.add(anchor)
        seeds = [
            {
                "seed": wording.seed(one.seed),
                "score": 100 * one.value,
                "files": files_of(one.folder, results, logs, folder),
            }
            for one in cells.get(_key(row), [])
        ]
        return {"name": aggregate.row_name(row, spec["labels"]), "anchor": shown, "row": row, "seeds": seeds}

    sections = [
        {
            "column": column,
            "group": name,
            "encoder": group[1],
            "head": group[2],
            "anchor": section_anchor(column.task, group),
            "rows": [
                *map(line, aggregate.in_column(rows.baselines(group), column)),
                *map(line, aggregate.in_column([*rows.runs(group), *rows.ensembles], column)),
            ],
        }
        for column in reversed(first.values())
        for group, name in groups.items()
        if aggregate.in_column(rows.runs(group), column)
    ]
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


def _key(row) -> tuple:
    return (row.task, row.split, *aggregate.row_key(row))
