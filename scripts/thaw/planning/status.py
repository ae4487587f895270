"""What is there of a plan's results, under which spec, and which of them outputs are drawn from. No torch.

The plan is a function of its configuration; here, and only here, it is compared with what earlier runs left. What a
finished run kept beyond what is asked for (the encoder's tensors) is no part of its identity: such
a run serves. It is known by the spec that it carries, and so is what was made from it.
"""

from functools import cached_property
from pathlib import Path

from thaw.core.digests import digest
from thaw.core.files import read_json
from thaw.declarations.probes import draws
from thaw.planning.jobs import PlannedDigest, Result
from thaw.planning.run_plan import RunPlan

NO_PARTS = ("card", "tokens", "cost")  # files among the cards of parts


class Status:
    """A `Plan` compared with the results folder, where each record is read once as long as its file stays as it is."""

    def __init__(self, plan):
        self.plan = plan
        self._read: dict[str, tuple[int, dict]] = {}

    def spec(self, step: str, key: str) -> dict:
        """Return the spec under which a job runs, or has run: the planned one, but for what follows from the records.

        It names what the job is made from by the digests on record; and what a finished run kept, it keeps.
        """
        job = self.plan.job(step, key)
        moved = any(self.digest(planned.result) != planned for planned in job.named)
        spec = self._on_record(job.spec) if moved else job.spec
        return spec | {"keep": True} if step == "train" and self._also_kept(key, spec) else spec

    def _on_record(self, value):
        """Return a spec with the digests of results as they are on record."""
        if isinstance(value, PlannedDigest):
            return self.digest(value.result)
        if isinstance(value, dict):
            return {name: self._on_record(item) for name, item in value.items()}
        return [self._on_record(item) for item in value] if isinstance(value, list | tuple) else value

    def digest(self, result: Result) -> str:
        """Return the digest that a result carries, or will carry once it is made."""
        spec = self.spec(result.step, result.key)
        if spec is self.plan.job(result.step, result.key).spec:
            return self.plan.digest(result)
        return digest(spec if result.seed is None else spec | {"seed": result.seed})

    def is_current(self, step: str, key: str) -> bool:
        """Return whether a job's results are there and carry the digest of its spec; for steps up to the runs."""
        if step == "fit_heads":
            return all(self.is_made(Result(step, key, seed)) for seed in self.plan.seeds)
        return self._carry(self.plan.files(step, key), Result(step, key))

    def is_made(self, result: Result) -> bool:
        """Return whether a result is there and carries the digest of its spec."""
        return self._carry([self.plan.file(*result)], result)

    def _carry(self, files: list[str], result: Result) -> bool:
        digests = [self._record(file).get("digest") for file in files]
        return None not in digests and set(digests) == {self.digest(result)}

    def _also_kept(self, key: str, spec: dict) -> bool:
        """Return whether the finished run of a spec kept its tensors, which that does not ask for."""
        made = self._record(self.plan.file("train", key)).get("spec", {})
        more = bool(made.get("keep")) and not spec.get("keep")
        return more and digest(made | {"keep": False}) == digest(spec | {"keep": False})

    def _record(self, file: str) -> dict:
        try:
            time = Path(file).stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if self._read.get(file, (None,))[0] != time:
            record = read_json(file)
            self._read[file] = (time, {name: record[name] for name in ("digest", "spec") if name in record})
        return self._read[file][1]

    def is_there(self, run: RunPlan) -> bool:
        """Return whether a run's result is there, as the plan wants it."""
        return self.is_made(run.result)

    @property
    def to_download(self) -> list[tuple[str, str, str]]:
        """The (step, key, id on the Hub) of each of these that has no current result yet."""
        every = [(step, key, id) for step, ids in self.plan.downloads.items() for key, id in ids.items()]
        return [(step, key, id) for step, key, id in every if not self.is_current(step, key)]

    def collected(self) -> list[str]:
        """Return the results that runs.csv is made from; with `allow_missing` those that are there."""
        plan, wanted = self.plan, self.wanted()
        partial = self.plan.experiment.allow_missing
        folders = [folder for folder in wanted if not partial or self.is_made(wanted[folder])]
        trained = {run.folder for run in self.plan.runs}
        costs = [plan.result(folder, "cost.json") for folder in folders if folder in trained]
        return costs + [plan.result(folder) for folder in folders]

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

    def stale(self) -> list[str]:
        """Return which results that are there were made under other settings."""
        there = {folder: result for folder, result in self.wanted().items() if Path(self.plan.result(folder)).exists()}
        return sorted(folder for folder, result in there.items() if not self.is_made(result))

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
        spec = self.plan.job(step, f"{self.plan.name}/{output}").spec
        return self.merged() if "merged" in spec else []

    def _present(self, results: list[Result]) -> list[str]:
        """Return the first file of each of some results; with `allow_missing` of those that are there."""
        partial = self.plan.experiment.allow_missing
        there = [one for one in results if not partial or self.is_current(one.step, one.key)]
        return [self.plan.files(one.step, one.key)[0] for one in there]

    def parts(self, step: str, key: str) -> list[str]:
        """Return the parts of a store, or of a teacher's states, that jobs read, and what else is there of its spec."""
        first, *planned = map(Path, self.plan.files(step, key))
        there = [file for file in first.parent.glob("[!.]*.json") if file.stem not in NO_PARTS]
        current = [file for file in there if self._carry([str(file)], Result(step, key))]
        return sorted({file.stem for file in [*planned, *current]})
