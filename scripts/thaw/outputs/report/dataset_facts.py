"""Facts of the report about tasks, encoders and truncated texts, from their cards."""

from pathlib import Path

from thaw.core import layout
from thaw.core.files import read_json
from thaw.declarations.task_types import TYPE_LABELS
from thaw.outputs.report import methods
from thaw.schema.encoder import UNKNOWN
from thaw.words import wording


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


def cuts(present, spec: dict, results) -> list[dict]:
    """Return a line per task, encoder, view and split with truncated texts, with their number by label.

    Args: present, the runs with results; spec of the report.
    """
    lines, labels = [], spec["labels"]
    for row in present.drop_duplicates(["task", "encoder", "pairs"]).itertuples():
        task = spec["tasks"][row.task]
        view = task["separate"] if row.pairs == "separate" else task["view"]
        names = {"weights": row.weights, "corpus": task["corpus"], "view": view}
        card = read_json(Path(results, layout.file("features", names)))
        for name, split in card["splits"].items():
            by_label = split.get("truncated_labels", {}).get(task["target"], {})
            line = {
                "task": wording.task_name(labels, row.task),
                "encoder": wording.label(labels, "encoders", row.encoder),
                "view": view,
                "split": name,
                "cut": split["truncated"],
                "examples": split["examples"],
                "labels": sorted(((n, str(label)) for label, n in by_label.items() if n), reverse=True),
            }
            lines += [line] if split["truncated"] else []
    return lines
