"""The plan: experiments -> runs -> specs and file lists. What runs is decided here, before anything is loaded.

    config --load_plan--> experiments + catalogue --ExperimentJobs--> JobTable: jobs of each step, by key
    Plan: the table, and the records of what is in the results folder; Snakemake asks it by key

Neither torch nor pandas is imported.
"""

from functools import cached_property
from pathlib import Path

from thaw.core import layout
from thaw.core.boundaries import VECTORS
from thaw.core.digests import canonical
from thaw.core.failed_outputs import failures
from thaw.declarations.output_kind import Requirement, Use
from thaw.declarations.outputs import OUTPUTS, kinds_for
from thaw.declarations.probes import draws
from thaw.planning.experiment_jobs import ExperimentJobs
from thaw.planning.jobs import Job, JobTable, Result
from thaw.planning.records import Records
from thaw.planning.row_selections import selections
from thaw.planning.run_jobs import result_of
from thaw.planning.run_plan import RunPlan
from thaw.planning.shell_words import quoted
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig

NO_PARTS = ("card", "tokens", "cost")  # files among the cards of parts
MERGE_RECORDS = {"merge": Requirement.MERGES, "latency": Requirement.LATENCY}  # by step, what an output reads of it


class Plan:
    """The jobs of one experiment or several, and what Snakemake asks of them.

    Attributes: experiments; catalogue; left_out, sentences on what scaling down did; table, all jobs; records, what is
    there of them; and by experiment its runs: shown, selected (with what these need) and baseline_runs, (baseline,
    run), and the last two together; the keys of its probes, the results of its merges, and its extra_results,
    {folder: (step, key)}: other baselines, external predictions, ensembles.
    """

    def __init__(
        self, experiments: list[ExperimentConfig], catalogue: Catalogue, results: str = "results", left_out=()
    ):
        self.experiments = experiments
        self.catalogue = catalogue
        seeds = {seed for experiment in experiments for seed in experiment.seeds}
        self.table, parts, self.left_out = self._jobs(JobTable(results, seeds), left_out)
        if self.table.changes:
            # Experiments differ on a run that they share: specs are made again, with the changes that they recorded.
            self.table, parts, self.left_out = self._jobs(JobTable(results, seeds, self.table.changes), left_out)
        self.records = Records(self.table)
        self.runs = {name: part.runs for name, part in parts.items()}
        self.selected = {name: part.selected for name, part in parts.items()}
        self.shown = {name: part.shown for name, part in parts.items()}
        self.baseline_runs = {name: part.baseline_runs for name, part in parts.items()}
        self.extra_results = {name: part.extra_results for name, part in parts.items()}
        self.probes = {name: part.probes for name, part in parts.items()}
        self.merges = {name: part.merges for name, part in parts.items()}

    def _jobs(self, table: JobTable, left_out) -> tuple[JobTable, dict[str, ExperimentJobs], list[str]]:
        """Return a table with the jobs of all experiments, these by name, and all sentences on what was left out."""
        notes = list(left_out)
        parts = {one.experiment: ExperimentJobs(table, one, self.catalogue, notes) for one in self.experiments}
        return table, parts, notes

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

    def names_read(self, *steps: str) -> set[str]:
        """Return the names under which some job of these steps reads files."""
        inputs = [job.inputs for step in steps for job in self.jobs[step].values()]
        return {name for named in inputs for name, files in named.items() if files}

    def cards(self, store: str) -> list[str]:
        """Return the cards that a store declares."""
        return self.table.cards(store)

    def seeds(self) -> list[int]:
        """Return every seed that some experiment asks for, and those of heads that trials of a search start from."""
        return sorted(self.table.seeds)

    def key(self, step: str, wildcards) -> str:
        """Return the key of a step's job, from the wildcards of its rule."""
        return layout.key(step, dict(wildcards.items()))

    def canonical(self, step: str, key: str) -> str:
        """Return the spec of a job as the params string of its rule.

        That of an output has how often it could not be drawn: a gap in its place is not what the plan wants, so that
        the job runs again.
        """
        spec = self.records.spec(step, key)
        if step == "collect" and self.experiment(key).partial:
            spec = spec | {"stale": self._stale(key)}
        failed = failures(self._prefix(step, key)) if step in ("table", "figure") else 0
        return canonical(spec | ({"failures": failed} if failed else {}))

    def _prefix(self, step: str, key: str) -> Path:
        return Path(self.files(step, key)[0]).with_suffix("")

    def is_current(self, step: str, key: str) -> bool:
        """Return whether a job's results are there and carry the digest of its spec; for steps up to the runs."""
        return self.records.is_current(step, key)

    def is_there(self, run: RunPlan) -> bool:
        """Return whether a run's result is there, as the plan wants it."""
        return self.records.is_made(result_of(run))

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

    @property
    def to_download(self) -> list[tuple[str, str, str]]:
        """The (step, key, id on the Hub) of each of these that has no current result yet."""
        every = [(step, key, id) for step, ids in self.downloads.items() for key, id in ids.items()]
        return [(step, key, id) for step, key, id in every if not self.is_current(step, key)]

    @property
    def data_dir(self) -> str:
        """The folder of the users' files, quoted for a shell line; no spec holds it, only the files' sha256."""
        return quoted(self.experiments[0].data_dir)

    @property
    def catalogues(self) -> str:
        """The users' catalogue folders for a shell line: own parts are looked for there; no spec holds them either."""
        return " ".join(dict.fromkeys(quoted(folder) for one in self.experiments for folder in one.catalogues))

    def strategies(self, step: str) -> str:
        """Return, as a pattern for wildcards that follow the head's, the strategies that a step executes."""
        return "|".join(f"(?<=/{head}/){strategy}" for head, strategy in sorted(self.executed[step])) or "none"

    def collected(self, name: str) -> list[str]:
        """Return the results that an experiment's runs.csv is made from; with `allow_missing` those that are there."""
        experiment, paths = self.experiment(name), self.table.paths
        wanted = self._wanted(name)
        folders = [folder for folder in wanted if not experiment.partial or self.records.is_made(wanted[folder])]
        trained = {run.folder for run in self.runs[name]}
        costs = [paths.result(folder, "cost.json") for folder in folders if folder in trained]
        budget = paths.budget(name)
        given_up = [budget] if experiment.budget and Path(budget).exists() else []
        return costs + [paths.result(folder) for folder in folders] + given_up

    @cached_property
    def deleted(self) -> list[str]:
        """The files of results that a report shows and that are gone: who deletes one wants it again.

        Snakemake makes a missing file only where something that reads it is to be made. Where results may be missing,
        those that are stay so.
        """
        gone = []
        for name in self.jobs["report"]:
            if not self.experiment(name).partial and Path(self.files("report", name)[0]).exists():
                made_of = [*self.collected(name), *self.recorded(name)]
                gone += [file for file in made_of if not Path(file).exists()]
        return gone

    def _wanted(self, name: str) -> dict[str, Result]:
        """Return by folder all results that an experiment shows."""
        wanted = {run.folder: result_of(run) for run in self.runs[name]}
        return wanted | {folder: Result(step, key) for folder, (step, key) in self.extra_results[name].items()}

    def collect_what_is_there(self, name: str) -> dict:
        """Return the spec with which the results of an experiment that are there are collected."""
        return self.records.spec("collect", name) | {"missing": True, "stale": self._stale(name)}

    def _stale(self, name: str) -> list[str]:
        """Return which of an experiment's results that are there were made under other settings."""
        there = {
            folder: result
            for folder, result in self._wanted(name).items()
            if Path(self.table.paths.result(folder)).exists()
        }
        return sorted(folder for folder, result in there.items() if not self.records.is_made(result))

    def probed(self, name: str, step: str, output: str) -> list[str]:
        """Return the results of probes that a table or figure is drawn from; with `allow_missing` those that are there.

        For an output that shows no probes there are none.
        """
        kind = self.job(step, f"{name}/{output}").spec["kind"]
        keys = [key for key in self.probes[name] if draws(kind, self.job("probe", key).spec["probe"]["kind"])]
        return self._present(name, [Result("probe", key) for key in keys])

    def recorded(self, name: str) -> list[str]:
        """Return the results of an experiment's probes and merges; with `allow_missing` those that are there."""
        return self._present(name, [Result("probe", key) for key in self.probes[name]]) + self.merged(name)

    def merged(self, name: str) -> list[str]:
        """Return the records of an experiment's merges; with `allow_missing` those that are there."""
        return self._present(name, self.merges[name])

    def drawn_merges(self, name: str, step: str, output: str) -> list[str]:
        """Return the records of merges that a table or figure is drawn from; with `allow_missing` those that are there.

        For an output that shows no merges there are none.
        """
        needs = OUTPUTS[self.job(step, f"{name}/{output}").spec["kind"]].needs
        steps = [of for of, need in MERGE_RECORDS.items() if need in needs]
        return self._present(name, [result for result in self.merges[name] if result.step in steps])

    def _present(self, name: str, results: list[Result]) -> list[str]:
        """Return the first file of each of some results; with `allow_missing` of those that are there."""
        partial = self.experiment(name).partial
        there = [one for one in results if not partial or self.is_current(one.step, one.key)]
        return [self.files(one.step, one.key)[0] for one in there]

    def rows_read(self, store: str) -> str:
        """Return what selects the rows of a store that are read, as JSON; of none, all."""
        return canonical(selections(self.table, store))

    def parts(self, step: str, key: str) -> list[str]:
        """Return the parts of a store, or of a teacher's states, that jobs read, and what else is there of its spec."""
        first, *planned = map(Path, self.files(step, key))
        there = [file for file in first.parent.glob("[!.]*.json") if file.stem not in NO_PARTS]
        current = [file for file in there if self.records.carries(str(file), Result(step, key))]
        return sorted({file.stem for file in [*planned, *current]})

    def freed(self) -> dict[str, list[str]]:
        """Return by folder of a store the results of all that read its states, where they are to be deleted then."""
        readers: dict[str, list[str]] = {}
        if any(experiment.store.free for experiment in self.experiments):
            jobs = [(step, key, job) for step, jobs in self.jobs.items() for key, job in jobs.items()]
            for step, key, job in jobs:
                read = [card for name in ("boundaries", "also_boundaries") for card in job.inputs.get(name, [])]
                cards = [Path(card) for card in read if Path(card).stem not in VECTORS]
                for folder in dict.fromkeys(card.parent.as_posix() for card in cards):
                    readers.setdefault(folder, []).extend(self.files(step, key))
        return readers

    def advice(self) -> list[str]:
        """Return the tables of advice of all experiments, as Markdown."""
        kinds = kinds_for(Use.ADVICE)
        named = [key for key, job in self.jobs["table"].items() if job.spec["kind"] in kinds]
        return [Path(file).with_suffix(".md").as_posix() for key in named for file in self.files("table", key)]

    def experiment(self, name: str) -> ExperimentConfig:
        """Return an experiment by its name."""
        return next(experiment for experiment in self.experiments if experiment.experiment == name)

    def report_files(self, name: str) -> list[str]:
        """Return the tables and figures of an experiment's report."""
        outputs = self.job("report", name).spec["outputs"]
        return [file for o in outputs for file in self.files(o["step"], f"{name}/{o['id']}")]
