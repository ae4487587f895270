"""Our side: an experiment of its own in an empty folder, run by Snakemake as a user runs it, and what it left."""

import base64
import json
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import yaml

from thaw.core.files import read_json
from thaw.outputs.frame.runs_frame import read_runs

from . import work
from .measuring import timed
from .options import HOME, Options
from .rivals import SETTINGS
from .texts import Texts

THAW = str(Path(sys.executable).parent / "thaw")
PASS = re.compile(r"encoder pass: (\S+ \S+ \S+ \S+): ")


class Place:
    """A folder with data, a catalogue and a selection, in which Snakemake runs Thaw."""

    def __init__(self, folder: Path, options: Options, tasks: list[Texts], strategies: dict[str, dict], **selection):
        """Write data, catalogue and selection; `selection` replaces keys of the experiment.

        Its `subsets` are entries by name, which the catalogue gets too.
        """
        self.folder, self.options, self.tasks, self.strategies = folder, options, tasks, strategies
        self.timed = timed  # or what `at_a_terminal` yields
        shutil.rmtree(folder, ignore_errors=True)
        entries: dict[str, dict] = {}
        for task in tasks:
            task.write(self.data(task))
            for kind, found in task.entries().items():
                entries.setdefault(kind, {}).update(found)
        if subsets := selection.pop("subsets", None):
            entries["subsets"], selection["subsets"] = subsets, list(subsets)
        self.selection = {
            "experiment": "bench",
            "title": "Benchmark",
            "tasks": [task.name for task in tasks],
            "encoders": ["minilm"],
            "heads": [work.TABLE_HEAD],
            "strategies": list(strategies),
            "seeds": options.seed_list,
            "baselines": [],
            "outputs": ["main_table"],
            "catalogues": ["catalogue"],
            "data_dir": "data",
            "sources": ["files"],
            "store": work.PRECISION,
            "compute": {"threads": options.threads},
        } | selection
        self.write("catalogue/tasks.yaml", entries)
        self.write("catalogue/strategies.yaml", {"strategies": strategies})
        self.write("bench.yaml", self.selection)

    def write(self, name: str, content: dict) -> None:
        """Write a YAML file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def data(self, task: Texts) -> Path:
        """Return where a task's files lie."""
        return self.folder / "data" / task.name

    def run(self, *arguments: str) -> dict:
        """Run the experiment from an empty results folder; return what it took and what it left."""
        for name in ("results", "logs", ".snakemake"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        record = self.thaw(*arguments)
        jobs = self._jobs(record["started"])
        scores = self._scores()
        return record | {"jobs": jobs, "scores": scores, "engine": self._engine(jobs), "passes": self._passes()}

    def thaw(self, *arguments: str) -> dict:
        """Run `thaw run` on the experiment as it stands; return what it took."""
        command = [THAW, "run", "bench.yaml", "--cores", str(self.options.cores), *arguments]
        return self.timed(command, self.folder / "thaw.log", self.folder)

    def inside(self, name: str, **job) -> dict:
        """Run a measurement of benchmarks/inside on what lies here, in a process of its own.

        Returns what it took and, under `found`, what it wrote.
        """
        request, answer = self.folder / f"{name}.job.json", self.folder / f"{name}.json"
        request.write_text(json.dumps(job))
        command = [sys.executable, "-m", f"benchmarks.inside.{name}", str(request), str(answer)]
        environment = SETTINGS | {"PYTHONPATH": str(HOME / "scripts")}
        record = timed(command, self.folder / f"{name}.log", HOME, environment)
        return record | {"found": read_json(answer)}

    def read_by_runs(self, text: Texts) -> dict[str, str]:
        """Return what a measurement of runs is told: the folders of data, encoder and features that they read."""
        results = self.folder / "results"
        places = {"data": f"data/{text.name}", "encoder": "encoders/minilm"}
        places["features"] = f"features/minilm/{text.name}/bench"
        return {role: str(results / place) for role, place in places.items()}

    def training(self, text: Texts, strategy: str, seed: int) -> dict:
        """Return a run that was trained, with its metrics.json and what it needs of the run that it started from."""
        cell = self.folder / f"results/runs/{text.name}/all/minilm/{work.TABLE_HEAD}"
        start = self.strategies[strategy].get("after")
        metrics, needed = (str(cell / f"{name}/base/seed{seed}/metrics.json") for name in (strategy, start))
        return {"strategy": strategy, "seed": seed, "metrics": metrics, "need": [["start", needed]] if start else []}

    def _jobs(self, started: float) -> list[dict]:
        """Return Snakemake's jobs with their files, and when each began and ended, in seconds since the start.

        Snakemake keeps a note for each file that a job made; a job's own name is that of its log.
        """
        found: dict[tuple, dict] = {}
        notes = self.folder / ".snakemake/metadata"
        for path in sorted(path for path in notes.rglob("*") if path.is_file()):
            note, file = json.loads(path.read_text()), _decoded(path.relative_to(notes))
            begin, end = note["starttime"] - started, note["endtime"] - started
            job = found.setdefault(tuple(note["log"]), {"rule": note["rule"], "files": [], "span": (begin, end)})
            job["files"].append(file)
            job["span"] = min(begin, job["span"][0]), max(end, job["span"][1])
        return sorted(found.values(), key=lambda job: job["span"])

    def _scores(self) -> list[dict]:
        """Return the scores of all runs, by the columns that tell them apart; none without the table."""
        table = self.folder / "results/outputs/bench/runs.csv"
        if not table.exists():
            return []
        columns = [
            "task",
            "subset",
            "head",
            "strategy",
            "variant",
            "seed",
            "role",
            "value",
            "train_seconds",
            "peak_memory_mb",
        ]
        frame = read_runs(table)
        return frame[frame["main"] & (frame["kind"] == "run")][columns].to_dict("records")

    def _engine(self, jobs: list[dict]) -> float:
        """Return the seconds inside the engine, by its own clocks, each spread over what computes at the same time.

        Those are the passes of the encoder and the whole of each job that trains, without the start of its process.
        """
        total = 0.0
        for cards in self._stores().values():
            total += max(card["seconds"] for card in cards) * share(cards[0]["device"], self.options)
        return total + sum(self._of_runs(job) for job in jobs)

    def _of_runs(self, job: dict) -> float:
        """Return the seconds of a job's runs: of those that train in turn each, of heads that are one fit once."""
        spread = [self._spread(cost) for cost in self._costs(job)]
        return sum(spread) if job["rule"].startswith("train") else max(spread, default=0.0)

    def _costs(self, job: dict) -> list[dict]:
        """Return what the runs of a job say they cost."""
        return [read_json(self.folder / file) for file in job["files"] if file.endswith("/cost.json")]

    def _spread(self, cost: dict) -> float:
        """Return the seconds of the job that wrote a cost, spread over what computes at the same time."""
        return whole(cost) * share(cost["hardware"]["device"], self.options)

    def _stores(self) -> dict[Path, list[dict]]:
        """Return the cards of all boundaries by the folder of their store."""
        found: dict[Path, list[dict]] = {}
        for path in (self.folder / "results/features").glob("*/*/*/b*.json"):
            found.setdefault(path.parent, []).append(read_json(path))
        return found

    def _passes(self) -> dict[str, int]:
        """Return how often each encoder read each corpus, view and split, from the logs."""
        logs = (path.read_text() for path in (self.folder / "logs").rglob("*.log"))
        return dict(Counter(found for text in logs for found in PASS.findall(text)))

    def rows(self, record: dict) -> dict[str, float]:
        """Return the seconds of each task and strategy, `task/strategy`: of its jobs, spread over the cores or GPUs.

        A job that does several is shared between them. On a GPU the seconds are those of its own clock: from outside
        a job also takes the time in which it waits for its turn.

        What no strategy has to itself (start, data, encoder, passes, outputs) is `shared`: the rest of the whole.
        """
        found: dict[str, float] = {}
        for job in record["jobs"]:
            runs = [file.split("/") for file in job["files"] if file.startswith("results/runs/")]
            places = sorted({f"{parts[2]}/{parts[6]}" for parts in runs})
            costs = self._costs(job)
            if any(cost["hardware"]["device"] != "cpu" for cost in costs):
                seconds = self._of_runs(job)
            else:
                seconds = (job["span"][1] - job["span"][0]) * share("cpu", self.options)
            for place in places:
                found[place] = found.get(place, 0.0) + seconds / len(places)
        return found | {"shared": record["wall"] - sum(found.values())}


def share(device: str, options: Options) -> float:
    """Return by what a job's seconds count in those of all: threads by cores, or one by the GPUs, which take turns."""
    return options.threads / options.cores if device == "cpu" else 1 / options.gpus


def whole(cost: dict) -> float:
    """Return the seconds of the job that wrote a cost.json, which holds one run's share of them."""
    return cost["seconds"]["total"] * cost.get("runs_in_job", 1)


def _decoded(path: Path) -> str:
    """Return the file that a record of Snakemake's is about: its name is the file's, in base 64, cut into folders."""
    text = "".join(part.removeprefix("@") for part in path.parts)
    return base64.urlsafe_b64decode(text).decode()
