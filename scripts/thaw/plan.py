"""The plan: experiments -> runs -> specs and file lists. What runs is decided here, before anything is loaded.

    config --load--> experiments + catalogue --Plan--> jobs of each step, by the path of what they make

Snakemake asks the plan by path (`job("train", folder)`), nothing parses a path. Neither torch nor pandas is imported.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from thaw import presentation
from thaw.catalogue import Catalogue, Document, read_yaml, validate
from thaw.data.sources import find_source
from thaw.records import UserError, canonical, digest, near, read_json
from thaw.runs import Run, RunPlanner
from thaw.settings import TARGET_OF_TYPE, Experiment, spec_of
from thaw.versions import VERSIONS

CELL = "runs/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}"
KEYS = {
    "prepare": "{corpus}",
    "fetch": "{encoder}",
    "train": CELL + "/seed{seed}",
    "fit_heads": CELL,
    "baseline": "{task}/{subset}/{baseline}",
    "collect": "{experiment}",
    "table": "{experiment}/{id}",
    "figure": "{experiment}/{id}",
    "report": "{experiment}",
}
FILES = {
    "prepare": "data/{key}/card.json",
    "fetch": "encoders/{key}/card.json",
    "train": "{key}/metrics.json",
    "baseline": "baselines/{key}/metrics.json",
    "collect": "outputs/{key}/runs.csv",
    "table": "outputs/{experiment}/tables/{name}.html",
    "figure": "outputs/{experiment}/figures/{name}.svg",
    "report": "outputs/{key}/report.html",
}


@dataclass(frozen=True)
class Job:
    """One job of a step: its spec, and the made files that it reads, by name."""

    spec: dict
    inputs: dict[str, list[str]]

    @property
    def canonical(self) -> str:
        """The spec as the one params string of a rule."""
        return canonical(self.spec)

    @property
    def digest(self) -> str:
        """The digest under which later specs name this job's result."""
        return digest(self.spec)


def load(config: dict, home: Path, results: str = "results") -> "Plan":
    """Build the plan of one experiment from a merged configuration.

    Args: config as Snakemake or scripts/plan.py merged it; home, the folder of the Snakefile, whose config/ holds
    the shipped catalogues; results, the folder of all results. Raises UserError for any mistake in them.
    """
    known = set(Experiment.model_fields)
    for key in config:
        if key not in known:
            raise UserError(f"config: {key}: unknown key{near(key, known)}")
    document = Document("config", config)
    missing = [k for k, f in Experiment.model_fields.items() if f.is_required() and k not in config]
    if missing:
        raise UserError(f"config: the experiment lacks {', '.join(missing)}; a selection must be complete")
    experiment = validate(Experiment, config, document)
    folders = [home / "config", *experiment.catalogues]
    return Plan([experiment], Catalogue(folders), results)


def read_config(paths: list[str], overrides: dict | None = None) -> dict:
    """Merge configuration files from left to right as Snakemake does: mappings deeply, lists replaced."""
    merged: dict = {}
    for path in paths:
        merged = _merge(merged, read_yaml(path).content)
    return _merge(merged, overrides or {})


def _merge(below: dict, above: dict) -> dict:
    """Return `below` overlaid with `above`, mappings key by key."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


class Plan:
    """All jobs of one experiment or several, looked up by step and path.

    Attributes: experiments; catalogue; results (folder); jobs, {step: {key: Job}}; runs and baselines by experiment.
    """

    def __init__(self, experiments: list[Experiment], catalogue: Catalogue, results: str = "results"):
        self.experiments = experiments
        self.catalogue = catalogue
        self.results = results
        self.jobs: dict[str, dict[str, Job]] = {step: {} for step in VERSIONS}
        self.boundaries: dict[str, list[int]] = {}
        self.runs: dict[str, list[Run]] = {}
        self.baselines: dict[str, list[str]] = {experiment.experiment: [] for experiment in experiments}
        for experiment in experiments:
            self._add(experiment)

    def job(self, step: str, key: str) -> Job:
        """Return one job; an unknown key is a UserError that lists what the plan holds."""
        if key not in self.jobs[step]:
            raise UserError(f"{step}: {key!r} is not in this plan{near(key, list(self.jobs[step])[:20])}")
        return self.jobs[step][key]

    def key(self, step: str, wildcards) -> str:
        """Return under which key a step's job stands, from the wildcards of its rule."""
        return KEYS[step].format(**dict(wildcards.items()))

    def canonical(self, step: str, wildcards) -> str:
        """Return the spec of a rule's job as its one params string."""
        return self.job(step, self.key(step, wildcards)).canonical

    def files(self, step: str, key: str) -> list[str]:
        """Return the declared results by which a job is known to be done."""
        if step == "features":
            return self.cards(key)
        if step == "fit_heads":
            return [f"{self.results}/{key}/seed{seed}/metrics.json" for seed in self.seeds()]
        experiment, _, name = key.partition("/")
        return [f"{self.results}/{FILES[step].format(key=key, experiment=experiment, name=name)}"]

    def is_current(self, step: str, key: str) -> bool:
        """Return whether a job's results are there and carry the digest of its spec; for steps up to the runs."""
        job = self.job(step, key)
        for file in self.files(step, key):
            seed = {"seed": int(Path(file).parent.name.removeprefix("seed"))} if step == "fit_heads" else {}
            if not Path(file).exists() or read_json(file).get("digest") != digest(job.spec | seed):
                return False
        return True

    @property
    def threads(self) -> int:
        """The threads of a job that computes, as its spec has them."""
        return max(experiment.compute.threads for experiment in self.experiments)

    @property
    def data_dir(self) -> str:
        """The folder of the users' files, quoted for a shell line; no spec holds it, only the files' sha256."""
        return shlex.quote(self.experiments[0].data_dir).replace("{", "{{").replace("}", "}}")

    def strategies(self, step: str) -> str:
        """Return, as a pattern for wildcards, the strategies that a step executes."""
        found = sorted({run.strategy for runs in self.runs.values() for run in runs if run.step == step})
        return "|".join(found) or "none"

    def collected(self, name: str) -> list[str]:
        """Return the results that an experiment's runs.csv is made from."""
        runs = [f"{self.results}/{run.folder}/{file}.json" for run in self.runs[name] for file in ("metrics", "cost")]
        return runs + [f"{self.results}/baselines/{key}/metrics.json" for key in self.baselines[name]]

    def shown(self, name: str) -> list[str]:
        """Return the tables and figures of an experiment's report."""
        outputs = self.job("report", name).spec["outputs"]
        return [file for o in outputs for file in self.files(o["step"], f"{name}/{o['id']}")]

    def store(self, key: str) -> str:
        """Return the folder of a store's files: `features/<encoder>/<corpus>/<view>`."""
        return f"{self.results}/features/{key}"

    def cards(self, key: str) -> list[str]:
        """Return the cards that a store declares: its tokens and each boundary that some run reads."""
        return [f"{self.store(key)}/{name}.json" for name in ("tokens", *(f"b{n}" for n in self.boundaries[key]))]

    def seeds(self) -> list[int]:
        """Return every seed that some experiment asks for."""
        return sorted({seed for experiment in self.experiments for seed in experiment.seeds})

    def _add(self, experiment: Experiment) -> None:
        """Add an experiment's jobs, from the data up to its outputs' inputs."""
        for name in experiment.encoders:
            self._add_encoder(name)
        for name in experiment.tasks:
            self._add_task(name, experiment)
        planner = RunPlanner(experiment, self.catalogue)
        runs = list(planner.runs())
        for run in runs:
            self._add_run(run, experiment, planner)
        self.runs[experiment.experiment] = runs
        for step, name, spec in presentation.specs(experiment, self.catalogue, planner, runs, self._digests(runs)):
            self.jobs[step][name] = Job(spec, {})

    def _digests(self, runs: list[Run]) -> str:
        """Return one digest over all runs' specs: tables are made again when any of them changed."""
        return digest([self.jobs[run.step][run.key].digest for run in runs])

    def _add_encoder(self, name: str) -> None:
        entry = self.catalogue.get("encoders", name, "encoders")
        spec = {"version": VERSIONS["fetch"], "encoder": name, "entry": spec_of(entry)}
        self.jobs["fetch"][name] = Job(spec, {})

    def _add_task(self, name: str, experiment: Experiment) -> None:
        """Add a task's corpus, the stores of it, and its baselines."""
        task = self.catalogue.get("tasks", name, "tasks")
        place = self.catalogue.place("tasks", name, "corpus")
        corpus = self.catalogue.get("corpora", task.corpus, place)
        self._check_task(name, task, corpus)
        if task.corpus not in self.jobs["prepare"]:
            source, files = find_source(task.corpus, corpus, experiment.sources, experiment.data_dir)
            kept = spec_of(corpus, frozenset({"synthetic", "files", "hub"} - {source}))
            spec = {"version": VERSIONS["prepare"], "corpus": task.corpus, "entry": kept, "source": source}
            spec["files"] = files
            inputs = {"files": [f"{experiment.data_dir}/{relative}" for relative in sorted(files)]}
            self.jobs["prepare"][task.corpus] = Job(spec, inputs)
        for encoder in experiment.encoders:
            self._add_store(encoder, task, experiment)
        for subset in experiment.subsets:
            rows = spec_of(self.catalogue.get("subsets", subset, "subsets"))
            for baseline in experiment.baselines:
                spec = {
                    "version": VERSIONS["baseline"],
                    "task": {"id": name, **spec_of(task)},
                    "subset": rows,
                }
                spec |= {"baseline": baseline, "data": self.jobs["prepare"][task.corpus].digest}
                key = f"{name}/{subset}/{baseline}"
                self.jobs["baseline"][key] = Job(spec, {"data": self.files("prepare", task.corpus)})
                self.baselines[experiment.experiment].append(key)

    def _check_task(self, name: str, task, corpus) -> None:
        """Find out whether a task's target and type fit its corpus."""
        place = self.catalogue.place("tasks", name, "target")
        if task.target not in corpus.targets:
            raise UserError(
                f"{place}: corpus {task.corpus} has no target {task.target!r}{near(task.target, corpus.targets)}"
            )
        kind, due = corpus.targets[task.target], TARGET_OF_TYPE[task.type]
        if kind != due:
            raise UserError(f"{place}: type {task.type} takes a target of kind {due}; {task.target} is a {kind}")
        texts = 0 if corpus.words else len(corpus.texts)
        wanted = {"pair": 2, "tagg": 0, "span": 0}.get(task.type[:4], 1)
        if texts != wanted:
            words = {0: "a words column", 1: "one text", 2: "two texts"}
            place = self.catalogue.place("tasks", name, "type")
            raise UserError(f"{place}: {task.type} takes {words[wanted]}; corpus {task.corpus} has {words[texts]}")

    def _add_store(self, encoder: str, task, experiment: Experiment) -> None:
        key = f"{encoder}/{task.corpus}/{task.view}"
        view = self.catalogue.get("views", task.view, "view")
        prepare, fetch = self.jobs["prepare"][task.corpus], self.jobs["fetch"][encoder]
        spec = {"version": VERSIONS["features"], "view": spec_of(view), "dtype": experiment.store.dtype}
        spec |= {"data": prepare.digest, "encoder": fetch.digest, "compute": spec_of(experiment.compute)}
        inputs = {"data": self.files("prepare", task.corpus), "encoder": self.files("fetch", encoder)}
        self.jobs["features"][key] = Job(spec, inputs)
        self.boundaries.setdefault(key, [])

    def _add_run(self, run: Run, experiment: Experiment, planner: RunPlanner) -> None:
        """Add one run's job, under its folder for `train` and its variant's folder for `fit_heads`."""
        task = self.catalogue.get("tasks", run.task, "tasks")
        key = f"{run.encoder}/{task.corpus}/{task.view}"
        spec = planner.spec(run) | {
            "data": self.jobs["prepare"][task.corpus].digest,
            "encoder": self.jobs["fetch"][run.encoder].digest,
            "features": self.jobs["features"][key].digest,
        }
        read = sorted({phase["boundary"] for phase in spec["phases"] if phase["boundary"] is not None})
        self.boundaries[key] = sorted({*self.boundaries[key], *read})
        cards = {
            "tokens": [f"{self.store(key)}/tokens.json"],
            "boundaries": [f"{self.store(key)}/b{n}.json" for n in read],
        }
        inputs = {
            "data": self.files("prepare", task.corpus),
            "encoder": self.files("fetch", run.encoder),
            **cards,
        }
        if run.after:
            before = self.jobs[run.after.step][run.after.key]
            seed = {} if run.after.step == "train" else {"seed": run.seed}
            spec["after"] = {"run": digest(before.spec | seed), "epoch": planner.after_epoch(run)}
            inputs["after"] = [f"{self.results}/{run.after.folder}/metrics.json"]
        if run.step == "fit_heads":
            spec = {k: v for k, v in spec.items() if k != "seed"}
        self.jobs[run.step][run.key] = Job(spec, inputs)
