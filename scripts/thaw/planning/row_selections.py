"""Which rows of a store its readers have read: what the step that fills it is asked for. No torch.

The plan knows no row: it knows the task and the subset of each reader, and the step draws them from the corpus.
"""

from thaw.core.digests import canonical
from thaw.declarations.objective_kinds import texts_read
from thaw.planning.jobs import JobTable, corpus_of

READERS = ("train", "fit_heads", "search_heads", "probe")  # steps whose rows follow from task, subset and rows
UNKNOWN_LABELS = 10  # of a target whose entry lists none


def selections(table: JobTable, store: str) -> list[dict]:
    """Return what the readers of a store's states select of its rows, each once; nothing where all are to be stored."""
    entries: dict[str, dict] = {}
    cards = set(table.cards(store)[1:])
    for step, jobs in table.jobs.items():
        for job in jobs.values():
            read = {name for name in ("boundaries", "also_boundaries") if cards.intersection(job.inputs.get(name, []))}
            if read and step not in READERS:
                return []
            if "boundaries" in read:
                entry = {key: job.spec[key] for key in ("task", "subset", "rows") if key in job.spec}
                entries[canonical(entry)] = entry
            if "also_boundaries" in read:
                entries |= {canonical(one): one for one in _of_others(job.spec, table.job("features", store).digest)}
    return sorted(entries.values(), key=lambda entry: "task" not in entry)


def _of_others(spec: dict, store: str) -> list[dict]:
    """Return what a run selects of other tasks' rows in a store: of transfer sets, of tasks that train its encoder too.

    Args: spec of the run; digest of the store.
    """
    targets = texts_read(spec["phases"])
    selected = []
    sets = [*spec.get("also", []), *(one for entry in spec.get("auxiliary", []) for one in entry.get("also", []))]
    for entry in (entry for entry in sets if store in entry["features"]):
        selected.append({"transfer": entry["task"]} | ({"subset": {}} if entry["task"]["id"] in targets else {}))
    for entry in (entry for entry in spec.get("auxiliary", []) if store in entry["features"]):
        selected.append({"task": entry["task"], "subset": spec["subset"]})
    return selected


def share_of_train(table: JobTable, store: str, examples: float) -> float:
    """Return about which share of the training rows some run reads: subsets of a draw are nested, draws are not.

    Args: jobs; key of a store; its training rows.
    """
    read: dict[int, float] = {}
    for selection in selections(table, store) or [{"subset": {}}]:
        subset = selection.get("subset", {"rows": 0})
        task = selection.get("task") or {}
        drawn = planned_rows(table, store, task.get("target"), subset, examples)
        rows = 0 if selection.get("rows") == "none" else drawn
        rows = (2 * rows if selection.get("rows") == "outside" else rows) + subset.get("reserved", 0)
        read[subset.get("draw", 1)] = max(rows, read.get(subset.get("draw", 1), 0))
    return min(1.0, sum(read.values()) / max(1.0, examples))


def planned_rows(table: JobTable, store: str, target: str | None, subset: dict, examples: float) -> float:
    """Return about how many rows of a store's training split a subset takes. Args: target of the task, where known."""
    labels = table.job("prepare", corpus_of(store)).spec["entry"].get("labels", {}).get(target, ())
    by_label = subset.get("per_label", 0) * (len(labels) or UNKNOWN_LABELS)
    return min(by_label or subset.get("rows", examples), examples)
