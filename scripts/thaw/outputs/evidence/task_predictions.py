"""What the runs of one task and group predict for its test split, as arrays.

N examples, S seeds, C labels, U units: an example where the target is one label or score, a word where it is tags.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.data.corpus import Corpus
from thaw.declarations.splits import splits_of
from thaw.declarations.task_types import SCORE_TYPES, TARGET_OF_TYPE, WORD_TYPES
from thaw.outputs.frame.prediction_files import rows_of_split

READ = ("label", "score", "tags")  # kinds of targets


@dataclass
class PredictedCell:
    """The predictions of a strategy's seeds.

    name: in print. key: its columns of runs.csv. values [S, U]: indices of labels, -1 where an example was not scored;
    or scores, NaN there.
    """

    name: str
    key: dict
    values: np.ndarray


class TaskPredictions:
    """The examples of a split with their gold, and how predictions of them are read and judged.

    Args: the task as plain values; its dataset; a split.
    """

    def __init__(self, task: dict, corpus: Corpus, split: str):
        self.task, self.corpus, self.split = task, corpus, split
        self.frame = corpus.frame(split)
        if (kind := TARGET_OF_TYPE[task["type"]]) not in READ:
            raise UserError(f"this page has no form for targets of kind {kind}")
        self.labels = [] if self.is_score else corpus.labels(task["target"])

    @property
    def is_score(self) -> bool:
        return self.task["type"] in SCORE_TYPES

    @property
    def is_tagged(self) -> bool:
        return self.task["type"] in WORD_TYPES

    @cached_property
    def texts(self) -> list[str]:
        return self.corpus.texts or [str(self.corpus.words)]

    @cached_property
    def example(self) -> np.ndarray:
        """The example of each unit, [U]."""
        if not self.is_tagged:
            return np.arange(len(self.frame))
        return np.repeat(np.arange(len(self.frame)), [len(tags) for tags in self.frame[self.task["target"]]])

    @cached_property
    def gold(self) -> np.ndarray:
        """The target of each unit: indices of labels or scores, [U]."""
        targets = self.corpus.targets(self.task, self.split)
        if not self.is_tagged:
            return np.asarray(targets)
        return np.concatenate([np.asarray(tags, np.int64) for tags in targets])

    def read(self, folder: Path) -> np.ndarray:
        """Return what a run predicts, [U]. Args: its folder."""
        table = rows_of_split(folder / "predictions.parquet", self.split, ["split", "row", "prediction"])
        places = self._positions.get_indexer(table["row"].to_numpy())
        return self._values(table["prediction"].combine_chunks(), places)

    def credits(self, cell: PredictedCell) -> np.ndarray:
        """Return the mean over seeds of how far each example is right [N]: see `target_kinds`; or NaN."""
        if self.is_score:
            return -np.abs(cell.values - self.gold).mean(0)
        right = np.where(cell.values < 0, np.nan, cell.values == self.gold).mean(0)
        if not self.is_tagged:
            return right
        count = np.bincount(self.example, minlength=len(self.frame))
        return np.bincount(self.example, right, len(self.frame)) / np.maximum(count, 1)

    @cached_property
    def _positions(self):
        import pandas

        return pandas.Index(self.frame["row"])

    @cached_property
    def _index(self):
        import pandas

        return pandas.Index(self.labels)

    def _values(self, column, places: np.ndarray) -> np.ndarray:
        """Return predictions as numbers [U]. Args: as the file has them; the examples that they are of."""
        if self.is_score:
            values = np.full(len(self.frame), np.nan)
            values[places] = column.to_numpy(zero_copy_only=False)
            return values
        values = np.full(len(self.gold), -1)
        if not self.is_tagged:
            values[places] = self._index.get_indexer(column.to_numpy(zero_copy_only=False))
            return values
        flat = self._index.get_indexer(column.flatten().to_numpy(zero_copy_only=False))
        begin = np.searchsorted(self.example, np.arange(len(self.frame)))
        lengths = np.asarray(column.value_lengths())
        values[np.repeat(begin[places] - (lengths.cumsum() - lengths), lengths) + np.arange(len(flat))] = flat
        return values


def read_cell(data: TaskPredictions, results: Path, name: str, key: dict, folders: list[str]) -> PredictedCell | None:
    """Return the predictions of a cell; None where no run of it has any. Args: folders of its runs, below results."""
    there = [results / folder for folder in folders if (results / folder / "predictions.parquet").is_file()]
    return PredictedCell(name, key, np.stack([data.read(folder) for folder in there])) if there else None


def task_of(results: Path, folder: str) -> dict | None:
    """Return the task of a run as its record has it, with the splits of its subset; None without a record."""
    path = results / folder / "metrics.json"
    if not path.is_file():
        return None
    spec = read_json(path)["spec"]
    return splits_of(spec["task"], spec.get("subset", {}))
