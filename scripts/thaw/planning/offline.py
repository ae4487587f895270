"""An experiment without its optional encoders and tasks whose files are missing, and sentences that say which."""

from collections.abc import Sequence

from thaw.core.errors import UserError, suggestion
from thaw.data.sources import find_source
from thaw.encoders.weight_sources import local_files
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig


def drop_unavailable(experiment: ExperimentConfig, catalogue: Catalogue) -> tuple[ExperimentConfig, list[str]]:
    """Return an experiment without the optional encoders and tasks whose files are missing, and what was left out.

    `optional` and `optional_tasks` of what is returned name those that were left out. Raises UserError where nothing is
    left, and for an optional one that is not among the others.
    """
    notes, tasks = {}, [*experiment.tasks, *experiment.probe_tasks]
    for key, kind, known in (("optional", "encoders", experiment.encoders), ("optional_tasks", "tasks", tasks)):
        for name in getattr(experiment, key):
            if name not in known:
                place = experiment.place(key, item=name)
                raise UserError(f"{place}: {name} is none of the {kind}{suggestion(name, known)}")
    for name in experiment.optional:
        try:
            local_files(catalogue.get("encoders", name, "encoders"), f"encoders.{name}")
        except UserError as error:
            notes[name] = f"Encoder {name} was left out: {str(error).partition(': ')[2]}."
    for name in experiment.optional_tasks:
        if corpus := corpus_without_source(name, experiment, catalogue, experiment.sources):
            notes[name] = f"Task {name} was left out: corpus {corpus} has no source here."
    changes = {}
    for key in ("encoders", "tasks", "probe_tasks", "optional", "optional_tasks"):
        changes[key] = [name for name in getattr(experiment, key) if (name in notes) == key.startswith("optional")]
    for key in ("encoders", "tasks"):
        if not changes[key]:
            raise UserError(f"{experiment.place(key)}: none is left. {' '.join(notes.values())}")
    return experiment.model_copy(update=changes), list(notes.values())


def corpus_without_source(
    name: str, experiment: ExperimentConfig, catalogue: Catalogue, sources: Sequence[str]
) -> str | None:
    """Return the corpus of a task, or of a transfer set of it, that has none of these sources on this machine."""
    task = catalogue.get("tasks", name, "tasks")
    for one in (task, *(catalogue.get("tasks", transfer.task, "transfer_sets") for transfer in task.also)):
        try:
            find_source(one.corpus, catalogue.get("corpora", one.corpus, "corpus"), sources, experiment.data_dir)
        except UserError:  # the folder of the users' files is in no spec, so not in a sentence about them either
            return one.corpus
    return None
