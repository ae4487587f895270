"""Runs with predictions on a small test set, written on the spot: what intervals are drawn from."""

from pathlib import Path

import numpy as np
import pandas

from thaw.core.files import write_json, write_parquet
from thaw.outputs.frame.runs_frame import COLUMNS

SEEDS = [1, 2, 3, 4, 5, 6]
ROWS = 200
TASK = {"id": "odd", "corpus": "real", "target": "label", "type": "classification", "metrics": ["accuracy"]}
NAMES = np.array(["no", "yes"])
COSTS = COLUMNS[COLUMNS.index("train_seconds") : COLUMNS.index("inference_layers")]  # 0 where no test says more
UNKNOWN = ["also_validation", "inference_layers", "inference_flops", "search_seconds", "updates", "processor_seconds"]
UNKNOWN += ["extraction_price_seconds", "truncated"]


SPLITS = ("test", "validation")  # of equal rows, on which a run predicts the same


def write(results: Path, rates: dict[tuple[str, str], float], seeds=tuple(SEEDS), head="linear", task="odd"):
    """Write runs that predict right at given rates, by strategy and variant; return their rows of runs.csv, test."""
    rng, rows = np.random.default_rng(0), []
    gold = _write_data(results, np.arange(ROWS))
    for (strategy, variant), rate in rates.items():
        for seed in seeds:
            right = rng.random(ROWS) < rate
            rows.append(_write_run(results, f"{task}/all/tiny/{head}/{strategy}/{variant}", seed, right, gold))
    return pandas.DataFrame(rows)


def write_scores(results: Path, scores: dict[str, list[float]], subset="all", groups=None):
    """Write runs with these accuracies x 100 by strategy, for seeds 1, 2, ...: the first rows are right, of ROWS.

    Return their rows of runs.csv, test. Args: groups, that of each row; default: each row is a group of its own.
    """
    gold = _write_data(results, np.arange(ROWS) if groups is None else groups)
    rows = []
    for strategy, values in scores.items():
        for seed, value in enumerate(values, 1):
            right = np.arange(ROWS) < round(ROWS * value / 100)
            rows.append(_write_run(results, f"odd/{subset}/tiny/linear/{strategy}/base", seed, right, gold))
    return pandas.DataFrame(rows)


def _write_data(results: Path, groups) -> np.ndarray:
    """Write the dataset and return its labels as indices, the same in every call."""
    gold = np.random.default_rng(0).integers(0, 2, ROWS)
    card = {"corpus": "real", "targets": {"label": "label"}, "labels": {"label": list(NAMES)}}
    write_json(results / "data/real/card.json", card | {"splits": {split: {"rows": ROWS} for split in SPLITS}})
    frame = pandas.DataFrame({"row": np.arange(ROWS), "group": groups, "label": NAMES[gold]})
    for split in SPLITS:
        write_parquet(results / f"data/real/{split}.parquet", frame)
    return gold


def _write_run(results: Path, cell: str, seed: int, right: np.ndarray, gold: np.ndarray) -> dict:
    """Write a run that predicts some rows right, and return its row of runs.csv."""
    folder, (task, subset, encoder, head, strategy, variant) = f"runs/{cell}/seed{seed}", cell.split("/")
    predicted = NAMES[np.where(right, gold, 1 - gold)]
    parts = [pandas.DataFrame({"split": one, "row": np.arange(ROWS), "prediction": predicted}) for one in SPLITS]
    write_parquet(results / folder / "predictions.parquet", pandas.concat(parts, ignore_index=True))
    write_json(results / folder / "metrics.json", {"spec": {"task": TASK}})
    row = {"kind": "run", "task": task, "subset": subset, "encoder": encoder, "head": head, "seed": seed}
    row |= {"strategy": strategy, "variant": variant, "split": "test", "metric": "accuracy", "missing": ""}
    row |= {"role": "test", "main": True, "optimizer": "adamw", "synthetic": False, "thawed": 0, "embeddings": False}
    row |= dict.fromkeys(COSTS, 0.0) | dict.fromkeys(UNKNOWN, float("nan"))
    return {**dict.fromkeys(COLUMNS, ""), **row, "folder": folder, "value": right.mean()}
