"""The jobs of one experiment, from the data up to its report. No torch, no pandas."""

from itertools import product

from thaw.core import layout, plugins
from thaw.core.boundaries import cached_layers_read
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.steps import STEPS
from thaw.declarations.task_types import PROBE_ONLY_TYPES
from thaw.planning import ensembles, merge_plan, output_jobs, probe_jobs
from thaw.planning.compatibility import check_labels, check_splits
from thaw.planning.jobs import JobTable, Result
from thaw.planning.merge_plan import MergePlan
from thaw.planning.output_requirements import OutputContext
from thaw.planning.paths import adapted_key, result_folder
from thaw.planning.probe_jobs import Probed
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_jobs import RunJobs
from thaw.planning.run_plan import RunPlan
from thaw.planning.upstream_jobs import UpstreamJobs
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.schema.experiment import BASELINES, ExperimentConfig


class ExperimentJobs:
    """Adds an experiment to a table of jobs.

    Attributes: selected, the runs that it selects and those that these need; shown, the runs among them that tables
    and figures show; baseline_runs, those that it shows as baselines, each with the baseline's name; runs, selected
    ones and baselines; extra_results, {folder: (step, key)} of what it shows in addition: other baselines
    and ensembles; merges, the results of merging; probes, their keys.
    """

    def __init__(self, table: JobTable, experiment: ExperimentConfig, catalogue: Catalogue, left_out: list[str]):
        self.table = table
        self.experiment = experiment
        self.catalogue = catalogue
        self.planner = RunPlanner(experiment, catalogue)
        self.upstream = UpstreamJobs(table, catalogue, experiment)
        self._runs = RunJobs(table, self.upstream, self.planner)
        self.extra_results: dict[str, tuple[str, str]] = {}
        for task in experiment.tasks:
            self._add_task(task)
        self.selected, self.baseline_runs = list(self.planner.runs()), self.planner.baseline_runs()
        self.runs = [*self.selected, *(run for _, run in self.baseline_runs)]
        # All runs are known before the first job of one: whether it keeps its encoder follows from those that read it.
        merges = list(merge_plan.merges(experiment, self.planner))
        for run in (run for merge in merges for run in merge.runs if run.seed == merge.seed):
            self.planner.mark_kept(run)
        combined = ensembles.ensembles(experiment, self.planner)
        for run in self.runs:
            self._runs.add(run)
        for key, (name, members) in combined.items():
            self._add_ensemble(key, name, members)
        self.merges = [self._add_merge(merge) for merge in merges]
        self.probes = list(self._add_probes())
        self._add_outputs(left_out)

    def _add_task(self, name: str) -> None:
        """Add a task's corpus, those of its transfer sets, and the baselines that need no encoder."""
        task = self.upstream.task(name, "tasks")
        if task.type in PROBE_ONLY_TYPES:
            place = self.catalogue.place("tasks", name, "type")
            raise UserError(f"{place}: no head serves {task.type}; name {name} under probe_tasks, for probes alone")
        for transfer in task.also:
            place = self.catalogue.place("tasks", name, "transfer_sets")
            other = self.upstream.task(transfer.task, place)
            if other.type != task.type:
                raise UserError(f"{place}: {transfer.task} is of type {other.type}; expected {task.type}, as here")
        check_splits(self.catalogue, self.experiment, name, self.table.job("prepare", task.corpus).spec["source"])
        check_labels(self.catalogue, self.experiment, name)
        data, cards = self.upstream.data(task.corpus)
        for subset, baseline in product(self.experiment.subsets, self.experiment.baselines):
            if baseline in BASELINES:
                spec = {"version": STEPS["baseline"].version, "task": task_spec(name, task), "baseline": baseline}
                entry = self.catalogue.get("subsets", subset, "subsets")
                spec |= {"subset": spec_of(entry), "data": data, **plugins.in_spec(task.metrics)}
                names = {"task": name, "subset": subset, "baseline": baseline}
                self._add_extra("baseline", layout.key("baseline", names), spec, {"data": cards})

    def _add_extra(self, step: str, key: str, spec: dict, inputs: dict) -> None:
        """Add a result that is no run of the grid: it needs none, or puts several together."""
        self.table.add(step, key, spec, inputs)
        self.extra_results[result_folder(step, key)] = (step, key)

    def _add_ensemble(self, key: str, name: str, runs: list[RunPlan]) -> None:
        """Add an ensemble of runs, and those of them that the experiment does not show."""
        for run in runs:
            self._runs.add(run)
        digests = [self.table.digest(run.result) for run in runs]
        spec = ensembles.ensemble_spec(name, self.experiment, self.catalogue, runs[0], digests)
        data, cards = self.upstream.data(self.catalogue.get("tasks", runs[0].task, "tasks").corpus)
        inputs = {"data": cards, "members": [self.table.paths.result(run.folder) for run in runs]}
        if "ends" in spec:  # weights compute again what a run computed, from the same files
            read = self.table.job(runs[0].step, runs[0].key).inputs
            names = ("encoder", "tokens", "also_data", "also_tokens")
            inputs |= {name: read[name] for name in names if name in read}
        self._add_extra("ensemble", key, spec | {"data": data}, inputs)

    def _add_merge(self, merge: MergePlan) -> Result:
        """Add a merge, and the candidates that the experiment does not show; return its result."""
        for run in merge.runs:
            self._runs.add(run)
        digests = {run.folder: self.table.digest(run.result) for run in merge.runs}
        inputs = {"runs": [self.table.paths.result(run.folder) for run in merge.runs]}
        self.table.add("merge", merge.key, merge_plan.spec(merge, digests), inputs)
        return Result("merge", merge.key)

    def _add_probes(self):
        """Add the probes, see to it that the stores hold all layers that they read, and yield the keys."""
        for task in self.experiment.probe_tasks:
            self.upstream.task(task, "probe_tasks")
        runs = [run for run in self.runs if self.planner.is_probed(run)]
        every, rows = list(probe_jobs.probes(self.experiment, self.catalogue, runs)), {}
        for key, own in ((adapted_key(run.folder, one.task), one.rows) for one in every for run in one.runs):
            rows[key] = own if rows.get(key, probe_jobs.NONE) == probe_jobs.NONE else rows[key]
        for probed in every:
            spec, inputs = self._states_of(probed, probe_jobs.spec(probed, self.experiment, self.catalogue))
            for run in probed.runs:
                states = self._add_adapted(probed, run, rows)
                spec.setdefault("adapted", {})[str(run.seed)] = self.table.digest(states)
                inputs.setdefault("adapted", []).extend(self.table.files(states.step, states.key))
                inputs.setdefault("runs", []).append(self.table.paths.result(run.folder))
            self.table.add("probe", probed.key, spec, inputs)
            yield probed.key

    def _add_adapted(self, probed: Probed, run: RunPlan, rows: dict[str, str]) -> Result:
        """Add the hidden states that an adapted encoder gives to what is probed, and return them.

        Args: by key of such states the training rows that some probe is fitted to.
        """
        states = Result("features_adapted", adapted_key(run.folder, probed.task))
        if not self.table.has(states.step, states.key):
            spec = probe_jobs.adapted_spec(probed, self.experiment, self.catalogue) | {"rows": rows[states.key]}
            spec, inputs = self._states_of(probed, spec | {"run": self.table.digest(run.result)})
            inputs["run"] = [self.table.paths.result(run.folder)]
            self.table.add(states.step, states.key, spec, inputs)
        return states

    def _states_of(self, probed: Probed, spec: dict) -> tuple[dict, dict]:
        """Return a spec with what it is based on, corpus, encoder and store, and the files of these."""
        task = self.catalogue.get("tasks", probed.task, "tasks")
        read = cached_layers_read(spec.get("phases", []))
        base, inputs = self.upstream.based(probed.weights, task.corpus, (task.view,), read)
        return spec | base, inputs

    def _add_outputs(self, left_out: list[str]) -> None:
        """Add what the experiment shows: collect, tables, figures, report."""
        ensembles = [
            self.table.job(step, key).digest for step, key in self.extra_results.values() if step == "ensemble"
        ]
        every = digest([self.table.job(run.step, run.key).digest for run in self.runs] + ensembles)
        probed = [self.table.job("probe", key) for key in self.probes]
        origins = {corpus: job.spec["source"] for corpus, job in self.table.jobs["prepare"].items()}
        merged = {result.key: self.table.digest(result) for result in self.merges}
        context = OutputContext(self.experiment, self.catalogue, self.planner, self.selected, origins, probed, merged)
        self.shown, extras = context.runs, list(self.extra_results.values())
        for step, key, spec in output_jobs.specs(context, self.baseline_runs, extras, every, left_out):
            more = {"missing": True} if step == "collect" and self.experiment.allow_missing else {}
            self.table.add(step, key, spec | more, {})
