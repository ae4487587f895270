"""A small experiment of one's own in a folder of one's own, and Snakemake run on it: for the workflow tests."""

import contextlib
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

import forked
from thaw.core.fork_server import ADDRESS

HOME = Path(__file__).parents[1]
SERVE = """
import os, sys
from thaw.core import fork_server

fork_server.start(sys.argv[1], 1)
print(os.environ[fork_server.ADDRESS], flush=True)
sys.stdin.read()
"""
ADJECTIVES = "red blue green small large old young quiet loud warm cold plain".split()
NOUNS = "stone river cloud table garden letter window bottle ladder basket mirror candle".split()


@functools.cache
def activated() -> dict[str, str]:
    """Return the environment of a user who has activated the one in which these tests run; the same for every test.

    It has nothing that libraries add to it meanwhile: a server refuses the job of another environment.
    """
    ours = ("PYTEST_CURRENT_TEST", "HF_DEACTIVATE_ASYNC_LOAD")
    own = {name: value for name, value in os.environ.items() if name not in ours}
    of_run = {"OMP_WAIT_POLICY": "PASSIVE", "THP_MEM_ALLOC_ENABLE": "1"}  # which `thaw run` sets where they are not
    return own | of_run | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@contextlib.contextmanager
def fork_servers(environment: dict[str, str] | None = None) -> Iterator[str]:
    """Yield the address of servers for jobs of one thread, which all runs share: Snakemake starts none of its own.

    As `thaw run` starts them before Snakemake; what they import takes longer than all else of a small run. Args: the
    environment of the jobs, that of a user by default.
    """
    code = str(HOME / "scripts")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = (environment or activated()) | {"PYTHONPATH": code}
    with subprocess.Popen([sys.executable, "-c", SERVE, code], env=environment, **pipes) as starter:
        yield starter.stdout.readline().strip()


class Workplace:
    """A folder with a user's data, catalogue and experiments, in which Snakemake runs Thaw.

    Two tiny tasks of one corpus share a random encoder of three layers, so that every rule runs in seconds.
    """

    def __init__(self, folder: Path, encoder: Path):
        self.folder, self.servers = folder, None
        self.files = {
            "my/tasks.yaml": {
                "corpora": {
                    "things": {
                        "texts": ["text"],
                        "targets": {"colour": "label", "weight": "score"},
                        "files": {
                            "format": "csv",
                            "quoting": "double",
                            "splits": {name: f"{name}.csv" for name in ("train", "validation", "test")},
                        },
                        "size": {"examples": 88, "tokens": 700},
                    }
                },
                "tasks": {
                    "colour": {
                        "corpus": "things",
                        "target": "colour",
                        "type": "classification",
                        "metrics": ["accuracy", "f1"],
                    },
                    "weight": {
                        "corpus": "things",
                        "target": "weight",
                        "type": "regression",
                        "metrics": ["pearson"],
                    },
                },
            },
            "my/encoders.yaml": {
                "encoders": {
                    "tiny": {
                        "folder": str(encoder),
                        "layers": 3,
                        "width": 32,
                        "cased": False,
                        "objective": "none: random weights",
                        "pretraining": ["none"],
                    }
                }
            },
            "my/strategies.yaml": {
                "strategies": {
                    "short_top": {
                        "label": "Top",
                        "sweep": {"k": "layers"},
                        "phases": [{"train": ["head", {"top": "k"}], "rate": "1e-3", "epochs": 1}],
                    },
                    "short_full": {"phases": [{"train": ["all"], "rate": "1e-3", "epochs": 1}]},
                    "short_stack": {
                        "after": "linear_probe",
                        "phases": [{"train": ["all"], "rate": "1e-3", "epochs": 1}],
                    },
                }
            },
            "mine.yaml": self.experiment("mine"),
        }
        for name, content in self.files.items():
            self.write(name, content)
        for number, split in enumerate(("train", "validation", "test")):
            self.write_rows(f"data/{split}.csv", number, 48 if split == "train" else 20)

    @staticmethod
    def experiment(name: str, **changes) -> dict:
        """Return an experiment over the two tasks; `changes` replace its keys."""
        selection = {
            "experiment": name,
            "title": "A small one",
            "tasks": ["colour", "weight"],
            "encoders": ["tiny"],
            "strategies": ["linear_probe", {"short_top": [1]}, "short_stack"],
            "seeds": [1],
            "baselines": ["majority"],
            "outputs": ["main_table", "layers"],
            "catalogues": ["my"],
            "compute": {"threads": 1},
        }
        return selection | changes

    def write(self, name: str, content) -> None:
        """Write a YAML file of this folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))

    def write_rows(self, name: str, offset: int, count: int) -> None:
        """Write a CSV of short texts whose first word decides the label."""
        lines = ["text,colour,weight"]
        for i in range(count):
            adjective, noun = ADJECTIVES[i % 12], NOUNS[(i * 5 + i // 12 + offset * 3) % 12]
            label = "bright" if i % 12 < 6 else "dull"
            lines.append(f"the {adjective} {noun} number {i + 100 * offset},{label},{i % 12 / 4}")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")

    def records(self) -> dict[str, bytes]:
        """Return every metrics.json of the results, by its path in them."""
        folder = self.folder / "results"
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("metrics.json")}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a user who has activated this one, with the address of `servers` if there are any."""
        return activated() | ({ADDRESS: self.servers} if self.servers else {})

    @staticmethod
    def words(config: str, profile: str = "default") -> list[str]:
        """Return the arguments of Snakemake for an experiment under a shipped profile."""
        words = ["--snakefile", str(HOME / "Snakefile"), "--directory", ".", "--cores", "2"]
        return [*words, "--workflow-profile", str(HOME / "workflow/profiles" / profile), "--configfile", config]

    def start(self, *arguments: str, config: str = "mine.yaml", profile: str = "default") -> subprocess.Popen:
        """Start Snakemake with a shipped profile on an experiment; all that it prints comes on its stdout.

        It and its jobs are a process group of their own, so that a test may kill them all.
        """
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *self.words(config, profile), *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            start_new_session=True,
        )

    def snakemake(self, *arguments: str, config: str = "mine.yaml", check: bool = True) -> str:
        """Run Snakemake on this machine and return all that it printed."""
        with self.start(*arguments, config=config) as running:
            printed, _ = running.communicate(timeout=600)
        assert not check or running.returncode == 0, printed[-9000:]
        return printed

    def checked(self, *arguments: str, config: str = "mine.yaml", status: int = 0) -> str:
        """Run Snakemake in a fork of a process that has imported it; return all that it printed."""
        done = forked.run(["snakemake", *self.words(config), *arguments], self.folder, self.environment)
        assert done.returncode == status, (done.stdout + done.stderr)[-9000:]
        return done.stdout + done.stderr

    def planned(self, config: str = "mine.yaml", *options: str) -> dict[str, int]:
        """Return how many jobs of each rule a dry run plans, without `all`; {} when there is nothing to do."""
        printed = self.checked("--dry-run", "--quiet", "reason", *options, config=config)
        table = printed.partition("Job stats:")[2].partition("total")[0]
        jobs = {name: int(n) for name, n in re.findall(r"^(\w+)\s+(\d+)\s*$", table, re.MULTILINE)}
        return {name: count for name, count in jobs.items() if name != "all"}
