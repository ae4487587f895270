"""What is there of a plan's results, and which of them outputs are drawn from. No torch."""

from functools import cached_property
from pathlib import Path

from thaw.declarations.output_kind import Requirement
from thaw.declarations.outputs import OUTPUTS
from thaw.declarations.probes import draws
from thaw.planning.jobs import Result
from thaw.planning.records import Records
from thaw.planning.run_plan import RunPlan

NO_PARTS = ("card", "tokens", "cost")  # files among the cards of parts
MERGE_RECORDS = {"merge": Requirement.MERGES, "latency": Requirement.LATENCY}  # by step, what an output reads of it


class Status:
    """A plan compared with the results folder. Attributes: plan, a `Plan`; records, what is there of its jobs."""

    def __init__(self, plan):
        self.plan = plan
        self.records = Records(plan.table)

    def is_current(self, step: str, key: str) -> bool:
        """Return whether a job's results are there and carry the digest of its spec; for steps up to the runs."""
        return self.records.is_current(step, key)

    def is_there(self, run: RunPlan) -> bool:
        """Return whether a run's result is there, as the plan wants it."""
        return self.records.is_made(run.result)

    @property
    def to_download(self) -> list[tuple[str, str, str]]:
        """The (step, key, id on the Hub) of each of these that has no current result yet."""
        every = [(step, key, id) for step, ids in self.plan.downloads.items() for key, id in ids.items()]
        return [(step, key, id) for step, key, id in every if not self.is_current(step, key)]

    def collected(self) -> list[str]:
        """Return the results that runs.csv is made from; with `allow_missing` those that are there."""
        paths, wanted = self.plan.table.paths, self.wanted()
        partial = self.plan.experiment.allow_missing
        folders = [folder for folder in wanted if not partial or self.records.is_made(wanted[folder])]
        trained = {run.folder for run in self.plan.runs}
        costs = [paths.result(folder, "cost.json") for folder in folders if folder in trained]
        return costs + [paths.result(folder) for folder in folders]

    @cached_property
    def deleted(self) -> list[str]:
        """The files of results that a report shows and that are gone: who deletes one wants it again.

        Snakemake makes a missing file only where something that reads it is to be made. Where results may be missing,
        those that are stay so.
        """
        shown = Path(self.plan.files("report", self.plan.name)[0]).exists()
        if self.plan.experiment.allow_missing or not shown:
            return []
        return [file for file in [*self.collected(), *self.recorded()] if not Path(file).exists()]

    def wanted(self) -> dict[str, Result]:
        """Return by folder all results that the experiment shows."""
        wanted = {run.folder: run.result for run in self.plan.runs}
        return wanted | {folder: Result(step, key) for folder, (step, key) in self.plan.extra_results.items()}

    def collect_what_is_there(self) -> dict:
        """Return the spec with which the results that are there are collected."""
        return self.records.spec("collect", self.plan.name) | {"missing": True, "stale": self.stale()}

    def stale(self) -> list[str]:
        """Return which results that are there were made under other settings."""
        there = {
            folder: result
            for folder, result in self.wanted().items()
            if Path(self.plan.table.paths.result(folder)).exists()
        }
        return sorted(folder for folder, result in there.items() if not self.records.is_made(result))

    def probed(self, step: str, output: str) -> list[str]:
        """Return the results of probes that a table or figure is drawn from; with `allow_missing` those that are there.

        For an output that shows no probes there are none.
        """
        kind = self.plan.job(step, f"{self.plan.name}/{output}").spec["kind"]
        keys = [key for key in self.plan.probes if draws(kind, self.plan.job("probe", key).spec["probe"]["kind"])]
        return self._present([Result("probe", key) for key in keys])

    def recorded(self) -> list[str]:
        """Return the results of probes and merges; with `allow_missing` those that are there."""
        return self._present([Result("probe", key) for key in self.plan.probes]) + self.merged()

    def merged(self) -> list[str]:
        """Return the records of merges; with `allow_missing` those that are there."""
        return self._present(self.plan.merges)

    def drawn_merges(self, step: str, output: str) -> list[str]:
        """Return the records of merges that a table or figure is drawn from; with `allow_missing` those that are there.

        For an output that shows no merges there are none.
        """
        needs = OUTPUTS[self.plan.job(step, f"{self.plan.name}/{output}").spec["kind"]].needs
        steps = [of for of, need in MERGE_RECORDS.items() if need in needs]
        return self._present([result for result in self.plan.merges if result.step in steps])

    def _present(self, results: list[Result]) -> list[str]:
        """Return the first file of each of some results; with `allow_missing` of those that are there."""
        partial = self.plan.experiment.allow_missing
        there = [one for one in results if not partial or self.is_current(one.step, one.key)]
        return [self.plan.files(one.step, one.key)[0] for one in there]

    def parts(self, step: str, key: str) -> list[str]:
        """Return the parts of a store, or of a teacher's states, that jobs read, and what else is there of its spec."""
        first, *planned = map(Path, self.plan.files(step, key))
        there = [file for file in first.parent.glob("[!.]*.json") if file.stem not in NO_PARTS]
        current = [file for file in there if self.records.carries(str(file), Result(step, key))]
        return sorted({file.stem for file in [*planned, *current]})
