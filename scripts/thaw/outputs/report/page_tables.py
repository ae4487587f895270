"""Tables that the report has of its own, as of scores by split and costs, and facts of its tasks and encoders."""

import dataclasses
from pathlib import Path

from thaw.core import layout
from thaw.core.files import read_json
from thaw.declarations.task_types import TYPE_LABELS
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, said
from thaw.outputs.report import methods
from thaw.schema.encoder import UNKNOWN
from thaw.words import wording

SPLITS = {"train": 0, "validation": 1, "test": 2, "reserved": 3, "unseen": 4, "transfer": 5}


def table(id: str, caption: str, titles, rows: list[Row], of: str = "Strategy") -> Table:
    """Return a table of one group. Args: titles of its columns, each a text or (text, what is said below it)."""
    both = [(title, "") if isinstance(title, str) else title for title in titles]
    columns = [aggregate.Column("", "", title, below, False) for title, below in both]
    return Table(id, caption, columns, [Group("", rows)], of=of)


def by_split(runs, summary, columns, labels: dict) -> list[dict]:
    """Return per task the main metric on every scored split: mean over seeds, x 100."""
    tables, groups = [], aggregate.group_names(summary, labels)
    for first in {column.task: column for column in reversed(columns)}.values():
        task = first.task
        scores = runs[(runs["task"] == task) & runs["main"].astype(bool)]
        split_roles = scores[["split", "role"]].drop_duplicates().itertuples()
        splits = [row.split for row in sorted(split_roles, key=lambda row: SPLITS[row.role])]
        sizes = {split: int(scores.loc[scores["split"] == split, "n"].max()) for split in splits}
        means = scores.groupby([*aggregate.ROW, "split"], dropna=False)["value"].mean() * 100
        rows = []
        for row in summary[summary["task"] == task].drop_duplicates(aggregate.ROW).itertuples():
            known = [means.get((*aggregate.row_key(row), split)) for split in splits]
            link, missing = row_anchor(row), int(not row.seeds)
            cells = [
                Cell(value, runs=row.seeds, missing=missing, link=link) if missing or value is not None else None
                for value in known
            ]
            rows.append(_row(row, cells, groups, labels))
        label = wording.task_name(labels, task)
        titles = [(split, f"{wording.count(size)} examples") for split, size in sizes.items()]
        made = table(f"splits_{task}", f"{label}, {first.metric}", titles, rows)
        tables.append({"task": task, "label": label, "synthetic": first.synthetic, "table": made})
    return tables[::-1]


def costs(summary, columns, labels: dict) -> Table:
    """Return per strategy its trained parameters, largest memory, and by task price and FLOPs."""
    rows, groups = [], aggregate.group_names(summary, labels)
    tasks = list(dict.fromkeys(column.task for column in columns))
    fitted = summary[summary["fitted"]].sort_values("rank", kind="stable")
    for _, part in fitted.groupby(aggregate.ROW, sort=False):
        by_task = {row.task: row for row in part.itertuples()}
        cells: list[Cell | None] = [Cell(part["parameters"].mean(), "short"), Cell(part["memory"].max(), "MB")]
        cells += [_cost(by_task[task]) if task in by_task else None for task in tasks]
        rows.append(_row(next(part.itertuples()), cells, groups, labels))
    names = [wording.task_name(labels, task) for task in tasks]
    titles = ["Parameters", "Memory", *((name, "price; FLOPs") for name in names)]
    caption = (
        "Cost of one run: trainable parameters, as a mean over tasks; peak memory, the largest over tasks and seeds; "
        "and per task the price, the median, and training FLOPs, the mean over seeds."
    )
    made = table("cost_table", caption, titles, rows)
    made.columns[2:] = [
        dataclasses.replace(column, task=task) for column, task in zip(made.columns[2:], tasks, strict=True)
    ]
    return made


def _cost(row) -> Cell:
    """Return the price and the FLOPs of a strategy on a task."""
    text = f"{wording.seconds(row.price)}; {wording.short(row.flops)}" if row.seeds else ""
    return said(text, row.price, missing=int(not row.seeds), link=row_anchor(row))


def missing(lines: list[dict]) -> Table:
    """Return the table of missing results. Args: what `provenance.missing` returns."""
    rows = []
    for line in lines:
        name = said(line["name"], below=line["rest"])
        rows.append(Row(line["task"], [name, Cell(line["seed"] and int(line["seed"]), digits=0), said(line["reason"])]))
    return table("missing_results", "Missing results.", ("Strategy or baseline", "Seed", "Reason"), rows, "Task")


def _row(row, cells: list, groups: dict, labels: dict) -> Row:
    """Return a line of a row of the summary; its name has its group if there are several."""
    group = groups.get((row.subset, row.encoder, row.head))
    name = aggregate.row_name(row, labels) + (f"; {group}" if group else "")
    return Row(name, cells, key={key: getattr(row, key) for key in aggregate.ROW})


def tasks(spec: dict, results) -> list[dict]:
    """Return a line per task: sizes, origin of validation, duplicates, overlap, source; fewer facts without a card."""
    return [_task(id, spec, results) for id in spec["order"]["tasks"]]


def _task(id: str, spec: dict, results) -> dict:
    """Return the facts of a task; `prepared` is False if its dataset is missing."""
    labels, entry = spec["labels"], spec["tasks"][id]
    corpus = spec.get("corpora", {}).get(entry["corpus"], {})
    facts = {
        "label": wording.task_name(labels, id),
        "licence": corpus.get("licence", UNKNOWN),
        "cite": corpus.get("cite", []),
        "corpus": entry["corpus"],
        "type": TYPE_LABELS[entry["type"]] + (", balanced class weights" if entry.get("class_weight") else ""),
        "metrics": [wording.metric_name(labels, metric) for metric in entry["metrics"]],
        "protocol": entry["protocol"],
        "tests": entry["test"],
        "synthetic": False,
        "carved": False,
        "prepared": False,
        "classes": [],
    }
    path = Path(results, layout.file("prepare", {"corpus": entry["corpus"]}))
    if not path.exists():
        return facts
    card = read_json(path)
    splits = card["splits"]
    held, tests = splits.get(entry["validation"], {}), [splits[name] for name in entry["test"]]
    return facts | {
        "prepared": True,
        "synthetic": card["synthetic"],
        "classes": card["labels"].get(entry["target"], []),
        "train": splits["train"]["rows"],
        "validation": held.get("rows", 0),  # none where each subset holds out its own
        "carved": held.get("carved_from") is not None,
        "test": [split["rows"] for split in tests],
        "duplicates": sum(split["duplicates"] for split in splits.values()),
        "overlap": [split.get("overlap_train", {"rows": 0, "share": 0.0}) for split in tests],
        "source": card["source"],
        "digest": card["digest"],
    }


def encoders(spec: dict, results) -> list[dict]:
    """Return the facts of each encoder; no text if it was never fetched."""
    entries = []
    for id, entry in spec["encoders"].items():
        path = Path(results, layout.file("fetch", {"encoder": id}))
        facts = {"label": wording.label(spec["labels"], "encoders", id), "note": spec["notes"].get(id), "text": None}
        facts |= {"licence": entry["licence"], "cite": entry["cite"]}
        if path.exists():
            card = read_json(path)
            facts |= {"text": methods.encoder(entry, card), "sha256": card["sha256"], "digest": card["digest"]}
        entries.append(facts)
    return entries
