"""What the runs of an experiment lack of its prepared corpora, before they start: rows and labels. No torch."""

from collections.abc import Iterator
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.declarations.task_types import no_f1
from thaw.schema.corpora import SubsetConfig, TaskConfig

MOST = 3  # sentences in one error


def refuse_shortfalls(plan) -> None:
    """Raise UserError where the experiment lacks what its runs read, so that it cannot be finished.

    Args: a Plan. An experiment whose results may be missing (`allow_missing`) goes on without these runs.
    """
    lacks = [] if plan.experiment.allow_missing else shortfalls(plan)
    if lacks:
        raise UserError("; ".join(lacks[:MOST]) + (f"; and {len(lacks) - MOST} more" if len(lacks) > MOST else ""))


def shortfalls(plan) -> list[str]:
    """Return a sentence for each lack: of rows for a subset, of two labels for `f1`."""
    sentences: list[str] = []
    for name in plan.experiment.tasks:
        task = plan.catalogue.get("tasks", name, "tasks")
        if plan.status.is_current("prepare", task.corpus):
            card = read_json(Path(plan.files("prepare", task.corpus)[0]))
            subsets = {subset: plan.catalogue.get("subsets", subset, "subsets") for subset in plan.experiment.subsets}
            sentences += (f"{name}: {lack}" for lack in _lacks(task, card, subsets))
    return sentences


def _lacks(task: TaskConfig, card: dict, subsets: dict[str, SubsetConfig]) -> Iterator[str]:
    """Yield what a corpus lacks. Args: a task; the corpus's card; the subsets of the experiment by id."""
    labels, rows = card["labels"].get(task.target, []), card["splits"]["train"]["rows"]
    if "f1" in task.metrics and len(labels) > 2:
        yield no_f1(task.target, len(labels))
    for name, subset in subsets.items():
        reserved = min(subset.reserved or 0, rows // 2)  # as `Corpus.reserved` takes them
        if subset.rows is not None and subset.rows > rows - reserved:
            kept = f", of which {reserved} are reserved" if reserved else ""
            yield f"subset {name} of {subset.rows} rows: train of {task.corpus} has {rows}{kept}; ask for fewer"
        counts = card["splits"]["train"].get("labels", {}).get(task.target, {}) if subset.per_label else {}
        for label in (label for label in labels if counts.get(label, 0) < (subset.per_label or 0)):
            of = f"train of {task.corpus} has {counts.get(label, 0)} of {label}"
            yield f"subset {name} of {subset.per_label} rows a label: {of}; ask for fewer"
