"""The report: one self-contained page that reads like a paper's results section.

What it reads of its spec (the other steps' specs are in the docstrings of `runs`, `summary` and `tables`):
    experiment, title
    outputs      [{id, kind, step, caption, label}] in order; step table or figure says where the made file lies
    labels       {tasks|encoders|heads|subsets|strategies: {id: name in print}}
    order        {tasks: [id], strategies: [[strategy, variant]]}
    notes        {encoder: footnote}
    tasks        {id: Task as plain values, defaults filled in}
    encoders     {id: Encoder, likewise}
    strategies   {id: Strategy, likewise}
    store        {dtype}; compute {threads}
and of the results: runs.csv, the cards of corpora and encoders, each run's cost.json, tables' html and figures' svg.
"""

import base64
import re
from pathlib import Path

from thaw.outputs import prose, summary, templates, words
from thaw.outputs.runs import run_folder
from thaw.records import UserError, read_json

KEYS = ["task", "subset", "encoder", "head", "strategy", "variant", "seed"]
SPLITS = {"train": 0, "validation": 1, "test": 2, "unseen": 3}


def page(runs, spec: dict, results, folder) -> str:
    """Return the report as HTML.

    Args: runs as `read_runs` gives them; spec as above; results: the results folder; folder: the experiment's
    outputs, where tables/ and figures/ lie.
    """
    labels, found = spec["labels"], summary.summarise(runs, spec)
    columns, fitted = summary.columns(found, labels), runs[runs["encoder"] != ""]
    shown = numbered(spec["outputs"], Path(folder), any(column.synthetic for column in columns))
    costs = [read_json(run_folder(results, key, int(key["seed"])) / "cost.json") for key in _keys(fitted)]
    groups = summary.group_names(found, labels)
    return templates.render(
        "report.html.j2",
        spec=spec,
        labels=labels,
        words=words,
        columns=columns,
        synthetic_tasks=list(dict.fromkeys(column.label for column in columns if column.synthetic)),
        counts=_counts(found, fitted),
        tasks=[task_facts(task, spec, results, labels) for task in _tasks(spec)],
        encoders=encoder_facts(spec, results),
        strategies=[
            (labels["strategies"].get(id, id), entry.get("about"), prose.strategy(entry, labels["strategies"]))
            for id, entry in _strategies(spec)
        ],
        baselines=[summary.row_name(row, labels) for row in _once(found[found["baseline"]], "strategy")],
        findings=prose.findings(found, labels),
        caution=prose.caution(found),
        shown=shown,
        next_table=1 + sum(item["word"] == "Table" for item in shown),
        splits=split_tables(runs, found, columns, labels),
        cost=cost_rows(found, columns, groups, labels),
        extraction=_extraction(fitted),
        flagged=flagged(runs, labels),
        provenance=provenance(costs),
        runs=_run_list(fitted, labels),
    )


def numbered(outputs: list[dict], folder: Path, synthetic: bool) -> list[dict]:
    """Return the outputs with their number and content: a table's markup, a figure's SVG as a data address."""
    from markupsafe import Markup

    count, shown = {"Table": 0, "Figure": 0}, []
    for output in outputs:
        word = "Table" if output["step"] == "table" else "Figure"
        count[word] += 1
        item = {**output, "word": word, "number": count[word], "synthetic": synthetic}
        if word == "Table":
            item["body"] = Markup(_table_body(folder / "tables" / f"{output['id']}.html"))
        else:
            path = folder / "figures" / f"{output['id']}.svg"
            item["image"] = "data:image/svg+xml;base64," + base64.b64encode(_bytes(path)).decode()
        shown.append(item)
    return shown


def _table_body(path: Path) -> str:
    """Return what stands between caption and end of a made table: rows and notes."""
    text = _bytes(path).decode()
    match = re.search(r"</figcaption>(.*)</figure>", text, flags=re.DOTALL)
    if not match:
        raise UserError(f"{path}: holds no table; delete it so that it is made again")
    return match[1]


def _bytes(path: Path) -> bytes:
    """Read a file; a missing one is a UserError."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run the step that makes it") from error


def _tasks(spec: dict) -> list[str]:
    """Return the tasks in the experiment's order."""
    return spec["order"]["tasks"]


def _strategies(spec: dict) -> list[tuple[str, dict]]:
    """Return the strategies in the experiment's order, each once."""
    return [(id, spec["strategies"][id]) for id in dict.fromkeys(pair[0] for pair in spec["order"]["strategies"])]


def _once(frame, name: str) -> list:
    """Return the first row of each value of a column."""
    return list(frame.drop_duplicates(name).itertuples())


def _keys(runs) -> list[dict]:
    """Return what names a run, once for each."""
    return runs[KEYS].drop_duplicates().to_dict("records")


def _counts(found, fitted) -> dict:
    """Return how much was run."""
    return {"runs": len(_keys(fitted)), "seeds": sorted(int(seed) for seed in fitted["seed"].unique())} | {
        name: found.loc[~found["baseline"], name].nunique() for name in ("task", "encoder", "head", "subset")
    }


def task_facts(task: str, spec: dict, results, labels: dict) -> dict:
    """Return a task's line in the table of data: sizes, where validation is from, repeats, overlap, source."""
    entry = spec["tasks"][task]
    card = read_json(Path(results, "data", entry["corpus"], "card.json"))
    splits = card["splits"]
    tests = [splits[name] for name in entry["test"]]
    return {
        "label": words.task_name(labels["tasks"], task),
        "corpus": entry["corpus"],
        "synthetic": card["synthetic"],
        "type": words.TYPE_LABELS[entry["type"]],
        "metrics": [words.METRIC_LABELS[metric] for metric in entry["metrics"]],
        "classes": card["labels"].get(entry["target"], []),
        "protocol": entry["protocol"],
        "train": splits["train"]["rows"],
        "validation": splits[entry["validation"]]["rows"],
        "carved": splits[entry["validation"]]["carved_from"] is not None,
        "test": [split["rows"] for split in tests],
        "duplicates": sum(split["duplicates"] for split in splits.values()),
        "overlap": [split.get("overlap_train", {"rows": 0, "share": 0.0}) for split in tests],
        "source": card["source"],
        "digest": card["digest"],
    }


def encoder_facts(spec: dict, results) -> list[dict]:
    """Return what the report says of each encoder."""
    facts = []
    for id, entry in spec["encoders"].items():
        card = read_json(Path(results, "encoders", id, "card.json"))
        facts.append(
            {
                "label": spec["labels"]["encoders"].get(id, id),
                "text": prose.encoder(entry, card),
                "note": spec["notes"].get(id),
                "sha256": card["sha256"],
                "digest": card["digest"],
            }
        )
    return facts


def split_tables(runs, found, columns, labels: dict) -> list[dict]:
    """Return per task the main metric on every scored split: mean over seeds, x 100."""
    tables, several = [], len(summary.group_names(found, labels)) > 1
    for task in dict.fromkeys(column.task for column in columns):
        scores = runs[(runs["task"] == task) & runs["main"].astype(bool)]
        splits = sorted(scores[["split", "role"]].drop_duplicates().itertuples(), key=lambda row: SPLITS[row.role])
        names = [row.split for row in splits]
        sizes = {name: int(scores.loc[scores["split"] == name, "n"].max()) for name in names}
        means = (
            scores.assign(value=100 * scores["value"]).groupby([*summary.ROW, "split"], dropna=False)["value"].mean()
        )
        rows = []
        for row in found[found["task"] == task].drop_duplicates(summary.ROW).itertuples():
            key = tuple(getattr(row, name) for name in summary.ROW)
            group = summary.group_names(found, labels).get(key[:3]) if several else ""
            cells = [words.number(means.get((*key, name))) for name in names]
            rows.append((summary.row_name(row, labels) + (f"; {group}" if group else ""), cells))
        first = next(column for column in columns if column.task == task)
        label = words.task_name(labels["tasks"], task)
        tables.append(
            {"label": label, "synthetic": first.synthetic, "metric": first.metric, "sizes": sizes, "rows": rows}
        )
    return tables


def cost_rows(found, columns, groups: dict, labels: dict) -> list[dict]:
    """Return per strategy its trained parameters, largest memory, and seconds and FLOPs by task (means over seeds)."""
    fitted, rows = found[~found["baseline"]], []
    tasks = list(dict.fromkeys(column.task for column in columns))
    for key, part in fitted.groupby(summary.ROW, sort=False):
        by_task = part.drop_duplicates("task").set_index("task")
        cells = [by_task.loc[task] if task in by_task.index else None for task in tasks]
        group = groups[key[:3]] if len(groups) > 1 else ""
        name = words.strategy_name(labels["strategies"], key[3], key[4])
        rows.append(
            {
                "name": f"{name}; {group}" if group else name,
                "parameters": words.short(part["parameters"].mean()),
                "memory": words.short(part["memory"].max() * 1e6) + "B",
                "cells": [None if c is None else (words.seconds(c["train"]), words.short(c["flops"])) for c in cells],
                "order": part.index.min(),
            }
        )
    return sorted(rows, key=lambda row: row["order"])


def _extraction(fitted) -> dict:
    """Return the seconds of all extraction, and how many runs read it."""
    runs = fitted.drop_duplicates(KEYS)
    total = runs["train_seconds"].sum()
    spent, readers = runs["extraction_seconds"].sum(), int((runs["extraction_seconds"] > 0).sum())
    return {"seconds": words.seconds(spent), "readers": readers, "training": words.seconds(total)}


def flagged(runs, labels: dict) -> list[dict]:
    """Return the flagged runs: their name and what was found, in words."""
    rows = runs[(runs["flags"] != "") & (runs["encoder"] != "")].drop_duplicates(KEYS)
    return [
        {
            "name": words.strategy_name(labels["strategies"], row.strategy, row.variant),
            "task": words.task_name(labels["tasks"], row.task),
            "seed": int(row.seed),
            "folder": "/".join(str(getattr(row, key)) for key in KEYS[:-1]) + f"/seed{int(row.seed)}",
            "flags": [words.flag_label(flag) for flag in row.flags.split(";")],
        }
        for row in rows.itertuples()
    ]


def provenance(costs: list[dict]) -> dict:
    """Return versions, hardware and days of the runs, each different value once."""
    versions: dict[str, list] = {}
    for record in costs:
        for name, version in record["versions"].items():
            versions.setdefault(name, [])
            versions[name] += [version] if version not in versions[name] else []
    machines = dict.fromkeys(
        f"{record['hardware']['device']}; {record['hardware']['cpu']}; {record['hardware']['threads']} threads"
        for record in costs
    )
    days = sorted(record["date"][:10] for record in costs)
    return {"versions": versions, "machines": list(machines), "first": days[0], "last": days[-1]}


def _run_list(fitted, labels: dict) -> list[dict]:
    """Return one line per run: where it lies, its test score, seconds and digest."""
    rows = fitted[fitted["main"].astype(bool) & (fitted["role"] == "test")].drop_duplicates(KEYS)
    return [
        {
            "folder": "/".join(str(getattr(row, key)) for key in KEYS[:-1]) + f"/seed{int(row.seed)}",
            "score": words.number(100 * row.value, 2),
            "seconds": words.seconds(row.train_seconds),
            "digest": row.digest,
        }
        for row in rows.itertuples()
    ]
