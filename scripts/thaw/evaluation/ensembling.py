"""Ensembles: the combined predictions of several runs on one task.

N rows of a split, M members, C classes.
"""

from pathlib import Path

import numpy as np

from thaw.core.errors import UserError, wrap_corruption
from thaw.data.corpus import Corpus
from thaw.evaluation.result_files import Predictions
from thaw.evaluation.target_kinds import target_of


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
        expected = corpus.column(split, "row").to_numpy()[asked]
        parts = [frame[frame["split"] == split] for frame in frames]
        for file, part in zip(files, parts, strict=True):
            if not np.array_equal(part["row"].to_numpy(), expected):
                raise UserError(
                    f"{file} does not hold the {len(expected)} rows of {split}; delete its run and run again"
                )
        predictions[split] = Predictions(asked, *target_of(task).combined(parts, by, labels))
    return predictions
