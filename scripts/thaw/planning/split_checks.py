"""Whether a corpus has the splits, rows and labels that an experiment's runs read. No torch."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.declarations.splits import PARTS_OF_TRAIN
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import CorpusConfig, TaskConfig
from thaw.schema.experiment import ExperimentConfig

OTHER_NAMES_OF_VALIDATION = {"dev", "development", "val", "valid"}  # in published data sets


def check_splits(catalogue: Catalogue, experiment: ExperimentConfig, name: str, source: str) -> None:
    """Raise UserError for a split that a task reads and its corpus lacks, or for one that nobody reads.

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
    if task.validation in corpus.carve:
        _check_unread(catalogue, task, corpus, there)


def check_prepared(catalogue: Catalogue, experiment: ExperimentConfig, name: str, card: Path, digest: str) -> None:
    """Raise UserError for what a corpus lacks as far as it is known: rows for a subset, two labels for `f1`.

    Args: a task of the experiment; the card of its corpus, where that was prepared; the digest under which it is
    planned, since another card says nothing. Labels are known before that where the corpus's entry lists them.
    """
    task = catalogue.get("tasks", name, "tasks")
    corpus = catalogue.get("corpora", task.corpus, "corpora")
    known = read_json(card) if card.is_file() else {}
    known = known if known.get("digest") == digest else {}
    labels = corpus.labels.get(task.target) or known.get("labels", {}).get(task.target) or []
    if "f1" in task.metrics and len(labels) > 2:
        raise UserError(
            f"{catalogue.place('tasks', name, 'metrics')}: metric f1 is for two labels, and {task.target} has "
            f"{len(labels)}; take f1_macro"
        )
    rows = known.get("splits", {}).get("train", {}).get("rows")
    for subset in experiment.subsets:
        wanted = catalogue.get("subsets", subset, "subsets").rows
        if rows is not None and wanted is not None and wanted > rows:
            raise UserError(
                f"{experiment.place('subsets', item=subset)}: {subset} has {wanted} training rows, and train of "
                f"{task.corpus} has {rows}; name a smaller one, as all"
            )


def _check_unread(catalogue: Catalogue, task: TaskConfig, corpus: CorpusConfig, there: set[str]) -> None:
    """Raise UserError where validation is held out from train though there is a split for it under another name."""
    known = (catalogue.get("tasks", other, "tasks") for other in catalogue.ids("tasks"))
    read = {split for other in known if other.corpus == task.corpus for split in (other.validation, *other.test)}
    if unread := sorted(there & OTHER_NAMES_OF_VALIDATION - read):
        place, split = catalogue.place("corpora", task.corpus, "carve"), unread[0]
        raise UserError(
            f"{place}: validation is held out from train, and no task reads split '{split}'; call it validation in "
            "splits, and carve none"
        )
