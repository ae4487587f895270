"""What the runs of a report were made with, where they differ in it, and which were flagged or are missing."""

from pathlib import Path

from thaw.core.files import read_json
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.runs_frame import RUN

NAMED = 3  # so many runs are named where they are counted


def circumstances(present, results) -> list[dict]:
    """Return for each run that is there what its numbers depend on beside its settings.

    Keys: folder, date, and `found`, {what: value}: the versions of libraries, machine, precision and protocol.
    """
    rows = []
    for row in present.drop_duplicates(RUN).itertuples():
        record = read_json(Path(results, row.folder, "cost.json"))
        hardware = record["hardware"]
        machine = f"{hardware['device']}; {hardware['cpu']}; {wording.plural(hardware['threads'], 'thread')}"
        found = {**record["versions"], "machine": machine, "precision": row.precision, "protocol": row.protocol}
        rows.append({"folder": row.folder, "date": record["date"][:10], "found": found})
    return rows


def values(runs: list[dict]) -> dict[str, dict[str, list[str]]]:
    """Return {what: {value: [folders of the runs that have it]}}, the most frequent value first."""
    found: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for what, value in run["found"].items():
            found.setdefault(what, {}).setdefault(value, []).append(run["folder"])
    return {
        what: dict(sorted(having.items(), key=lambda item: len(item[1]), reverse=True))
        for what, having in found.items()
    }


def differences(runs: list[dict]) -> list[dict]:
    """Return in what the runs differ, each with what most of them have and which runs have anything else.

    An other value with many runs has an `anchor`, under which the report lists them apart.
    """
    found = []
    for what, having in values(runs).items():
        (usual, most), *others = having.items()
        others = [
            {"value": value, "folders": folders, "anchor": f"{what}_{i}" if len(folders) > NAMED else None}
            for i, (value, folders) in enumerate(others)
        ]
        found += [{"what": what, "usual": usual, "count": len(most), "others": others}] if others else []
    return found


def flagged(present, labels: dict) -> list[dict]:
    """Return the flagged runs: their name and what was found, in words."""
    rows = present[present["flags"] != ""].drop_duplicates(RUN)
    return [
        {**_named(row, labels), "flags": [wording.flag_label(flag) for flag in row.flags.split(";")]}
        for row in rows.itertuples()
    ]


def missing(runs, labels: dict) -> list[dict]:
    """Return what is missing, runs first: its name, and why."""
    rows = runs[runs["missing"] != ""].drop_duplicates(["kind", *RUN])
    rows = rows.sort_values("kind", key=lambda kinds: kinds != "run", kind="stable")
    return [{**_named(row, labels), "reason": row.missing} for row in rows.itertuples()]


def listing(present) -> list[dict]:
    """Return a line per run: where it lies, its test score, seconds and digest."""
    rows = present[present["main"].astype(bool) & (present["role"] == "test")].drop_duplicates(RUN)
    return [
        {"folder": row.folder, "score": 100 * row.value, "seconds": row.train_seconds, "digest": row.digest}
        for row in rows.itertuples()
    ]


def _named(row, labels: dict) -> dict:
    """Return the name in print of a row of runs: task, what it is, and the rest of what tells it from others."""
    rest = [
        labels.get(f"{kind}s", {}).get(id, id) for kind in ("encoder", "head", "subset") if (id := getattr(row, kind))
    ]
    seed = "" if row.seed != row.seed else int(row.seed)
    return {
        "task": wording.task_name(labels["tasks"], row.task),
        "name": aggregate.row_name(row, labels),
        "rest": ", ".join(rest),
        "seed": seed,
        "folder": row.folder,
    }
