"""Ensembles: the combined predictions of several runs on one task.

N rows of a split, M members, C classes.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from thaw.core.errors import UserError, wrap_corruption
from thaw.data.corpus import Corpus
from thaw.declarations.task_types import SCORE_TYPES, WORD_TYPES
from thaw.evaluation.result_files import Predictions


def combined(
    files: list[Path], by: str, task: dict, corpus: Corpus, rows: dict[str, np.ndarray]
) -> dict[str, Predictions]:
    """Return the predictions of an ensemble for validation and test.

    Args: each member's predictions.parquet; by, "mean" (of probabilities, or of scores) or "majority" (of labels, or of
    each word's tags; of equally many the first member's that is among them). A whole task; its corpus; by split the
    rows that are scored.
    """
    import pandas

    frames = []
    for file in files:
        with wrap_corruption(file, f"{file.parent}/metrics.json"):
            frames.append(pandas.read_parquet(file))
    labels, predictions = corpus.labels(task["target"]), {}
    for split, asked in rows.items():
        expected = corpus.frame(split)["row"].to_numpy()[asked]
        parts = [frame[frame["split"] == split] for frame in frames]
        for file, part in zip(files, parts, strict=True):
            if not np.array_equal(part["row"].to_numpy(), expected):
                raise UserError(
                    f"{file} does not hold the {len(expected)} rows of {split}; delete its run and run again"
                )
        votes = [part["prediction"].tolist() for part in parts]
        predictions[split] = _predictions(asked, votes, parts, by, task, labels)
    return predictions


def _predictions(
    rows: np.ndarray, votes: list[list], parts: list, by: str, task: dict, labels: list[str]
) -> Predictions:
    """Return the predictions for N rows of a split; votes are those of each member."""
    index = {label: i for i, label in enumerate(labels)}
    if task["type"] in SCORE_TYPES:
        return Predictions(rows, np.mean(votes, axis=0))
    if by == "mean":
        shares = np.mean([np.stack(part["probabilities"].tolist()) for part in parts], axis=0)
        return Predictions(rows, shares.argmax(1), shares)
    if task["type"] in WORD_TYPES:
        sentences = zip(*votes, strict=True)
        return Predictions(rows, [[index[_most(tags)] for tags in zip(*each, strict=True)] for each in sentences])
    return Predictions(rows, np.array([index[_most(each)] for each in zip(*votes, strict=True)]))


def _most(votes: tuple):
    """Return what most members say; Counter keeps the order of the members among equals."""
    return Counter(votes).most_common(1)[0][0]
