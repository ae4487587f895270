"""The plan: experiments -> runs -> specs and file lists. What runs is decided here, before anything is loaded.

    config --load_plan--> experiments + catalogue --build_jobs--> Plan: jobs of each step, by key
    Status: the plan compared with the results folder; Questions: what the rules of Snakemake ask of both

Neither torch nor pandas is imported.
"""

from functools import cached_property

from thaw.planning.experiment_jobs import ExperimentJobs
from thaw.planning.jobs import Job, JobTable
from thaw.planning.status import Status
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig


def build_jobs(
    experiments: list[ExperimentConfig], catalogue: Catalogue, results: str, notes: list[str]
) -> tuple[JobTable, dict[str, ExperimentJobs], list[str]]:
    """Return the jobs of all experiments, these by name, and all sentences on what was left out. Args: those so far."""
    seeds = {seed for experiment in experiments for seed in experiment.seeds}
    changes: dict[str, dict] = {}
    while True:
        table, said = JobTable(results, seeds, changes), list(notes)
        parts = {one.experiment: ExperimentJobs(table, one, catalogue, said) for one in experiments}
        if changes or not table.changes:
            return table, parts, said
        changes = table.changes  # experiments differ on a run that they share: once more, with what they recorded


class Plan:
    """The jobs of one experiment or several.

    Attributes: experiments; catalogue; left_out, sentences on what scaling down did; table, all jobs; and by experiment
    its runs: shown, selected (with what these need) and baseline_runs, (baseline, run), and the last two together; the
    keys of its probes, the results of its merges, and its extra_results, {folder: (step, key)}: other baselines
    and ensembles.
    """

    def __init__(
        self, experiments: list[ExperimentConfig], catalogue: Catalogue, results: str = "results", left_out=()
    ):
        self.experiments = experiments
        self.catalogue = catalogue
        self.table, parts, self.left_out = build_jobs(experiments, catalogue, results, left_out)
        self.runs = {name: part.runs for name, part in parts.items()}
        self.selected = {name: part.selected for name, part in parts.items()}
        self.shown = {name: part.shown for name, part in parts.items()}
        self.baseline_runs = {name: part.baseline_runs for name, part in parts.items()}
        self.extra_results = {name: part.extra_results for name, part in parts.items()}
        self.probes = {name: part.probes for name, part in parts.items()}
        self.merges = {name: part.merges for name, part in parts.items()}

    @cached_property
    def status(self) -> Status:
        """The plan compared with the results folder."""
        return Status(self)

    @property
    def results(self) -> str:
        """The folder of all results."""
        return self.table.paths.results

    @property
    def jobs(self) -> dict[str, dict[str, Job]]:
        """All jobs, by step and key."""
        return self.table.jobs

    @property
    def boundaries(self) -> dict[str, list[int]]:
        """By store the boundaries that some run reads."""
        return self.table.boundaries

    @property
    def executed(self) -> dict[str, set[tuple[str, str]]]:
        """By step the heads and strategies that it executes."""
        return self.table.executed

    def job(self, step: str, key: str) -> Job:
        """Return one job; an unknown key is a UserError that lists what the plan holds."""
        return self.table.job(step, key)

    def files(self, step: str, key: str) -> list[str]:
        """Return the declared results by which a job is known to be done."""
        return self.table.files(step, key)

    def cards(self, store: str) -> list[str]:
        """Return the cards that a store declares."""
        return self.table.cards(store)

    def seeds(self) -> list[int]:
        """Return every seed that some experiment asks for, and those of heads that trials of a search start from."""
        return sorted(self.table.seeds)

    @property
    def threads(self) -> int:
        """The threads that a job which computes is given: the most that an experiment of the plan asks for."""
        return max(experiment.compute.threads for experiment in self.experiments)

    @property
    def downloads(self) -> dict[str, dict[str, str]]:
        """{step: {key: id on the Hub}} of what prepare and fetch read there; a step that reads nothing is left out."""
        datasets = {key: job.spec for key, job in self.jobs["prepare"].items() if job.spec["source"] == "hub"}
        encoders = {key: job.spec for key, job in self.jobs["fetch"].items() if "hub" in job.spec["entry"]}
        read = {"prepare": {key: spec["entry"]["hub"]["id"] for key, spec in datasets.items()}}
        read["fetch"] = {key: spec["entry"]["hub"] for key, spec in encoders.items()}
        return {step: ids for step, ids in read.items() if ids}

    def experiment(self, name: str) -> ExperimentConfig:
        """Return an experiment by its name."""
        return next(experiment for experiment in self.experiments if experiment.experiment == name)
