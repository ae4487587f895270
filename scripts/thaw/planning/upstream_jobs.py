"""What all jobs read: corpora, encoders and stores of features, each made once for all that read it. No torch."""

from collections.abc import Sequence
from os.path import normpath

from thaw.core import layout
from thaw.core.steps import STEPS
from thaw.data.sources import find_source
from thaw.encoders.weight_sources import local_files
from thaw.planning import compatibility
from thaw.planning.initial_weights import InitialWeights
from thaw.planning.jobs import Job, JobTable
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.entry import spec_of
from thaw.schema.experiment import ExperimentConfig


class UpstreamJobs:
    """Adds to a table of jobs what an experiment's other jobs are based on."""

    def __init__(self, table: JobTable, catalogue: Catalogue, experiment: ExperimentConfig):
        self.table = table
        self.catalogue = catalogue
        self.experiment = experiment

    def task(self, name: str, wanted_by: str) -> TaskConfig:
        task = self.catalogue.get("tasks", name, wanted_by)
        corpus = self.catalogue.get("corpora", task.corpus, self.catalogue.place("tasks", name, "corpus"))
        compatibility.check_task(self.catalogue, name, task, corpus)
        if task.corpus not in self.table.jobs["prepare"]:
            data_dir = self.experiment.data_dir
            source, files = find_source(task.corpus, corpus, self.experiment.sources, data_dir)
            kept = spec_of(corpus, frozenset({"synthetic", "files", "hub"} - {source}))
            spec = {"version": STEPS["prepare"].version, "corpus": task.corpus, "entry": kept, "source": source}
            spec["files"] = files
            inputs = {"files": [normpath(f"{data_dir}/{relative}") for relative in sorted(files)]}
            self.table.add("prepare", task.corpus, spec, inputs)
        return task

    def data(self, corpus: str) -> tuple[str, list[str]]:
        """Return the digest of a corpus, and the card that says it is prepared."""
        return self.table.job("prepare", corpus).digest, self.table.files("prepare", corpus)

    def encoder(self, weights: InitialWeights) -> tuple[Job, list[str]]:
        """Return the job that fetches an encoder, or trains it further, and the card that it writes."""
        step, key = weights.step, weights.key
        if key not in self.table.jobs[step]:
            if weights.further:
                self._pretrain(weights)
            else:
                entry = self.catalogue.get("encoders", weights.encoder, "encoders")
                spec = {"version": STEPS["fetch"].version, "encoder": weights.encoder, "entry": spec_of(entry)}
                if files := local_files(entry, f"encoders.{weights.encoder}"):
                    spec["files"] = files
                self.table.add("fetch", key, spec, {})
        return self.table.job(step, key), self.table.files(step, key)

    def _pretrain(self, weights: InitialWeights) -> None:
        """Add the further pretraining of an encoder: it reads the tokens of the corpus, and no hidden states."""
        fetched, card = self.encoder(InitialWeights(weights.encoder))
        entry = self.catalogue.get("further_pretraining", weights.further, "from")
        store = self.store(InitialWeights(weights.encoder), weights.corpus, entry.view)
        spec = {"version": STEPS["pretrain"].version, "settings": spec_of(entry, frozenset({"view"}))}
        spec |= {"encoder": fetched.digest, "features": self.table.job("features", store).digest}
        spec["compute"] = spec_of(self.experiment.compute)
        inputs = {"encoder": card, "tokens": [self.table.file("features", store)]}
        self.table.add("pretrain", weights.key, spec, inputs)

    def store(self, weights: InitialWeights, corpus: str, view: str) -> str:
        key = layout.key("features", {"weights": weights.key, "corpus": corpus, "view": view})
        if key not in self.table.jobs["features"]:
            entry, (encoder, card) = self.catalogue.get("views", view, "view"), self.encoder(weights)
            data, cards = self.data(corpus)
            spec = {"version": STEPS["features"].version, "view": spec_of(entry), **self.experiment.store.states}
            spec |= {"data": data, "encoder": encoder.digest, "compute": spec_of(self.experiment.compute)}
            self.table.add("features", key, spec, {"data": cards, "encoder": card})
            self.table.boundaries[key], self.table.vectors[key] = [], []
        return key

    def states(self, stores: list[str], read: Sequence[int | str]) -> dict[str, list[str]]:
        """Return the cards of some stores that a run reads, and see to it that they hold the parts that it reads."""
        for key in stores:
            wanted = {*self.table.boundaries[key], *self.table.vectors[key], *read}
            self.table.boundaries[key] = sorted(part for part in wanted if isinstance(part, int))
            self.table.vectors[key] = sorted(part for part in wanted if isinstance(part, str))
        return {
            "tokens": [self.table.file("features", key) for key in stores],
            "boundaries": [card for key in stores for card in self.table.parts(key, read)],
        }

    def based(
        self, weights: InitialWeights, corpus: str, views: tuple[str, ...], read: Sequence[int | str]
    ) -> tuple[dict, dict]:
        """Return what a spec says of corpus, encoder and the store of each view, and the files of these by name.

        Args: read, the parts of the stores that are read.
        """
        stores = [self.store(weights, corpus, view) for view in views]
        digests = [self.table.job("features", key).digest for key in stores]
        (encoder, card), (data, cards) = self.encoder(weights), self.data(corpus)
        spec = {"data": data, "encoder": encoder.digest, "features": digests if len(digests) > 1 else digests[0]}
        return spec, {"data": cards, "encoder": card} | self.states(stores, read)
