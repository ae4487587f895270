"""What prepared corpora lack of what an experiment's runs read. Before `prepare` nobody has counted. No torch."""

from collections.abc import Iterator
from pathlib import Path

from thaw.core.files import read_json
from thaw.declarations.task_types import no_f1
from thaw.schema.corpora import TaskConfig


def shortfalls(plan) -> list[str]:
    """Return a sentence for each thing that a prepared corpus lacks: rows for a subset, two labels for `f1`.

    Args: a Plan. Such a run fails. The others do not, so that nothing is refused.
    """
    sentences = []
    for experiment in plan.experiments:
        for name in experiment.tasks:
            task = plan.catalogue.get("tasks", name, "tasks")
            if not plan.is_current("prepare", task.corpus):
                continue
            card = read_json(Path(plan.files("prepare", task.corpus)[0]))
            subsets = {subset: plan.catalogue.get("subsets", subset, "subsets").rows for subset in experiment.subsets}
            sentences += [f"{name}: {lack}" for lack in _lacks(task, card, subsets)]
    return list(dict.fromkeys(sentences))


def _lacks(task: TaskConfig, card: dict, subsets: dict[str, int | None]) -> Iterator[str]:
    """Yield what a corpus lacks. Args: a task; the corpus's card; the rows of each subset, None for all."""
    labels, rows = card["labels"].get(task.target, []), card["splits"]["train"]["rows"]
    if "f1" in task.metrics and len(labels) > 2:
        yield no_f1(task.target, len(labels))
    for subset, wanted in subsets.items():
        if wanted is not None and wanted > rows:
            yield f"subset {subset} has {wanted} training rows, and train of the corpus has {rows}"
