"""The plan: experiment -> runs -> specs and file lists. What runs is decided here, before anything is loaded.

    config --load_plan--> experiment + catalogue --ExperimentJobs--> Plan: jobs of each step, by key
    Status: the plan compared with the results folder; Questions: what the rules of Snakemake ask of both

Neither torch nor pandas is imported.
"""

from functools import cached_property

from thaw.planning.experiment_jobs import ExperimentJobs
from thaw.planning.jobs import JobTable
from thaw.planning.status import Status
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig


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
        jobs = ExperimentJobs(self, experiment, catalogue, self.left_out)
        self.runs, self.shown, self.extra_results = jobs.runs, jobs.shown, jobs.extra_results
        self.probes, self.merges = jobs.probes, jobs.merges

    @property
    def name(self) -> str:
        return self.experiment.experiment

    @cached_property
    def status(self) -> Status:
        return Status(self)

    @property
    def results(self) -> str:
        return self.paths.results

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
