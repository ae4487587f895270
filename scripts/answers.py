#!/usr/bin/env python3
"""Keep every row's answer of an experiment in one file, from which its decisions are made again without its results.

    python scripts/answers.py grid path/to/folder    from its results/outputs/grid/runs.csv, with runs and prepared data

docs/results/<experiment>/answers.parquet has a line for each run or baseline and scored split:
  task, metric, subset, encoder, head, strategy, variant, seed, split, role, value
  one_fit     all seeds of the strategy share one convex fit
  flags       of runs.csv
  train       seconds of training, with the runs that it started from and the trials of its search
  extraction  seconds of the encoder's passes over the rows that training and validation read
  first, second  by row what the metric is made of: for a ratio of counts both counts, right of one for accuracy of
              labels; for MCC the predicted and the gold class; for Pearson's r both scores in thousandths
  group       by row which rows are drawn together
No text of a dataset is in it.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.errors import UserError
from thaw.core.files import write_parquet
from thaw.core.runtime import run_step
from thaw.declarations.splits import RESERVED
from thaw.evaluation.metrics import METRICS
from thaw.evaluation.weighted_metrics import Scorer, scorer
from thaw.outputs.frame.prediction_files import PredictionFiles

RECORDS = Path(__file__).resolve().parents[1] / "docs/results"
KEYS = ["task", "metric", "subset", "encoder", "head", "strategy", "variant", "seed", "split", "role", "value", "flags"]


def answers(runs: pd.DataFrame, results) -> pd.DataFrame:
    """Return the lines of answers.parquet. Args: an experiment's runs.csv; the folder of results with runs and data."""
    scored = runs[(runs["main"].astype(str) == "True") & runs["role"].isin(["validation", "test", RESERVED])]
    scored, files = scored[scored["missing"] == ""], PredictionFiles(results)
    lines = scored[KEYS].assign(
        one_fit=scored["optimizer"] == "lbfgs",
        train=sum(pd.to_numeric(scored[f"{part}_seconds"]) for part in ("train", "after", "search")),
        extraction=_extraction(scored),
    )
    made = [_numbers(files, *row) for row in scored[["folder", "metric", "split"]].itertuples(index=False)]
    return lines.assign(first=[one[0] for one in made], second=[one[1] for one in made], group=[one[2] for one in made])


def _extraction(scored: pd.DataFrame) -> pd.Series:
    """Return by line the share of a run's passes that is of its train rows, validation among them."""
    read = scored.groupby("folder")["n"].transform(lambda n: pd.to_numeric(n).sum())
    validated = pd.to_numeric(scored["n"]).where(scored["role"] == "validation", 0)
    others = read - validated.groupby(scored["folder"]).transform("sum")
    mine = pd.to_numeric(scored["train_rows"])
    return pd.to_numeric(scored["extraction_whole_seconds"]) * mine / (mine + others)


def _numbers(files: PredictionFiles, folder: str, metric: str, split: str) -> tuple:
    counts = files.scorer(folder, metric, split).counts
    if metric == "mcc":
        gold, predicted, _ = np.split(counts, 3)
        first, second = predicted.argmax(0), gold.argmax(0)
    elif metric == "pearson":
        first, second = (np.rint(1000 * counts[[2, 1]])).astype(int)
    elif counts is not None and len(counts) == 2:
        first, second = counts.astype(int)
    else:
        raise UserError(f"{folder}: {metric} is not made of two numbers a row; leave its task out")
    return first.astype(np.int16), second.astype(np.int16), files.groups(folder, split).astype(np.int32)
