"""Probes of an experiment: each probe, task, subset and encoder, and the spec of each. No torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from thaw import boundaries, compatibility, parts
from thaw.catalogue import Catalogue
from thaw.records import UserError
from thaw.runs import task_spec
from thaw.settings import OF_CLASSES, Experiment, Probe, Task, spec_of
from thaw.versions import VERSIONS

PRETRAINED = "pretrained"  # the folder of probes on an encoder as it was fetched


@dataclass(frozen=True)
class Probed:
    """One probe of one encoder, on one task and subset."""

    task: str
    subset: str
    encoder: str
    probe: str

    @property
    def key(self) -> str:
        """The folder of its results, below probes/."""
        return f"{self.task}/{self.subset}/{self.encoder}/{self.probe}/{PRETRAINED}"


def probes(experiment: Experiment, catalogue: Catalogue) -> Iterator[Probed]:
    """Yield the probes that are selected, each on the tasks that it is for and that the encoder serves.

    Raises UserError for a probe of labels where all tasks are of scores, and for a layer that an encoder lacks.
    """
    for probe in experiment.probes:
        entry = catalogue.get("probes", probe, "config: probes")
        tasks = [task for task in experiment.tasks if _is_for(entry, catalogue.get("tasks", task, "tasks"))]
        if not tasks:
            place = catalogue.place("probes", probe, "kind")
            raise UserError(f"{place}: {entry.kind} is for labels and tags, and no task here has any")
        for task, subset, encoder in product(tasks, experiment.subsets, experiment.encoders):
            layers = catalogue.get("encoders", encoder, "encoders").layers
            if beyond := [n for n in entry.layers if n > layers]:
                place = catalogue.place("probes", probe, "layers")
                raise UserError(
                    f"{place}: {encoder} has no layer {beyond[0]}; it has layers 1 to {layers}, and 0 below"
                )
            if compatibility.encoder_serves(catalogue, encoder, task, [["head"]]):
                yield Probed(task, subset, encoder, probe)


def _is_for(entry: Probe, task: Task) -> bool:
    """Return whether a probe has a meaning for a task."""
    return entry.kind not in OF_CLASSES or not task.type.endswith("regression")


def spec(probed: Probed, experiment: Experiment, catalogue: Catalogue) -> dict:
    """Return all that a probe's result depends on, but for the digests of what was made before it.

    `of` says which probe it is; `layers` is L; `phases` has where the states of each layer of `read` come from.
    """
    task = catalogue.get("tasks", probed.task, "tasks")
    encoder, entry = (
        catalogue.get("encoders", probed.encoder, "encoders"),
        catalogue.get("probes", probed.probe, "probes"),
    )
    corpus, store = catalogue.get("corpora", task.corpus, "corpora"), experiment.store
    tokens = corpus.size.tokens if corpus.size else None
    stored = boundaries.storable(encoder.layers, encoder.width, tokens, store.dtype, store.max_gib)
    read = sorted({0, *entry.layers}) if entry.layers else list(range(encoder.layers + 1))
    return {
        "version": VERSIONS["probe"],
        "of": {"task": probed.task, "subset": probed.subset, "encoder": probed.encoder, "probe": probed.probe},
        "task": task_spec(probed.task, task),
        "subset": spec_of(catalogue.get("subsets", probed.subset, "subsets")),
        "probe": spec_of(entry, frozenset({"layers"})),
        "layers": encoder.layers,
        "read": read,
        "phases": [boundaries.sources(stored, encoder.layers, [n]) for n in read],
        "seeds": experiment.seeds,
        "compute": spec_of(experiment.compute),
        **parts.in_spec(task.metrics),
    }
