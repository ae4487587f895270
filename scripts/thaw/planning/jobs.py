"""The jobs of experiments: what each step is asked to make, under which spec, from which files.

A job stands under its step and the path of what it makes. Neither torch nor pandas is imported.
"""

from itertools import product
from pathlib import Path

from thaw.core import boundaries, plugins
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.versions import VERSIONS
from thaw.declarations.task_types import PROBED_TYPES
from thaw.planning import external_and_ensembles, output_jobs, probe_jobs, searches
from thaw.planning.job import Job
from thaw.planning.output_context import OutputContext
from thaw.planning.probe_jobs import Probed
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_plan import RunPlan, pair_views
from thaw.planning.upstream_jobs import Upstream
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.entry import spec_of
from thaw.schema.experiment import BASELINES, ExperimentConfig

MORE = ("keep", "gradients")  # keys of a run's spec by which it leaves more, and no number is another


class Jobs(Upstream):
    """All jobs of one experiment or several.

    Attributes beside those of Upstream: experiments; left_out, sentences on what scaling down did; executed, {step:
    {(head, strategy)}}; and by experiment its runs (those that are shown as baselines among them), the keys of its
    probes, and what stands beside them, {folder: (step, key)}: other baselines, external predictions, ensembles.
    """

    def __init__(
        self, experiments: list[ExperimentConfig], catalogue: Catalogue, results: str = "results", left_out=()
    ):
        super().__init__(experiments, catalogue, results)
        self.left_out = list(left_out)
        self.executed: dict[str, set[tuple[str, str]]] = {step: set() for step in VERSIONS}
        self.runs: dict[str, list[RunPlan]] = {}
        self.beside: dict[str, dict[str, tuple[str, str]]] = {one.experiment: {} for one in experiments}
        self.probes: dict[str, list[str]] = {}
        for experiment in experiments:
            self._add(experiment)

    def _add(self, experiment: ExperimentConfig) -> None:
        """Add an experiment's jobs, from the data up to its report."""
        name, planner = experiment.experiment, RunPlanner(experiment, self.catalogue)
        for task in experiment.tasks:
            self._add_task(task, experiment)
        self._add_external(experiment)
        runs, shown = list(planner.runs()), planner.baseline_runs()
        for run in [*runs, *(run for _, run in shown)]:
            self._add_run(run, experiment, planner)
        self._add_ensembles(experiment, planner)
        self.runs[name] = [*runs, *(run for _, run in shown)]
        ensembles = [self.jobs[step][key].digest for step, key in self.beside[name].values() if step == "ensemble"]
        every = digest([self.jobs[run.step][run.key].digest for run in self.runs[name]] + ensembles)
        self._add_probes(experiment, planner)
        probed = [self.jobs["probe"][key] for key in self.probes[name]]
        origins = {corpus: job.spec["source"] for corpus, job in self.jobs["prepare"].items()}
        context = OutputContext(experiment, self.catalogue, planner, runs, origins, probed)
        for step, key, spec in output_jobs.specs(context, shown, every, self.left_out):
            self.jobs[step][key] = Job(spec, {})

    def _add_task(self, name: str, experiment: ExperimentConfig) -> None:
        """Add a task's corpus, those of its further tests, and the baselines that need no encoder."""
        task = self._task(name, "tasks", experiment)
        if task.type in PROBED_TYPES:
            place = self.catalogue.place("tasks", name, "type")
            raise UserError(f"{place}: no head serves {task.type}; name {name} under probe_tasks, for probes alone")
        for further in task.also:
            place = self.catalogue.place("tasks", name, "also")
            other = self._task(further.task, place, experiment)
            if other.type != task.type:
                raise UserError(f"{place}: {further.task} is of type {other.type}; {task.type} is due, as here")
        for subset, baseline in product(experiment.subsets, experiment.baselines):
            if baseline in BASELINES:
                key = f"{name}/{subset}/{baseline}"
                spec = {"version": VERSIONS["baseline"], "task": task_spec(name, task), "baseline": baseline}
                spec["subset"] = spec_of(self.catalogue.get("subsets", subset, "subsets"))
                spec["data"] = self.jobs["prepare"][task.corpus].digest
                spec |= plugins.in_spec(task.metrics)
                self.jobs["baseline"][key] = Job(spec, {"data": self.files("prepare", task.corpus)})
                self.beside[experiment.experiment][f"baselines/{key}"] = ("baseline", key)

    def _add_external(self, experiment: ExperimentConfig) -> None:
        """Add the scoring of predictions that were made elsewhere."""
        for key, (corpus, file, spec) in external_and_ensembles.external(experiment, self.catalogue).items():
            inputs = {"data": self.files("prepare", corpus), "predictions": [file]}
            self.jobs["external"][key] = Job(spec | {"data": self.jobs["prepare"][corpus].digest}, inputs)
            self.beside[experiment.experiment][f"external/{key}"] = ("external", key)

    def _add_ensembles(self, experiment: ExperimentConfig, planner: RunPlanner) -> None:
        """Add the ensembles, and those of their runs that the experiment does not show."""
        for key, (name, runs) in external_and_ensembles.ensembles(experiment, planner).items():
            for run in planner.with_starts(runs):
                if run.key not in self.jobs[run.step]:
                    self._add_run(run, experiment, planner)
            spec = external_and_ensembles.ensemble_spec(name, experiment, self.catalogue, runs, self.jobs)
            corpus = self.catalogue.get("tasks", runs[0].task, "tasks").corpus
            inputs = {"data": self.files("prepare", corpus)}
            inputs["members"] = [f"{self.results}/{run.folder}/metrics.json" for run in runs]
            self.jobs["ensemble"][key] = Job(spec | {"data": self.jobs["prepare"][corpus].digest}, inputs)
            self.beside[experiment.experiment][f"ensembles/{key}"] = ("ensemble", key)

    def _add_probes(self, experiment: ExperimentConfig, planner: RunPlanner) -> None:
        """Add the probes of an experiment, and see to it that the stores hold all layers that they read."""
        name = experiment.experiment
        for task in experiment.probe_tasks:
            self._task(task, "config: probe_tasks", experiment)
        runs = [run for run in self.runs[name] if planner.is_probed(run)]
        self.probes[name] = []
        for probed in probe_jobs.probes(experiment, self.catalogue, runs):
            spec, inputs = self._read(probed, probe_jobs.spec(probed, experiment, self.catalogue), experiment)
            for run in probed.runs:
                key = self._add_adapted(probed, run, experiment)
                spec.setdefault("adapted", {})[str(run.seed)] = self.jobs["features_adapted"][key].digest
                inputs.setdefault("adapted", []).extend(self.files("features_adapted", key))
                inputs.setdefault("runs", []).append(f"{self.results}/{run.folder}/metrics.json")
            self.jobs["probe"][probed.key] = Job(spec, inputs)
            self.probes[name].append(probed.key)

    def _add_adapted(self, probed: Probed, run: RunPlan, experiment: ExperimentConfig) -> str:
        """Add the hidden states that an adapted encoder gives to what is probed, and return their key."""
        key = f"{run.folder.removeprefix('runs/')}/{probed.task}"
        if key not in self.jobs["features_adapted"]:
            spec = probe_jobs.adapted_spec(probed, experiment, self.catalogue)
            spec, inputs = self._read(probed, spec, experiment)
            spec["run"] = self.jobs["train"][run.key].digest
            inputs["run"] = [f"{self.results}/{run.folder}/metrics.json"]
            self.jobs["features_adapted"][key] = Job(spec, inputs)
        return key

    def _read(self, probed: Probed, spec: dict, experiment: ExperimentConfig) -> tuple[dict, dict]:
        """Return a spec with what it is based on, corpus, encoder and store, and the files of these."""
        task = self.catalogue.get("tasks", probed.task, "tasks")
        store = self._store(probed.weights, task.corpus, task.view, experiment)
        encoder, card = self._encoder(probed.weights, experiment)
        spec |= {"data": self.jobs["prepare"][task.corpus].digest, "encoder": encoder.digest}
        spec["features"] = self.jobs["features"][store].digest
        inputs = {"data": self.files("prepare", task.corpus), "encoder": card}
        return spec, inputs | self._states([store], boundaries.cached_layers_read(spec.get("phases", [])))

    def _add_run(self, run: RunPlan, experiment: ExperimentConfig, planner: RunPlanner) -> None:
        """Add one run's job, under its folder for `train` and its variant's folder for `fit_heads`."""
        spec, inputs = self._based(run, planner.spec(run), experiment)
        if run.step == "fit_heads":
            self._fitted.add(run.seed)
        if run.trials:
            chosen = self._add_search(run, experiment, planner).digest
            spec |= {"grid": searches.grid(run, self.catalogue), "chosen": chosen}
            inputs["chosen"] = self.files(searches.search_step(run), run.search)
        if run.after:
            before = self.jobs[run.after.step][run.after.key]
            seed = {} if run.after.step == "train" else {"seed": run.seed}
            spec["after"] = {"run": digest(before.spec | seed), "epoch": planner.after_epoch(run)}
            spec["after"] |= {"encoder_alone": True} if run.after.task != run.task else {}
            inputs["after"] = [f"{self.results}/{run.after.folder}/metrics.json"]
        if run.step == "fit_heads":
            spec = {k: v for k, v in spec.items() if k != "seed"}
        self.jobs[run.step][run.key] = Job(self._left_more(run, spec), inputs)
        self.executed[run.step].add((run.head, run.strategy))

    def _left_more(self, run: RunPlan, spec: dict) -> dict:
        """Return the spec of the finished run where that left all that is asked for and more, else the spec.

        So that two experiments with a run in common do not take turns in making it, one with and one without.
        """
        path = Path(self.results, run.folder, "metrics.json")
        made = read_json(path).get("spec", spec) if run.step == "train" and path.is_file() else spec
        asked = {key: made[key] for key in MORE if made.get(key) and not spec.get(key)}
        return made if digest(made) == digest(spec | asked) else spec

    def _based(self, run: RunPlan, spec: dict, experiment: ExperimentConfig) -> tuple[dict, dict]:
        """Return a run's spec with what it is based on, corpora, encoder and stores, and the files of these."""
        task = self._task(run.task, "tasks", experiment)
        read = boundaries.cached_layers_read(spec["phases"])
        stores = [self._store(run.weights, task.corpus, view, experiment) for view in run.views]
        digests = [self.jobs["features"][key].digest for key in stores]
        encoder, card = self._encoder(run.weights, experiment)
        spec |= {"data": self.jobs["prepare"][task.corpus].digest, "encoder": encoder.digest}
        spec["features"] = digests if len(digests) > 1 else digests[0]
        inputs = {"data": self.files("prepare", task.corpus), "encoder": card}
        inputs |= self._states(stores, read)
        if task.also and not run.trial:
            further, stores = self._further(run, task, experiment)
            spec["also"] = further
            inputs["also_data"] = [f"{self.results}/data/{key.split('/')[1]}/card.json" for key in stores]
            inputs |= {f"also_{name}": files for name, files in self._states(stores, read).items()}
        return spec, inputs

    def _add_search(self, run: RunPlan, experiment: ExperimentConfig, planner: RunPlanner) -> Job:
        """Add the choice among the trials that a run takes its settings from, and return it."""
        step = searches.search_step(run)
        if run.search in self.jobs[step]:
            return self.jobs[step][run.search]
        if step == "search_heads":
            job = Job(*self._based(run.trials[0], searches.heads_spec(run, planner), experiment))
        else:
            digests = {trial.key: self.jobs["train"][trial.key].digest for trial in run.trials}
            files = [f"{self.results}/{trial.folder}/metrics.json" for trial in run.trials]
            job = Job(searches.trials_spec(run, self.catalogue, digests), {"trials": files})
        self.jobs[step][run.search] = job
        self.executed[step].add((run.head, run.trials[0].strategy))
        return job

    def _further(self, run: RunPlan, task: TaskConfig, experiment: ExperimentConfig) -> tuple[list[dict], list[str]]:
        """Return what a spec says of a task's further test corpora, and their stores: per corpus one for each view."""
        found, stores = [], []
        for further in task.also:
            other = self.catalogue.get("tasks", further.task, "also")
            views = pair_views(other, run.pairs)
            keys = [self._store(run.weights, other.corpus, view, experiment) for view in views]
            entry = {"task": task_spec(further.task, other), "rename": further.rename}
            entry["data"] = self.jobs["prepare"][other.corpus].digest
            entry["features"] = [self.jobs["features"][key].digest for key in keys]
            found.append(entry)
            stores += keys
        return found, stores
