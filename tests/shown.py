"""A results folder around a `Bench`: runs are trained into it, and what a user is shown of them is read back."""

from pathlib import Path

import pandas

from invented import results_of
from thaw.outputs.frame import collection, runs_frame
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.outputs.tables import scores
from tiny_corpus import METRICS, Bench


class Shown:
    """The results of runs on one bench, one strategy a row of their table."""

    def __init__(self, bench: Bench, folder: Path):
        self.bench, self.folder, self.trained = bench, folder, {}
        bench.linked(folder, "joint")

    def train(self, strategy: str, *phases: dict, seeds=(1,), **changes) -> None:
        """Train a strategy with some seeds, as the rule does."""
        self.trained[strategy] = phases[-1].get("optimizer") == "lbfgs"
        for seed in seeds:
            out = self.folder / f"runs/t/all/e/linear/{strategy}/base/seed{seed}"
            self.bench.step("train", self.bench.spec(*phases, seed=seed, **changes), out)

    def frame(self, *strategies: str, seeds=(1,)):
        """Return the runs of some strategies as they are collected."""
        point = {"variant": "base", "thawed": 0, "embeddings": False, "pairs": "joint"}
        entry = {"corpus": "mine", "views": {"joint": "joint"}, "type": self.bench.kind, "validation": "validation"}
        spec = {
            "tasks": {"t": entry | {"metrics": [METRICS[self.bench.kind]], "test": ["test"]}},
            "grid": [{"encoder": "e", "strategies": [point | {"strategy": name} for name in strategies]}],
            "subsets": ["all"],
            "heads": ["linear"],
            "seeds": list(seeds),
            "baselines": [],
        }
        rows = collection.rows(spec | {"results": results_of(spec)}, self.folder, self.folder / "logs")
        pandas.DataFrame(rows, columns=runs_frame.COLUMNS).to_csv(self.folder / "runs.csv", index=False)
        return runs_frame.read_runs(self.folder / "runs.csv")

    def flags(self, strategy: str, seeds=(1,)) -> list[str]:
        """Return the flags of a strategy's runs, each once."""
        return sorted({flag for text in self.frame(strategy, seeds=seeds)["flags"] for flag in text.split(";") if flag})

    def table(self, *strategies: str, seeds=(1,)) -> str:
        """Return the table of some strategies in Markdown, with its notes."""
        frame = self.frame(*strategies, seeds=seeds)
        order = {"tasks": ["t"], "strategies": [[name, "base"] for name in strategies]}
        spec = {
            "id": "main",
            "kind": "strategy_table",
            "caption": "All.",
            "split": "test",
            "labels": {},
            "order": order,
            "notes": {},
        }
        return table_formats.to_markdown(scores.build(OutputData(self.folder, frame), spec))
