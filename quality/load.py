"""A large experiment whose runs are records without training: load for tables, figures and report.

Data are prepared and encoded by the workflow. Each record is planned by Thaw and written by Thaw's own writers, with
predictions that are right at a random rate, so that Snakemake finds it current and goes on with what is drawn from it.
"""

import contextlib
from pathlib import Path

import numpy as np
import pandas
import torch

from thaw.compute_cost.stopwatch import Stopwatch, measure_cost
from thaw.data.corpus import Corpus
from thaw.evaluation.result_files import (
    Predictions,
    evaluate,
    predictions_frame,
    scored_splits,
    select_rows,
    task_with_defaults,
    write_result,
)
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.plan import Plan
from workflow import ADJECTIVES, HOME, NOUNS, Workplace

STRATEGIES = ["linear_probe", {"short_top": [1, 2]}, "short_full", "short_stack"]  # five points
ROWS = {"train": 600, "validation": 200, "test": 400}


class Large(Workplace):
    """So many tasks, five points of strategies, so many seeds; runs are written and not trained."""

    def __init__(self, folder: Path, encoder: Path, tasks: int, seeds: int, outputs: list[str]):
        """Write its data, a text with one yes or no for each task, and its settings."""
        super().__init__(folder, encoder)
        names = [f"task_{number:03d}" for number in range(1, tasks + 1)]
        things = self.files["my/tasks.yaml"]["corpora"]["things"] | {"targets": dict.fromkeys(names, "label")}
        about = {"corpus": "things", "type": "classification", "metrics": ["accuracy", "f1"]}
        entries = {name: about | {"target": name, "label": name.replace("_", " ")} for name in names}
        self.write("my/tasks.yaml", {"corpora": {"things": things}, "tasks": entries})
        selection = {"tasks": names, "strategies": STRATEGIES, "seeds": list(range(1, seeds + 1)), "outputs": outputs}
        self.write("mine.yaml", self.experiment("mine", **selection))
        rng = np.random.default_rng(0)
        for offset, (split, count) in enumerate(ROWS.items()):
            texts = [f"the {ADJECTIVES[i % 12]} {NOUNS[i // 12 % 12]} number {i + 1000 * offset}" for i in range(count)]
            predictions = np.array(["no", "yes"])[rng.integers(0, 2, (count, tasks))]
            frame = pandas.DataFrame(predictions, columns=names).assign(text=texts)
            frame.to_csv(folder / f"data/{split}.csv", index=False)

    def plan(self) -> Plan:
        """Return the plan as Snakemake makes it in this folder."""
        with contextlib.chdir(self.folder):
            return load_plan(read_config(["mine.yaml"]), HOME)

    def finish(self) -> int:
        """Make what the runs would read, write a record for each run and baseline, and return the number of runs."""
        plan = self.plan()
        runs = plan.runs
        inputs = [plan.job(run.step, run.key).inputs for run in runs]
        read = [files for own in inputs for name, files in own.items() if name != "boundaries"]  # in no rule's output
        needed = {file for files in read for file in files}
        self.snakemake("--quiet", "all", "--", *sorted(file for file in needed if not file.startswith("results/runs")))
        plan, corpus = self.plan(), Corpus(self.folder / "results/data/things")
        cost = measure_cost(Stopwatch(), torch.device("cpu"))
        cost |= {"flops": 1e9, "parameters": {"trained": 1000, "total": 9000}, "tokens": 9999, "steps": 57}
        for place, run in enumerate(runs):
            job = plan.job(run.step, run.key).spec
            spec = job | {"seed": run.seed} if run.step == "fit_heads" else job
            self._write(self.folder / "results" / run.folder, spec, corpus, cost, place)
        for folder, (step, key) in plan.extra_results.items():
            self._write(self.folder / "results" / folder, plan.job(step, key).spec, corpus, None, 0)
        return len(runs)

    def _write(self, folder: Path, spec: dict, corpus: Corpus, cost: dict | None, seed: int) -> None:
        """Write the records of a run, or without a cost those of a baseline."""
        task, rng = task_with_defaults(spec["task"], spec["subset"]), np.random.default_rng(seed)
        predictions = {}
        for split in ("train", *scored_splits(task)):
            rows = np.arange(min(ROWS[split], 500))
            gold = select_rows(corpus.targets(task, split), rows)
            predictions[split] = Predictions(
                rows, np.where(rng.random(len(rows)) < rng.uniform(0.6, 0.9), gold, 1 - gold)
            )
        steps = np.arange(1, 31)
        notes = {"phase": 1, "epoch": (steps + 9) // 10, "step": steps, "loss": rng.random(30), "rate": 1e-3 / steps}
        history = pandas.DataFrame(notes).assign(validation_accuracy=None) if cost else None
        outcome = evaluate(task, corpus, predictions) | ({"chosen": {"epochs": [3]}} if cost else {})
        write_result(folder, spec, outcome, cost, predictions_frame(task, corpus, predictions), history)
