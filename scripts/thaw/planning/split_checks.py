"""Whether a corpus has the splits, rows and labels that an experiment's runs read. No torch."""

from thaw.core.errors import UserError
from thaw.declarations.splits import PARTS_OF_TRAIN
from thaw.declarations.task_types import no_f1
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig


def check_splits(catalogue: Catalogue, experiment: ExperimentConfig, name: str, source: str) -> None:
    """Raise UserError for a split that a task reads and its corpus lacks.

    Args: a task of the experiment; which of its sources the corpus comes from.
    """
    task = catalogue.get("tasks", name, "tasks")
    corpus = catalogue.get("corpora", task.corpus, "corpora")
    if source == "synthetic":  # with all splits
        return
    joined = {part for parts in corpus.join.values() for part in parts}
    there = {*set(getattr(corpus, source).splits) - joined, *corpus.join, *corpus.carve}
    for subset in experiment.subsets:
        read = catalogue.get("subsets", subset, "subsets").of_runs(task)
        for key, split in (("validation", read.validation), *(("test", split) for split in read.test)):
            if split not in there and split not in PARTS_OF_TRAIN:
                has = f"corpus {task.corpus} has no split '{split}'; it has {', '.join(sorted(there))}"
                raise UserError(f"{catalogue.place('tasks', name, key)}: {has}")


def check_labels(catalogue: Catalogue, name: str) -> None:
    """Raise UserError for metric `f1` of a task whose corpus lists more than two labels."""
    task = catalogue.get("tasks", name, "tasks")
    labels = catalogue.get("corpora", task.corpus, "corpora").labels.get(task.target, [])
    if "f1" in task.metrics and len(labels) > 2:
        raise UserError(f"{catalogue.place('tasks', name, 'metrics')}: {no_f1(task.target, len(labels))}")
