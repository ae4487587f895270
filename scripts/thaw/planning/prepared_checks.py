"""What prepared corpora lack of what an experiment's runs read. Before `prepare` nobody has counted. No torch."""

from collections.abc import Iterator
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.declarations.task_types import no_f1
from thaw.schema.corpora import SubsetConfig, TaskConfig
from thaw.schema.experiment import ExperimentConfig

MOST = 3  # sentences in one error


def refuse_shortfalls(plan) -> None:
    """Raise UserError where a prepared corpus lacks what an experiment's runs read, so that it cannot be finished.

    Args: a Plan. An experiment whose results may be missing (`allow_missing`) goes on without these runs.
    """
    lacks = shortfalls(plan, whole_alone=True)
    if lacks:
        raise UserError("; ".join(lacks[:MOST]) + (f"; and {len(lacks) - MOST} more" if len(lacks) > MOST else ""))


def shortfalls(plan, whole_alone: bool = False) -> list[str]:
    """Return a sentence for each thing that a prepared corpus lacks: rows for a subset, two labels for `f1`.

    Args: a Plan; whether to leave out experiments whose results may be missing. Such a run fails; the others do not.
    """
    asked = [one for one in plan.experiments if not (whole_alone and one.allow_missing)]
    return list(dict.fromkeys(sentence for one in asked for sentence in _of(plan, one)))


def _of(plan, experiment: ExperimentConfig) -> Iterator[str]:
    for name in experiment.tasks:
        task = plan.catalogue.get("tasks", name, "tasks")
        if plan.status.is_current("prepare", task.corpus):
            card = read_json(Path(plan.files("prepare", task.corpus)[0]))
            subsets = {subset: plan.catalogue.get("subsets", subset, "subsets") for subset in experiment.subsets}
            yield from (f"{name}: {lack}" for lack in _lacks(task, card, subsets))


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
