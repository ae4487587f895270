"""The plan: experiment -> runs -> specs and file lists. What runs is decided here, before anything is loaded.

    config --load_plan--> experiment + catalogue --> Plan: jobs of each step, by key, from the data up to the report
    Status: the plan compared with the results folder; Questions: what the rules of Snakemake ask of both

Neither torch nor pandas is imported.
"""

from functools import cached_property
from itertools import product

from thaw.core import layout, plugins
from thaw.core.boundaries import cached_layers_read
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.steps import STEPS
from thaw.declarations.task_types import PROBE_ONLY_TYPES
from thaw.planning import ensembles, merge_plan, output_jobs, probe_jobs
from thaw.planning.compatibility import check_labels, check_splits
from thaw.planning.jobs import JobTable, Result, adapted_key, result_folder
from thaw.planning.merge_plan import MergePlan
from thaw.planning.output_requirements import OutputContext
from thaw.planning.probe_jobs import Probed
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_jobs import RunJobs
from thaw.planning.run_plan import RunPlan
from thaw.planning.status import Status
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.schema.experiment import BASELINES, ExperimentConfig


class Plan(JobTable):
    """The jobs of an experiment.

    Attributes: experiment; catalogue; left_out, sentences on what scaling down did; runs (with baselines) and shown,
    those that tables and figures show; the keys of its probes, the results of its merges, and its extra_results,
    {folder: (step, key)}: other baselines and ensembles.
    """

    def __init__(self, experiment: ExperimentConfig, catalogue: Catalogue, results: str = "results", left_out=()):
        super().__init__(results, set(experiment.seeds))
        self.experiment = experiment
        self.catalogue = catalogue
        self.left_out = list(left_out)
        self._planner = RunPlanner(experiment, catalogue)
        self._made = RunJobs(self, self._planner)
        self.extra_results: dict[str, tuple[str, str]] = {}
        for task in experiment.tasks:
            self._add_task(task)
        selected, baselines = list(self._planner.runs()), self._planner.baseline_runs()
        self.runs = [*selected, *(run for _, run in baselines)]
        # All runs are known before the first job of one: whether it keeps its encoder follows from those that read it.
        merges = list(merge_plan.merges(experiment, self._planner))
        for run in (run for merge in merges for run in merge.runs if run.seed == merge.seed):
            self._planner.mark_kept(run)
        combined = ensembles.ensembles(experiment, self._planner)
        for run in self.runs:
            self._made.add(run)
        for key, (name, members) in combined.items():
            self._add_ensemble(key, name, members)
        self.merges = [self._add_merge(merge) for merge in merges]
        self.probes = list(self._add_probes())
        self._check_precision()
        self.shown = self._add_outputs(selected, baselines)

    def _check_precision(self) -> None:
        """Find out whether a phase here has the precision of the experiment, where it names one."""
        if (precision := self.catalogue.computed.get("precision")) is None:
            return
        phases = [phase for run in self.runs if run.step == "train" for phase, _ in self._planner.phases(run)]
        further = {run.weights.further for run in self.runs if run.weights.further}
        phases += [self.catalogue.get("further_pretraining", name, "from").phase for name in further]
        if not any(phase.precision == precision for phase in phases):
            raise UserError(
                f"{self.experiment.place('compute', 'precision')}: no phase here can be computed in {precision}, since "
                "heads on cached vectors are fitted in fp32 and a phase may state its own; leave it out"
            )

    def _add_task(self, name: str) -> None:
        """Add a task's corpus, those of its transfer sets, and the baselines that need no encoder."""
        task = self._made.task(name, "tasks")
        if task.type in PROBE_ONLY_TYPES:
            place = self.catalogue.place("tasks", name, "type")
            raise UserError(f"{place}: no head serves {task.type}; name {name} under probe_tasks, for probes alone")
        for transfer in task.also:
            place = self.catalogue.place("tasks", name, "transfer_sets")
            other = self._made.task(transfer.task, place)
            if other.type != task.type:
                raise UserError(f"{place}: {transfer.task} is of type {other.type}; expected {task.type}, as here")
        check_splits(self.catalogue, self.experiment, name, self.job("prepare", task.corpus).spec["source"])
        check_labels(self.catalogue, self.experiment, name)
        data, cards = self._made.data(task.corpus)
        for subset, baseline in product(self.experiment.subsets, self.experiment.baselines):
            if baseline in BASELINES:
                spec = {"version": STEPS["baseline"].version, "task": task_spec(name, task), "baseline": baseline}
                entry = self.catalogue.get("subsets", subset, "subsets")
                spec |= {"subset": spec_of(entry), "data": data, **plugins.in_spec(task.metrics)}
                names = {"task": name, "subset": subset, "baseline": baseline}
                self._add_extra("baseline", layout.key("baseline", names), spec, {"data": cards})

    def _add_extra(self, step: str, key: str, spec: dict, inputs: dict) -> None:
        """Add a result that is no run of the grid: it needs none, or puts several together."""
        self.add(step, key, spec, inputs)
        self.extra_results[result_folder(step, key)] = (step, key)

    def _add_ensemble(self, key: str, name: str, runs: list[RunPlan]) -> None:
        """Add an ensemble of runs, and those of them that the experiment does not show."""
        for run in runs:
            self._made.add(run)
        digests = [self.digest(run.result) for run in runs]
        spec = ensembles.ensemble_spec(name, self.experiment, self.catalogue, runs[0], digests)
        data, cards = self._made.data(self.catalogue.get("tasks", runs[0].task, "tasks").corpus)
        inputs = {"data": cards, "members": [self.result(run.folder) for run in runs]}
        if "ends" in spec:  # weights compute again what a run computed, from the same files
            read = self.job(runs[0].step, runs[0].key).inputs
            names = ("encoder", "tokens", "also_data", "also_tokens")
            inputs |= {name: read[name] for name in names if name in read}
        self._add_extra("ensemble", key, spec | {"data": data}, inputs)

    def _add_merge(self, merge: MergePlan) -> Result:
        """Add a merge, and the candidates that the experiment does not show; return its result."""
        for run in merge.runs:
            self._made.add(run)
        digests = {run.folder: self.digest(run.result) for run in merge.runs}
        inputs = {"runs": [self.result(run.folder) for run in merge.runs]}
        self.add("merge", merge.key, merge_plan.spec(merge, digests), inputs)
        return Result("merge", merge.key)

    def _add_probes(self):
        """Add the probes, see to it that the stores hold all layers that they read, and yield the keys."""
        for task in self.experiment.probe_tasks:
            self._made.task(task, "probe_tasks")
        runs = [run for run in self.runs if self._planner.is_probed(run)]
        every, rows = list(probe_jobs.probes(self.experiment, self.catalogue, runs)), {}
        for key, own in ((adapted_key(run.folder, one.task), one.rows) for one in every for run in one.runs):
            rows[key] = own if rows.get(key, probe_jobs.NONE) == probe_jobs.NONE else rows[key]
        for probed in every:
            spec, inputs = self._states_of(probed, probe_jobs.spec(probed, self.experiment, self.catalogue))
            for run in probed.runs:
                states = self._add_adapted(probed, run, rows)
                spec.setdefault("adapted", {})[str(run.seed)] = self.digest(states)
                inputs.setdefault("adapted", []).extend(self.files(states.step, states.key))
                inputs.setdefault("runs", []).append(self.result(run.folder))
            self.add("probe", probed.key, spec, inputs)
            yield probed.key

    def _add_adapted(self, probed: Probed, run: RunPlan, rows: dict[str, str]) -> Result:
        """Add the hidden states that an adapted encoder gives to what is probed, and return them.

        Args: by key of such states the training rows that some probe is fitted to.
        """
        states = Result("features_adapted", adapted_key(run.folder, probed.task))
        if states.key not in self.jobs[states.step]:
            spec = probe_jobs.adapted_spec(probed, self.experiment, self.catalogue) | {"rows": rows[states.key]}
            spec, inputs = self._states_of(probed, spec | {"run": self.digest(run.result)})
            inputs["run"] = [self.result(run.folder)]
            self.add(states.step, states.key, spec, inputs)
        return states

    def _states_of(self, probed: Probed, spec: dict) -> tuple[dict, dict]:
        """Return a spec with what it is based on, corpus, encoder and store, and the files of these."""
        task = self.catalogue.get("tasks", probed.task, "tasks")
        read = cached_layers_read(spec.get("phases", []))
        base, inputs = self._made.based(probed.weights, task.corpus, (task.view,), read)
        return spec | base, inputs

    def _add_outputs(self, selected: list[RunPlan], baselines: list[tuple[str, RunPlan]]) -> list[RunPlan]:
        """Add what the experiment shows, collect, tables, figures, report; return the runs that these show.

        Args: the runs that it selects and those that these need; those that it shows as baselines, with their names.
        """
        extras = list(self.extra_results.values())
        combined = [self.job(step, key).digest for step, key in extras if step == "ensemble"]
        every = digest([self.job(run.step, run.key).digest for run in self.runs] + combined)
        probed = [self.job("probe", key) for key in self.probes]
        origins = {corpus: job.spec["source"] for corpus, job in self.jobs["prepare"].items()}
        merged = {result.key: self.digest(result) for result in self.merges}
        context = OutputContext(self.experiment, self.catalogue, self._planner, selected, origins, probed, merged)
        for step, key, spec in output_jobs.specs(context, baselines, extras, every, self.left_out):
            more = {"missing": True} if step == "collect" and self.experiment.allow_missing else {}
            self.add(step, key, spec | more, {})
        return context.runs

    @property
    def name(self) -> str:
        return self.experiment.experiment

    @cached_property
    def status(self) -> Status:
        return Status(self)

    @property
    def threads(self) -> int:
        """The threads that a job which computes is given."""
        return self.experiment.compute.threads

    @property
    def downloads(self) -> dict[str, dict[str, str]]:
        """{step: {key: id on the Hub}} of what prepare and fetch read there; a step that reads nothing is left out."""
        datasets = {key: job.spec for key, job in self.jobs["prepare"].items() if job.spec["source"] == "hub"}
        encoders = {key: job.spec for key, job in self.jobs["fetch"].items() if "hub" in job.spec["entry"]}
        read = {"prepare": {key: spec["entry"]["hub"]["id"] for key, spec in datasets.items()}}
        read["fetch"] = {key: spec["entry"]["hub"] for key, spec in encoders.items()}
        return {step: ids for step, ids in read.items() if ids}
