"""Versions and machines of a report's runs, differences between them, runs with warnings and missing results."""

from datetime import datetime, timedelta
from pathlib import Path

from thaw.core.files import read_json
from thaw.declarations.flags import flag_label
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.price import FITTED
from thaw.outputs.frame.runs_frame import RUN
from thaw.words import wording

SIZE = "size of the machine"
NAMED = 3  # runs named next to their count; longer lists have a section of their own


def circumstances(present, results) -> list[dict]:
    """Return for each present run what its scores depend on besides its settings.

    Keys: folder, strategy, date, started and ended, fit (see `_fit`), and `facts`, {kind: value}: the versions of Thaw
    and of libraries, machine, its size, precision, protocol.
    """
    rows = []
    for row in present.drop_duplicates(RUN).itertuples():
        record = read_json(Path(results, row.folder, "cost.json"))
        hardware = record["hardware"]
        machine = f"{hardware['device']}; {hardware['cpu']}; {wording.plural(hardware['threads'], 'thread')}"
        facts = {**record["versions"], "machine": machine, "precision": row.precision, "protocol": row.protocol}
        if "cores" in hardware:  # as runs note since they note it
            facts[SIZE] = f"{wording.plural(hardware['cores'], 'core')}, {hardware['memory_gib']:g} GiB of memory"
        ended = datetime.fromisoformat(record["date"])
        times = {"started": ended - timedelta(seconds=record["seconds"]["total"]), "ended": ended}
        named = {"folder": row.folder, "strategy": row.strategy, "date": record["date"][:10]}
        rows.append({**named, "facts": facts, "fit": _fit(row), **times})
    return rows


def span(runs: list[dict]) -> dict:
    """Return when the first run started and the last one ended, the seconds between, and those of all runs added up.

    A run that shared its job with others notes its share of the seconds, so that the first may have started earlier;
    a fit that seeds share, of which each notes all seconds, is counted once.
    """
    started, ended = min(run["started"] for run in runs), max(run["ended"] for run in runs)
    summed = sum({run["fit"]: (run["ended"] - run["started"]).total_seconds() for run in runs}.values())
    shown = {"started": f"{started:%Y-%m-%d %H:%M}", "ended": f"{ended:%Y-%m-%d %H:%M}"}
    return shown | {"seconds": (ended - started).total_seconds(), "summed": summed}


def values(runs: list[dict]) -> dict[str, dict[str, list[str]]]:
    """Return {kind: {value: [folders of its runs]}}, the most frequent value first."""
    by_kind: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for what, value in run["facts"].items():
            by_kind.setdefault(what, {}).setdefault(value, []).append(run["folder"])
    return {
        what: dict(sorted(having.items(), key=lambda item: len(item[1]), reverse=True))
        for what, having in by_kind.items()
    }


def differences(runs: list[dict]) -> list[dict]:
    """Return the facts in which runs differ: the most frequent value, and the runs with another value.

    A value with many runs has an `anchor`: the report lists them in a section of their own. Thaw itself is no such
    fact: whatever changes a result raises the VERSION of its step, and the run is made again. Nor is the machine's
    size, or the precision where each strategy has one.
    """
    precisions = {(run["strategy"], run["facts"]["precision"]) for run in runs}
    settings = {"precision"} if len(precisions) == len({run["strategy"] for run in runs}) else set()
    rows = []
    for what, having in values(runs).items():
        if what in {"thaw", SIZE} | settings:
            continue
        (usual, most), *unusual = having.items()
        others = [
            {"value": value, "folders": folders, "anchor": f"{what}_{i}" if len(folders) > NAMED else None}
            for i, (value, folders) in enumerate(unusual)
        ]
        rows += [{"what": what, "usual": usual, "count": len(most), "others": others}] if others else []
    return rows


def flagged(present, labels: dict, linked) -> list[dict]:
    """Return the runs with warnings, those of a cell with the same ones together: name, warnings in words, runs.

    The runs of an entry have seed, folder and link. Args: linked, from the folder of a run to the link to its record.
    """
    rows = present[present["flags"] != ""].drop_duplicates(RUN)
    cells: dict[tuple, dict] = {}
    for row in rows.itertuples():
        named = _named(row, labels)
        run = {"seed": named.pop("seed"), "folder": named.pop("folder"), "link": linked(row.folder)}
        flags = [flag_label(flag) for flag in row.flags.split(";")]
        cells.setdefault((*named.values(), row.flags), {**named, "flags": flags, "runs": []})["runs"].append(run)
    return [{**cell, "count": len(cell["runs"])} for cell in cells.values()]


def missing(runs, labels: dict) -> list[dict]:
    """Return the missing results, runs first: name and reason."""
    rows = runs[runs["missing"] != ""].drop_duplicates(["kind", *RUN])
    rows = rows.sort_values("kind", key=lambda kinds: kinds != "run", kind="stable")
    return [{**_named(row, labels), "reason": row.missing} for row in rows.itertuples()]


def _fit(row) -> tuple:
    """Return what was fitted at once: a run, or the one convex fit of all seeds of a cell, with the same seconds."""
    shared = row.optimizer == FITTED
    return (str(Path(row.folder).parent), row.train_seconds, row.total_seconds) if shared else (row.folder,)


def _named(row, labels: dict) -> dict:
    """Return the printed name of a row of runs: task, strategy or baseline, encoder, head, subset and seed."""
    rest = [
        wording.label(labels, f"{kind}s", id) for kind in ("encoder", "head", "subset") if (id := getattr(row, kind))
    ]
    return {
        "task": wording.task_name(labels, row.task),
        "name": aggregate.row_name(row, labels),
        "rest": ", ".join(rest),
        "seed": wording.seed(row.seed),
        "folder": row.folder,
    }
