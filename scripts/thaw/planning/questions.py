"""What the rules of Snakemake ask of a plan: keys, specs, patterns for wildcards, words of shell lines. No torch."""

import json
import shlex
from os.path import relpath
from pathlib import Path

from thaw.core import layout
from thaw.core.boundaries import VECTORS
from thaw.core.digests import canonical, digest
from thaw.core.failed_outputs import failures
from thaw.core.files import write_text
from thaw.planning.plan import Plan
from thaw.planning.row_selections import selections
from thaw.schema.entry import spec_of


class Questions:
    """The questions of Snakemake about a plan and what is there of it."""

    def __init__(self, plan: Plan):
        self.plan = plan

    def names_read(self, *steps: str) -> set[str]:
        """Return the names under which some job of these steps reads files."""
        inputs = [job.inputs for step in steps for job in self.plan.jobs[step].values()]
        return {name for named in inputs for name, files in named.items() if files}

    def key(self, step: str, wildcards) -> str:
        """Return the key of a step's job, from the wildcards of its rule."""
        return layout.key(step, dict(wildcards.items()))

    def canonical(self, step: str, key: str) -> str:
        """Return the spec of a job as the params string of its rule: of the results that are collected the digest.

        That of an output has how often it could not be drawn: a gap in its place is not what the plan wants, so that
        the job runs again.
        """
        spec = self._given(step, key)
        return canonical(spec | {"results": digest(spec["results"])} if step == "collect" else spec)

    def given(self, step: str, key: str) -> str:
        return canonical(self._given(step, key))

    def _given(self, step: str, key: str) -> dict:
        spec = self.plan.status.spec(step, key)
        if step == "collect" and self.plan.experiment.allow_missing:
            spec = spec | {"stale": self.plan.status.stale()}
        drawn = step in ("table", "figure")
        failed = failures(Path(self.plan.files(step, key)[0]).with_suffix("")) if drawn else 0
        return spec | ({"failures": failed} if failed else {})

    @property
    def data_dir(self) -> str:
        """The folder of the users' files, quoted for a shell line; no spec holds it, only the files' sha256."""
        return quoted(self.plan.experiment.data_dir)

    @property
    def copies(self) -> str:
        """The copies of data sets on the Hub, quoted for a shell line; no spec holds them, for their rows are equal."""
        corpora = {name: self.plan.catalogue.get("corpora", name, "corpora") for name in self.plan.jobs["prepare"]}
        copies = {name: [spec_of(copy) for copy in corpus.copies] for name, corpus in corpora.items() if corpus.copies}
        return quoted(canonical(copies))

    @property
    def catalogues(self) -> str:
        """The users' catalogue folders for a shell line: own parts are looked for there; no spec holds them either."""
        return " ".join(map(quoted, self.plan.experiment.catalogues))

    def strategies(self, step: str) -> str:
        """Return, as a pattern for wildcards that follow the head's, the strategies that a step executes."""
        return "|".join(f"(?<=/{head}/){strategy}" for head, strategy in sorted(self.plan.executed[step])) or "none"

    def rows_read(self, store: str) -> str:
        """Return what selects the rows of a store that are read, as JSON; of none, all."""
        return canonical(selections(self.plan, store))

    def freed(self) -> dict[str, list[str]]:
        """Return by folder of a store the results of all that read its states, where they are to be deleted then."""
        readers: dict[str, list[str]] = {}
        if self.plan.experiment.store.free:
            jobs = [(step, key, job) for step, jobs in self.plan.jobs.items() for key, job in jobs.items()]
            for step, key, job in jobs:
                read = [card for name in ("boundaries", "also_boundaries") for card in job.inputs.get(name, [])]
                cards = [Path(card) for card in read if Path(card).stem not in VECTORS]
                for folder in dict.fromkeys(card.parent.as_posix() for card in cards):
                    readers.setdefault(folder, []).extend(self.plan.files(step, key))
        return readers

    def report_files(self) -> list[str]:
        outputs = self.plan.job("report", self.plan.name).spec["outputs"]
        return [file for o in outputs for file in self.plan.files(o["step"], f"{self.plan.name}/{o['id']}")]


LONGEST = 2000  # characters of a spec that stands on a command line
SPECS = ".snakemake/specs"  # folder of the others


def command(home: Path, files: list[Path], overrides: dict) -> str:
    """Return the command that makes files of an experiment again, up to their names, for this folder.

    Args: home, the folder of the Snakefile; the configuration files and the keys given with them, as Snakemake was
    given them.
    """
    if (home / "scripts").is_dir():
        words = ["snakemake"] if relpath(home) == "." else ["snakemake", "--snakefile", relpath(home / "Snakefile")]
        words += ["--configfile", *map(relpath, files)] if files else []
    else:  # installed from a wheel, where nobody knows the Snakefile's place
        words = ["thaw", "run", *map(relpath, files)]
    given = {key: json.dumps(it) if isinstance(it, (dict, list)) else it for key, it in overrides.items()}
    words += ["--config", *(f"{key}={'' if it is None else it}" for key, it in given.items())] if given else []
    return shlex.join([*words, "--"])


def quoted(path: str) -> str:
    """Return a path, or any one word, quoted for a rule's shell line."""
    return shlex.quote(path).replace("{", "{{").replace("}", "}}")


def by_file(word: str) -> str:
    """Return a spec as a step is given it: itself, or @ and the file that it is written to where it is long."""
    if len(word) <= LONGEST:
        return word
    path = Path(SPECS, f"{digest(word)}.json")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, word)
    return f"@{path}"
