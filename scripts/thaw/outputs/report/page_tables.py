"""The tables that the report has of its own: truncated texts, scores by split, costs, missing results, all runs."""

import dataclasses

from thaw.outputs.frame import aggregate
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, said
from thaw.words import wording

SPLITS = {"train": 0, "validation": 1, "test": 2, "reserved": 3, "unseen": 4, "transfer": 5}


def table(id: str, caption: str, titles, rows: list[Row], of: str = "Strategy") -> Table:
    """Return a table of one group. Args: titles of its columns, each a text or (text, what is said below it)."""
    both = [(title, "") if isinstance(title, str) else title for title in titles]
    columns = [aggregate.Column("", "", title, below, False) for title, below in both]
    return Table(id, caption, columns, [Group("", rows)], of=of)


def cuts(lines: list[dict]) -> Table:
    """Return the table of truncated texts. Args: what `dataset_facts.cuts` returns."""
    rows = []
    for line in lines:
        by_label = ", ".join(f"{label} {wording.count(count)}" for count, label in line["labels"])
        cells: list[Cell | None] = [said(line[name]) for name in ("encoder", "view", "split")]
        cells += [Cell(line["cut"], "count"), Cell(100 * line["cut"] / line["examples"], "%"), said(by_label)]
        rows.append(Row(line["task"], cells))
    titles = ("Encoder", "View", "Split", "Truncated", "Share", "By label")
    return table("cuts", "Texts truncated at the maximum length, with their labels.", titles, rows, "Task")


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
