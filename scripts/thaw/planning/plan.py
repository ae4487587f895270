"""The plan: experiments -> runs -> specs and file lists. What runs is decided here, before anything is loaded.

    config --load--> experiments + catalogue --Plan--> jobs of each step, by the path of what they make

Snakemake asks the plan by path (`job("train", folder)`), nothing parses a path. Neither torch nor pandas is imported.
"""

import json
import shlex
from os.path import relpath
from pathlib import Path

from thaw.core.digests import digest
from thaw.core.failed_outputs import failures
from thaw.core.files import read_json
from thaw.declarations.probes import draws
from thaw.planning.job import Job
from thaw.planning.jobs import Jobs
from thaw.schema.experiment import ExperimentConfig

CELL = "runs/{task}/{subset}/{encoder}/{head}/{strategy}/{variant}"
KEYS = {
    "prepare": "{corpus}",
    "fetch": "{encoder}",
    "pretrain": "{encoder}.{further}.{corpus}",
    "train": CELL + "/seed{seed}",
    "select": CELL,
    "search_heads": CELL,
    "fit_heads": CELL,
    "baseline": "{task}/{subset}/{baseline}",
    "external": "{task}/{external}",
    "features_adapted": "{task}/{subset}/{encoder}/{head}/{strategy}/{variant}/seed{seed}/{probed}",
    "probe": "{task}/{subset}/{encoder}/{probe}/{of}",
    "ensemble": "{task}/{subset}/{ensemble}",
    "collect": "{experiment}",
    "table": "{experiment}/{id}",
    "figure": "{experiment}/{id}",
    "report": "{experiment}",
}


def command(home: Path, files: list[Path], overrides: dict) -> str:
    """Return the command that makes files of an experiment again, up to their names, for this folder.

    Args: home, as for `load`; the configuration files and the keys given beside them, as Snakemake was given them.
    """
    words = ["snakemake"] if relpath(home) == "." else ["snakemake", "--snakefile", relpath(home / "Snakefile")]
    words += ["--workflow-profile", relpath(home / "workflow/profiles/workstation")]
    words += ["--configfile", *map(relpath, files)] if files else []
    given = {key: json.dumps(it) if isinstance(it, (dict, list)) else it for key, it in overrides.items()}
    words += ["--config", *(f"{key}={'' if it is None else it}" for key, it in given.items())] if given else []
    return shlex.join([*words, "--"])


def quoted(path: str) -> str:
    """Return a path, or any one word, as it stands in a rule's shell line."""
    return shlex.quote(path).replace("{", "{{").replace("}", "}}")


class Plan(Jobs):
    """The jobs, and what Snakemake asks of them."""

    def _add(self, experiment: ExperimentConfig) -> None:
        """Add an experiment's jobs; where results may be missing, `collect` is told which are of other settings."""
        super()._add(experiment)
        if experiment.partial:
            name = experiment.experiment
            others = set(self._wanted(name)) - set(self._there(name))
            stale = sorted(folder for folder in others if Path(self.results, folder, "metrics.json").exists())
            told = {"missing": True, "stale": stale} | ({"budget": experiment.budget} if experiment.budget else {})
            self.jobs["collect"][name] = Job(self.job("collect", name).spec | told, {})

    def key(self, step: str, wildcards) -> str:
        """Return under which key a step's job stands, from the wildcards of its rule."""
        return KEYS[step].format(**dict(wildcards.items()))

    def canonical(self, step: str, wildcards) -> str:
        """Return the spec of a rule's job as its one params string.

        That of an output has how often it could not be drawn: a gap in its place is not what the plan wants, so that
        the job runs again.
        """
        key = self.key(step, wildcards)
        failed = failures(self._prefix(step, key)) if step in ("table", "figure") else 0
        return Job(self.job(step, key).spec | ({"failures": failed} if failed else {}), {}).canonical

    def _prefix(self, step: str, key: str) -> Path:
        """Return the path of an output's files without their endings."""
        return Path(self.files(step, key)[0]).with_suffix("")

    def is_current(self, step: str, key: str) -> bool:
        """Return whether a job's results are there and carry the digest of its spec; for steps up to the runs."""
        return all(self._is_made(step, key, file) for file in self.files(step, key))

    def _is_made(self, step: str, key: str, file: str) -> bool:
        """Return whether one of a job's results is there and carries the digest of its spec."""
        seed = {"seed": int(Path(file).parent.name.removeprefix("seed"))} if step == "fit_heads" else {}
        due = digest(self.job(step, key).spec | seed)
        return Path(file).exists() and read_json(file).get("digest") == due

    @property
    def threads(self) -> int:
        """The threads of a job that computes, as its spec has them."""
        return max(experiment.compute.threads for experiment in self.experiments)

    @property
    def data_dir(self) -> str:
        """The folder of the users' files, quoted for a shell line; no spec holds it, only the files' sha256."""
        return quoted(self.experiments[0].data_dir)

    @property
    def catalogues(self) -> str:
        """The users' catalogue folders for a shell line: own parts are looked for there; no spec holds them either."""
        return " ".join(dict.fromkeys(quoted(folder) for one in self.experiments for folder in one.catalogues))

    def strategies(self, step: str) -> str:
        """Return, as a pattern for wildcards that stand behind the head's, the strategies that a step executes."""
        return "|".join(f"(?<=/{head}/){strategy}" for head, strategy in sorted(self.executed[step])) or "none"

    def collected(self, name: str) -> list[str]:
        """Return the results that an experiment's runs.csv is made from; with `allow_missing` those that are there."""
        folders = self._there(name) if self._experiment(name).partial else list(self._wanted(name))
        costs = [f"{self.results}/{folder}/cost.json" for folder in folders if folder.startswith("runs/")]
        spent = f"{self.results}/outputs/{name}/budget.json"
        told = [spent] if self._experiment(name).budget and Path(spent).exists() else []
        return costs + [f"{self.results}/{folder}/metrics.json" for folder in folders] + told

    def _wanted(self, name: str) -> dict[str, tuple[str, str]]:
        """Return {folder: (step, key of its job)} of all results that an experiment shows."""
        return {run.folder: (run.step, run.key) for run in self.runs[name]} | self.beside[name]

    def _there(self, name: str) -> list[str]:
        """Return the folders of the results that are there, made under the settings that are planned."""
        wanted = self._wanted(name)
        return [folder for folder in wanted if self._is_made(*wanted[folder], f"{self.results}/{folder}/metrics.json")]

    def probed(self, name: str, output: str) -> list[str]:
        """Return the results that a figure of probes is drawn from; with `allow_missing` those that are there.

        For any other table or figure there are none.
        """
        kind = self.job("figure", f"{name}/{output}").spec["kind"]
        keys = [key for key in self.probes[name] if draws(kind, self.job("probe", key).spec["probe"]["kind"])]
        files = {key: self.files("probe", key)[0] for key in keys}
        partial = self._experiment(name).partial
        return [file for key, file in files.items() if not partial or self._is_made("probe", key, file)]

    def freed(self) -> dict[str, list[str]]:
        """Return by folder of a store the results of all that read its states, where they are to be deleted then."""
        found: dict[str, list[str]] = {}
        if any(experiment.store.free for experiment in self.experiments):
            readers = [(step, key, job) for step, jobs in self.jobs.items() for key, job in jobs.items()]
            for step, key, job in readers:
                for folder in dict.fromkeys(Path(card).parent.as_posix() for card in job.inputs.get("boundaries", [])):
                    found.setdefault(folder, []).extend(self.files(step, key))
        return found

    def advice(self) -> list[str]:
        """Return the tables of advice of all experiments, as Markdown."""
        named = [key for key, job in self.jobs["table"].items() if job.spec["kind"] == "advice_table"]
        return [Path(file).with_suffix(".md").as_posix() for key in named for file in self.files("table", key)]

    def _experiment(self, name: str) -> ExperimentConfig:
        """Return an experiment by its name."""
        return next(experiment for experiment in self.experiments if experiment.experiment == name)

    def shown(self, name: str) -> list[str]:
        """Return the tables and figures of an experiment's report."""
        outputs = self.job("report", name).spec["outputs"]
        return [file for o in outputs for file in self.files(o["step"], f"{name}/{o['id']}")]
