"""What all jobs stand on: corpora, encoders and stores of features, each made once for all that read it.

A job stands under its step and the path of what it makes. Neither torch nor pandas is imported.
"""

from thaw.core.errors import UserError, suggestion
from thaw.core.versions import VERSIONS
from thaw.data.sources import find_source
from thaw.encoders.weight_sources import local_files
from thaw.planning import compatibility
from thaw.planning.initial_weights import InitialWeights
from thaw.planning.job import Job
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.entry import spec_of
from thaw.schema.experiment import ExperimentConfig

FILES = {
    "prepare": "data/{key}/card.json",
    "fetch": "encoders/{key}/card.json",
    "pretrain": "encoders/{key}/card.json",
    "train": "{key}/metrics.json",
    "select": "{key}/chosen.json",
    "search_heads": "{key}/chosen.json",
    "baseline": "baselines/{key}/metrics.json",
    "external": "external/{key}/metrics.json",
    "features_adapted": "adapted/{key}/card.json",
    "probe": "probes/{key}/metrics.json",
    "ensemble": "ensembles/{key}/metrics.json",
    "collect": "outputs/{key}/runs.csv",
    "table": "outputs/{experiment}/tables/{name}.html",
    "figure": "outputs/{experiment}/figures/{name}.svg",
    "report": "outputs/{key}/report.html",
}


class Upstream:
    """The jobs below all others, and where results lie.

    Attributes: catalogue; results (folder); jobs, {step: {key: Job}}; boundaries, {store: those that some run reads}.
    """

    def __init__(self, experiments: list[ExperimentConfig], catalogue: Catalogue, results: str = "results"):
        self.experiments = experiments
        self.catalogue = catalogue
        self.results = results
        self.jobs: dict[str, dict[str, Job]] = {step: {} for step in VERSIONS}
        self.boundaries: dict[str, list[int]] = {}
        self._fitted: set[int] = set()

    def job(self, step: str, key: str) -> Job:
        """Return one job; an unknown key is a UserError that lists what the plan holds."""
        if key not in self.jobs[step]:
            raise UserError(f"{step}: {key!r} is not in this plan{suggestion(key, list(self.jobs[step])[:20])}")
        return self.jobs[step][key]

    def files(self, step: str, key: str) -> list[str]:
        """Return the declared results by which a job is known to be done."""
        if step == "features":
            return self.cards(key)
        if step == "fit_heads":
            return [f"{self.results}/{key}/seed{seed}/metrics.json" for seed in self.seeds()]
        experiment, _, name = key.partition("/")
        return [f"{self.results}/{FILES[step].format(key=key, experiment=experiment, name=name)}"]

    def store(self, key: str) -> str:
        """Return the folder of a store's files: `features/<key of weights>/<corpus>/<view>`."""
        return f"{self.results}/features/{key}"

    def cards(self, key: str) -> list[str]:
        """Return the cards that a store declares: its tokens and each boundary that some run reads."""
        return [f"{self.store(key)}/{name}.json" for name in ("tokens", *(f"b{n}" for n in self.boundaries[key]))]

    def seeds(self) -> list[int]:
        """Return every seed that some experiment asks for, and those of heads that trials of a search start from."""
        return sorted({seed for experiment in self.experiments for seed in experiment.seeds} | self._fitted)

    def _task(self, name: str, wanted_by: str, experiment: ExperimentConfig) -> TaskConfig:
        """Return a task whose corpus is among the jobs."""
        task = self.catalogue.get("tasks", name, wanted_by)
        corpus = self.catalogue.get("corpora", task.corpus, self.catalogue.place("tasks", name, "corpus"))
        compatibility.check_task(self.catalogue, name, task, corpus)
        if task.corpus not in self.jobs["prepare"]:
            source, files = find_source(task.corpus, corpus, experiment.sources, experiment.data_dir)
            kept = spec_of(corpus, frozenset({"synthetic", "files", "hub"} - {source}))
            spec = {"version": VERSIONS["prepare"], "corpus": task.corpus, "entry": kept, "source": source}
            spec["files"] = files
            inputs = {"files": [f"{experiment.data_dir}/{relative}" for relative in sorted(files)]}
            self.jobs["prepare"][task.corpus] = Job(spec, inputs)
        return task

    def _encoder(self, weights: InitialWeights, experiment: ExperimentConfig) -> tuple[Job, list[str]]:
        """Return the job that fetches an encoder, or trains it further, and the card that it writes."""
        name, key = weights.encoder, weights.key
        if weights.further:
            self._pretrain(weights, experiment)
            return self.jobs["pretrain"][key], self.files("pretrain", key)
        if name not in self.jobs["fetch"]:
            entry = self.catalogue.get("encoders", name, "encoders")
            spec = {"version": VERSIONS["fetch"], "encoder": name, "entry": spec_of(entry)}
            if files := local_files(entry, f"encoders.{name}"):
                spec["files"] = files
            self.jobs["fetch"][name] = Job(spec, {})
        return self.jobs["fetch"][name], self.files("fetch", name)

    def _pretrain(self, weights: InitialWeights, experiment: ExperimentConfig) -> None:
        """Add the further pretraining of an encoder: it reads the tokens of the corpus, and no hidden states."""
        if weights.key in self.jobs["pretrain"]:
            return
        fetched, card = self._encoder(InitialWeights(weights.encoder), experiment)
        entry = self.catalogue.get("further_pretraining", weights.further, "from")
        store = self._store(InitialWeights(weights.encoder), weights.corpus, entry.view, experiment)
        spec = {"version": VERSIONS["pretrain"], "settings": spec_of(entry, frozenset({"view"}))}
        spec |= {"encoder": fetched.digest, "features": self.jobs["features"][store].digest}
        spec["compute"] = spec_of(experiment.compute)
        inputs = {"encoder": card, "tokens": [f"{self.store(store)}/tokens.json"]}
        self.jobs["pretrain"][weights.key] = Job(spec, inputs)

    def _store(self, weights: InitialWeights, corpus: str, view: str, experiment: ExperimentConfig) -> str:
        """Return the key of a store that is among the jobs."""
        key = f"{weights.key}/{corpus}/{view}"
        if key not in self.jobs["features"]:
            entry, (encoder, card) = self.catalogue.get("views", view, "view"), self._encoder(weights, experiment)
            spec = {"version": VERSIONS["features"], "view": spec_of(entry), "dtype": experiment.store.dtype}
            spec |= {"data": self.jobs["prepare"][corpus].digest, "encoder": encoder.digest}
            spec["compute"] = spec_of(experiment.compute)
            self.jobs["features"][key] = Job(spec, {"data": self.files("prepare", corpus), "encoder": card})
            self.boundaries[key] = []
        return key

    def _states(self, stores: list[str], read: list[int]) -> dict[str, list[str]]:
        """Return the cards of some stores that a run reads, and see to it that they hold its boundaries."""
        for key in stores:
            self.boundaries[key] = sorted({*self.boundaries[key], *read})
        return {
            "tokens": [f"{self.store(key)}/tokens.json" for key in stores],
            "boundaries": [f"{self.store(key)}/b{n}.json" for key in stores for n in read],
        }
