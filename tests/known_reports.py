"""Reports of experiments whose answers are known beforehand: records written on the spot, collected and drawn as ever.

One task of 400 examples; a run predicts right the easiest ones, up to its rate, so that two runs of one rate agree.
"""

from pathlib import Path

import numpy as np
import pandas

import invented
from thaw.core.files import write_json, write_parquet
from thaw.outputs.frame import collection, runs_frame
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.render import table_formats
from thaw.outputs.report import report_page
from thaw.outputs.tables import recommendation, scores
from thaw.schema.corpora import TaskConfig

ROWS, NAMES = 400, np.array(["no", "yes"])
TASK = TaskConfig(corpus="real", target="label", type="classification", metrics=["accuracy"])
COSTS = {"frozen": (0, 2.0), "full": (6, 90.0)}  # layers that train, seconds
LABELS = {
    "tasks": {"asked": "Questions"},
    "encoders": {"tiny": "Tiny"},
    "heads": {"linear": "linear"},
    "subsets": {"all": "all"},
    "strategies": {"frozen": "Linear probe", "full": "Full fine-tuning"},
}


class KnownReport:
    """The report on two strategies. Attributes: folder, of its files; frame, its runs."""

    def __init__(self, folder: Path, rates: dict[str, list[float]]):
        """Args: by strategy the rate of each seed."""
        self.results, self.folder, self.seeds = folder, folder / "outputs/known", list(range(1, len(rates["full"]) + 1))
        self._write_data()
        for strategy, values in rates.items():
            for seed, rate in zip(self.seeds, values, strict=True):
                self._write_run(strategy, seed, rate)
        rows = collection.rows(self._collected(), self.results, self.results / "logs")
        self.folder.mkdir(parents=True, exist_ok=True)
        pandas.DataFrame(rows, columns=runs_frame.COLUMNS).to_csv(self.folder / "runs.csv", index=False)
        self.frame = runs_frame.read_runs(self.folder / "runs.csv")
        data, order = OutputData(self.results, self.frame), {"tasks": ["asked"], "strategies": self._points()}
        common = {"labels": LABELS, "order": order, "notes": {}, "split": "test"}
        main = {"id": "main", "caption": "All scores.", "intervals": True, "costs": ["seconds", "parameters"]}
        advice = {"id": "advice", "caption": "What to take."}
        table_formats.write(scores.build(data, common | main), self.folder / "tables/main")
        table_formats.write(recommendation.build(data, common | advice), self.folder / "tables/advice")
        outputs = [("main", "strategy_table"), ("advice", "advice_table")]
        listed = [{"id": id, "kind": kind, "step": "table", "caption": id, "label": id} for id, kind in outputs]
        spec = invented.report_spec() | {"experiment": "known", "labels": LABELS, "order": order, "notes": {}}
        spec |= {"outputs": listed, "tasks": {"asked": TASK.model_dump(mode="json")}, "preparatory": 3}
        spec["strategies"] = {id: spec["strategies"][id] for id in COSTS}
        self.content = report_page.content(self.frame, spec, self.results, self.folder)
        self.page = report_page.page(self.content, "snakemake --")
        self.article = report_page.paper(self.content)

    def _points(self) -> list:
        return [[strategy, "base"] for strategy in COSTS]

    def _write_data(self) -> None:
        self.gold = np.random.default_rng(0).integers(0, 2, ROWS)
        split = {"rows": ROWS, "duplicates": 0, "carved_from": None}
        splits = {name: dict(split) for name in ("train", "validation", "test")}
        splits["test"]["overlap_train"] = {"rows": 0, "share": 0.0}
        card = {"corpus": "real", "synthetic": False, "targets": {"label": "label"}, "splits": splits}
        card |= {"labels": {"label": list(NAMES)}, "source": {"kind": "files"}, "digest": "d" * 16}
        write_json(self.results / "data/real/card.json", card)
        frame = pandas.DataFrame({"row": np.arange(ROWS), "group": np.arange(ROWS), "label": NAMES[self.gold]})
        for name in splits:
            write_parquet(self.results / f"data/real/{name}.parquet", frame)
        for boundary in (0, 6):
            card = {"boundary": boundary, "seconds": 6.0}
            write_json(self.results / f"features/tiny/real/joint/b{boundary}.json", card)
        tokens = {"examples": ROWS, "tokens": 9 * ROWS, "truncated": 0, "truncated_labels": {}}
        write_json(self.results / "features/tiny/real/joint/tokens.json", {"splits": dict.fromkeys(splits, tokens)})

    def _write_run(self, strategy: str, seed: int, rate: float) -> None:
        layers, seconds = COSTS[strategy]
        folder = self.results / f"runs/asked/all/tiny/linear/{strategy}/base/seed{seed}"
        right = np.arange(ROWS) < round(rate * ROWS)
        predicted = NAMES[np.where(right, self.gold, 1 - self.gold)]
        parts = [
            pandas.DataFrame({"split": split, "row": np.arange(ROWS), "prediction": predicted})
            for split in ("validation", "test")
        ]
        write_parquet(folder / "predictions.parquet", pandas.concat(parts, ignore_index=True))
        task = {"id": "asked", **TASK.model_dump(mode="json", exclude_defaults=True)}
        value = {"accuracy": float(right.mean())}
        phase = {"components": ["head"], "boundary": None if layers else 6}
        record = {"spec": {"task": task, "phases": [phase]}, "digest": f"{seed:016d}", "flags": []}
        record |= {"scores": {split: value for split in ("train", "validation", "test")}}
        record |= {"rows": dict.fromkeys(("train", "validation", "test"), ROWS)}
        invented.write_run(folder, record, invented.cost(seconds + seed / 8, layers))

    def _collected(self) -> dict:
        points = [
            {"strategy": name, "variant": "base", "thawed": layers, "embeddings": layers > 0, "pairs": "joint"}
            for name, (layers, _) in COSTS.items()
        ]
        keys = ("corpus", "type", "metrics", "validation", "test")
        task = {key: getattr(TASK, key) for key in keys} | {"views": {"joint": "joint", "separate": "joint"}}
        none = {"baselines": [], "baseline_runs": [], "ensembles": []}
        return invented.collect_spec(
            tasks={"asked": task}, grid=[{"encoder": "tiny", "strategies": points}], seeds=self.seeds, **none
        )
