"""Runs with predictions on a small test set, written on the spot: what intervals are drawn from."""

from pathlib import Path

import numpy as np
import pandas

from thaw.core.files import write_json, write_parquet
from thaw.outputs.frame.runs_frame import COLUMNS, LATER

SEEDS = [1, 2, 3, 4, 5, 6]
ROWS = 200
TASK = {"id": "odd", "corpus": "real", "target": "label", "type": "classification", "metrics": ["accuracy"]}


def write(results: Path, rates: dict[tuple[str, str], float], seeds=tuple(SEEDS), head="linear"):
    """Write runs that predict right at given rates, by strategy and variant; return their rows of runs.csv, test."""
    rng = np.random.default_rng(0)
    gold, names = rng.integers(0, 2, ROWS), np.array(["no", "yes"])
    card = {"corpus": "real", "targets": {"label": "label"}, "labels": {"label": ["no", "yes"]}}
    write_json(results / "data/real/card.json", card | {"splits": {"test": {"rows": ROWS}}})
    frame = pandas.DataFrame({"row": np.arange(ROWS), "group": np.arange(ROWS), "label": names[gold]})
    write_parquet(results / "data/real/test.parquet", frame)
    rows = []
    for (strategy, variant), rate in rates.items():
        for seed in seeds:
            folder = f"runs/odd/all/tiny/{head}/{strategy}/{variant}/seed{seed}"
            predicted = np.where(rng.random(ROWS) < rate, gold, 1 - gold)
            found = pandas.DataFrame({"split": "test", "row": np.arange(ROWS), "prediction": names[predicted]})
            write_parquet(results / folder / "predictions.parquet", found)
            write_json(results / folder / "metrics.json", {"spec": {"task": TASK}})
            row = {"kind": "run", "task": "odd", "subset": "all", "encoder": "tiny", "head": head, "seed": seed}
            row |= {
                "strategy": strategy,
                "variant": variant,
                "split": "test",
                "metric": "accuracy",
                "missing": "",
                "folder": folder,
            }
            row |= dict.fromkeys(LATER, float("nan"))
            rows.append({**dict.fromkeys(COLUMNS, ""), **row, "value": (predicted == gold).mean()})
    return pandas.DataFrame(rows)
