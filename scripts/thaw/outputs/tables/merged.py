"""The table of merged folders: what each executes, stores and scores."""

from thaw.core import layout
from thaw.declarations.flags import flag_label
from thaw.outputs.frame.result_links import record_anchor, run_anchor
from thaw.outputs.frame.runs_frame import CELL
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, said, text_row
from thaw.words import wording


def build(data, spec: dict) -> Table:
    """Return a line for each merge: its tasks with their layers and scores, layers executed and stored parameters."""
    groups = []
    marks = wording.warning_marks(
        flag for record in data.merges.values() for one in record["tasks"].values() for flag in one.get("flags", [])
    )
    for (subset, encoder, name), record in data.merges.items():
        tasks, layers, stored = record["tasks"], record["layers"], record["parameters"]
        rows = []
        for task, one in tasks.items():
            label = wording.task_name(spec["labels"], task)
            strategy = wording.strategy_name(spec["labels"], one["strategy"], one["variant"])
            flags = one.get("flags", [])
            validation = Cell(one["validation"], flags=flags, marks=",".join(marks[flag] for flag in flags))
            layers_of = said(f"{one['frozen']} + {one['own']}")
            row = Row(label, [said(strategy), layers_of, validation, Cell(one["test"]), said("")])
            rows.append(_linked(row, _shown_anchor(one["run"], data.runs), 2))
        scored = [one["test"] for one in tasks.values() if one["test"] is not None]
        mean = sum(scored) / len(scored) if scored else None
        for reads, group in layers["by_input"].items():
            names = wording.listing(wording.task_name(spec["labels"], task) for task in group["tasks"])
            rows.append(_whole(f"Layers, {reads}: {names}", group["executed"], group["of"]))
        rows.append(_whole("Layers, all tasks on one text", layers["executed"], layers["of"]))
        own_models = sum(one["frozen"] + one["own"] for one in tasks.values())
        if own_models != layers["of"]:  # a student as a model of its own has fewer layers than the encoder
            rows.append(_whole("The same, its runs as one model each", own_models, layers["of"]))
        rows.append(_whole("Parameters stored", stored["merged"], stored["separate"]))
        rows.append(Row("Mean over tasks", [said(""), said(""), said(""), Cell(mean), said("")]))
        key = layout.key("merge", {"subset": subset, "encoder": encoder, "merge": name})
        for row in rows[len(tasks) :]:
            _linked(row, record_anchor("merge", key), 1)
        groups.append(Group(_title(subset, encoder, name, spec), rows))
        known = {"subset": subset, "encoder": encoder, "merge": name, "tasks": " ".join(tasks)}
        known["branches"] = " ".join(f"{task}:{one['frozen']}+{one['own']}" for task, one in tasks.items())
        known |= {"mean": mean, "layers": layers["executed"], "of": layers["of"]}
        known["overhead"] = 100 * layers["executed"] / layers["of"]
        known |= {f"parameters_{way}": stored[way] for way in ("merged", "separate")} | {"bytes": record["bytes"]}
        flags = [f"{task}:{flag}" for task, one in tasks.items() for flag in one.get("flags", [])]
        rows[0].records = [known | {"flags": " ".join(flags)}]
    titles = ["Strategy", "Layers: shared + own", "Validation", "Test", "Of full models"]
    notes = [
        "Scores × 100; validation: mean over seeds, by which the branch was chosen; test: of the run that is served. "
        "Layers are counted for one text: tasks that read the same input share one pass of the frozen layers. "
        "All tasks on one text is the count of Wei et al. 2022, which holds only where all tasks read the same text. "
        "Full models: the whole encoder with a head, once for each task.",
        *(f"{mark} Warning: {flag_label(flag)}." for flag, mark in marks.items()),
    ]
    return Table.of_spec(spec, titles, groups, notes, of="Task")


def _whole(name: str, taken: int, full: int) -> Row:
    """Return a line of what all tasks take together, against a full model for each."""
    counts = f"{wording.count(taken)} of {wording.count(full)}"
    return text_row(name, ["", counts, "", "", f"{100 * taken / full:.1f} %"])


def _title(subset: str, encoder: str, name: str, spec: dict) -> str:
    """Return a merge in print, with its encoder and subset."""
    places = [wording.label(spec["labels"], "encoders", encoder), wording.label(spec["labels"], "subsets", subset)]
    return ", ".join([spec["merges"].get(name, name), *places])


def _linked(row: Row, anchor: str, first: int) -> Row:
    """Let the cells of a row, from the first one with a number, lead to the results behind them."""
    for cell in row.cells[first:]:
        if cell and cell.text:
            cell.link = anchor
    return row


def _shown_anchor(folder: str, runs) -> str:
    """Return the anchor of the runs of a cell, by the folder of one; empty where the experiment does not show them."""
    names = layout.names_in_folder("train", folder)
    return run_anchor(tuple(names[name] for name in CELL)) if (runs["folder"] == folder).any() else ""
