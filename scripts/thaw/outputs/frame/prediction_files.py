"""The predictions of runs, read from their folders, as functions of resampled examples."""

from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from thaw.core import layout
from thaw.core.digests import canonical
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.data.corpus import Corpus, joint_groups, scored_part, subset_rows
from thaw.evaluation.result_files import joined, select_rows, whole_task
from thaw.evaluation.target_kinds import target_of
from thaw.evaluation.weighted_metrics import Scorer, scorer
from thaw.statistics.bootstrap import PartDraws, Resampled, RowDraws, resampled

TOGETHER = "train+validation"  # in the place of a split: the rows of both, by fits that did not see the row


class PredictionFiles:
    """Predictions of runs on the test and validation splits of their tasks, and of cross-validated ones on train.

    Corpora and records are read once, and each run is scored once on the resampled examples, however often it is
    compared.
    """

    def __init__(self, results):
        self.results = Path(results)
        self._corpora: dict[str, Corpus] = {}
        self._read: dict[str, tuple[dict, dict]] = {}
        self._draws: dict[tuple, RowDraws] = {}
        self._by_row: dict[tuple, np.ndarray] = {}
        self._scored: dict[tuple, np.ndarray] = {}

    def groups(self, folder: str, split: str, joint: bool = False) -> np.ndarray:
        """Return what a split's examples are drawn by, [N]: those of one document, or that share a sentence.

        Args: folder of a run below results; split; whether they are drawn together with those of train.
        """
        task = self._task(folder)
        corpus = self._corpus(task["corpus"])
        if not joint:
            return corpus.frame(split)["group"].to_numpy()[self._rows(folder, split)]
        parts = self._parts(folder, TOGETHER)
        names = joint_groups(corpus, parts)
        return names if split == TOGETHER else names[len(parts["train"]) :]

    def task_type(self, folder: str) -> str:
        """Return the type of the task of a run. Args: its folder below results."""
        return self._task(folder)["type"]

    def scorer(self, folder: str, metric: str, split: str) -> Scorer:
        """Return the function from weights [D, N] to a run's scores. Args: folder of the run below results."""
        task, gold, predictions = self._task(folder), [], []
        data, target = self._corpus(task["corpus"]), target_of(task)
        labels = data.labels(task["target"])
        path = self.results / folder / (layout.FOLDS if split == TOGETHER else "predictions.parquet")
        if not path.is_file():
            raise UserError(f"{path} is missing; delete {path.parent}/metrics.json, so that the run is made again")
        for part, rows in self._parts(folder, split).items():
            asked = data.frame(part)["row"].to_numpy()[rows]
            with wrap_corruption(path, f"{path.parent}/metrics.json"):
                predictions.append(target.read(_column(path, target.read_from, part, asked), labels))
            gold.append(select_rows(self._targets(task, part), rows))
        return scorer(task, metric, joined(gold), joined(predictions), labels)

    def confidences(self, folder: str, split: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the probabilities of a run [N, C] and the gold [N]; None where its predictions have none.

        Args: folder of the run below results.
        """
        task, path = self._task(folder), self.results / folder / "predictions.parquet"
        if not path.is_file() or "probabilities" not in columns_of(path):
            return None
        rows = self._rows(folder, split)
        asked = self._corpus(task["corpus"]).frame(split)["row"].to_numpy()[rows]
        with wrap_corruption(path, f"{path.parent}/metrics.json"):
            shares = np.stack(_column(path, "probabilities", split, asked).to_numpy())
        return shares.astype(np.float64), np.asarray(select_rows(self._targets(task, split), rows))

    def resampled(self, terms: list[tuple[float, Any]], metric: str, split: str) -> Resampled:
        """Return the mean over seeds of a weighted sum of scores, and its draws.

        Args: terms of (weight, rows of runs.csv), a row for each seed in one order; a term with a single row, as of a
        baseline, counts for every seed. The examples drawn are the same for all tasks of a corpus.
        """
        by_row = [self.by_row(rows, metric, split) for _, rows in terms]
        zero = np.zeros(1)
        scores = sum((times * rows["value"].to_numpy(np.float64) for times, rows in terms), zero)
        drawn = sum((times * part for (times, _), part in zip(terms, by_row, strict=True)), zero)
        return resampled(scores, drawn, self.count(terms[0][1], split), paired=len(terms) > 1)

    def count(self, rows, split: str) -> int:
        """Return how many examples of a split some rows of runs.csv were scored on."""
        return len(self._rows(rows["folder"].iloc[0], split))

    def has_one_class(self, rows) -> bool:
        """Tell whether all examples of a split have one target. Args: rows of runs.csv on it."""
        folder, split = rows["folder"].iloc[0], rows["split"].iloc[0]
        targets = self._targets(self._task(folder), split)
        gold = select_rows(targets, self._rows(folder, split))
        return isinstance(gold, np.ndarray) and len(np.unique(gold, axis=0)) == 1

    def draws(self, rows, metric: str, split: str) -> np.ndarray:
        """Return the draws of the mean over seeds of some rows of runs.csv, [D]."""
        return self.resampled([(1.0, rows)], metric, split).draws

    def by_row(self, rows, metric: str, split: str, joint: bool = False) -> np.ndarray:
        """Return what some rows of runs.csv score on resampled examples, [rows, D].

        Args: joint, of the validation split, whether its examples are drawn as among those of `by_row_folds`.
        """
        folders = list(rows["folder"])
        new = [folder for folder in folders if (folder, metric, split, joint) not in self._by_row]
        alike: dict[bytes, list[str]] = {}  # draws of the training rows may bring validation rows of their own
        for folder in new:
            alike.setdefault(self._place(folder, split, joint), []).append(folder)
        for same in alike.values():
            scores = self._drawn(same[0], split, joint).scores([self.scorer(folder, metric, split) for folder in same])
            self._by_row |= {(folder, metric, split, joint): row for folder, row in zip(same, scores, strict=True)}
        return np.stack([self._by_row[folder, metric, split, joint] for folder in folders])

    def by_row_folds(self, rows, metric: str) -> np.ndarray:
        """Return what cross-validated runs score on resampled rows of train and validation together, [rows, D].

        Each row counts by the prediction of the fit that did not see it. The same group of rows is drawn as often in
        all runs on a corpus, and by `by_row` of the validation split with `joint`.
        """
        return self.by_row(rows, metric, TOGETHER, joint=True)

    def cross_validated(self, folder: str) -> dict | None:
        """Return what metrics.json of a run has of its folds, None where validation chose."""
        return read_json(self.results / folder / "metrics.json").get("folds")

    def _place(self, folder: str, split: str, joint: bool) -> bytes:
        """Return what distinguishes the rows that are drawn from others of the same corpus."""
        parts = self._parts(folder, TOGETHER if joint else split)
        return b"".join(rows.tobytes() for rows in parts.values())

    def _drawn(self, folder: str, split: str, joint: bool) -> RowDraws:
        """Return the draws of the rows that a run was scored on, the same for all tasks of a corpus."""
        corpus, place = self._task(folder)["corpus"], self._place(folder, split, joint)
        key = (corpus, split, joint, place)
        if key not in self._draws:
            of_part = joint or len(self._rows(folder, split)) < len(self._corpus(corpus).frame(split))
            kind = PartDraws if of_part else RowDraws
            seed = crc32(f"{corpus}/{TOGETHER if joint else split}".encode())
            self._draws[key] = kind(self.groups(folder, split, joint), random_seed=seed)
        return self._draws[key]

    def _task(self, folder: str) -> dict:
        return self._task_and_subset(folder)[0]

    def _parts(self, folder: str, split: str) -> dict[str, np.ndarray]:
        """Return by split the rows of a split, or of train and validation together, that a run was scored on."""
        if split != TOGETHER:
            return {split: self._rows(folder, split)}
        task, subset = self._task_and_subset(folder)
        validation = task["validation"]
        train = subset_rows(self._corpus(task["corpus"]), task, subset)
        return {"train": train, validation: self._rows(folder, validation)}

    def _rows(self, folder: str, split: str) -> np.ndarray:
        """Return the rows of a split that a run was scored on."""
        task, subset = self._task_and_subset(folder)
        key = (task["corpus"], task["target"], split, canonical(subset))
        if key not in self._scored:
            self._scored[key] = scored_part(self._corpus(task["corpus"]), split, task, subset)
        return self._scored[key]

    def _targets(self, task: dict, split: str) -> np.ndarray | list:
        return self._corpus(task["corpus"]).targets(task, split)

    def _task_and_subset(self, folder: str) -> tuple[dict, dict]:
        """Return the whole task of a run and its subset, as its spec has it."""
        if folder not in self._read:
            spec = read_json(self.results / folder / "metrics.json")["spec"]
            self._read[folder] = whole_task(spec), spec.get("subset", {})
        return self._read[folder]

    def _corpus(self, name: str) -> Corpus:
        if name not in self._corpora:
            self._corpora[name] = Corpus(self.results / layout.folder("prepare", {"corpus": name}))
        return self._corpora[name]


def columns_of(path: Path) -> list[str]:
    """Return the names of the columns of predictions.parquet; a damaged file is a UserError."""
    from pyarrow.parquet import ParquetFile

    with wrap_corruption(path, f"{path.parent}/metrics.json"):
        return ParquetFile(path).schema_arrow.names


def rows_of_split(path: Path, split: str, columns: list[str] | None = None):
    """Return the rows of a split in predictions.parquet, as a table of pyarrow; a damaged file is a UserError."""
    from pyarrow.compute import equal
    from pyarrow.parquet import ParquetFile

    with wrap_corruption(path, f"{path.parent}/metrics.json"):
        table = ParquetFile(path).read(columns=columns, use_threads=False)
        return table.filter(equal(table["split"], split))


def _column(path: Path, name: str, split: str, asked: np.ndarray):
    """Return a column of predictions.parquet, from pyarrow, for some rows of a split. Args: the numbers of the rows."""
    table = rows_of_split(path, split, ["split", "row", name])
    numbers = table["row"].to_numpy()
    if not np.array_equal(numbers, asked):
        order = np.argsort(numbers, kind="stable")
        places = order[np.searchsorted(numbers, asked, sorter=order).clip(max=len(order) - 1)] if len(order) else order
        if not np.array_equal(numbers[places], asked):
            raise ValueError(f"rows of {split} are missing")
        table = table.take(places)
    return table[name]
