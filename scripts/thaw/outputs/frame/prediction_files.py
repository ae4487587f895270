"""The predictions of runs, read from their folders, as functions of resampled examples."""

from pathlib import Path
from zlib import crc32

import numpy as np

from thaw.core import layout
from thaw.core.errors import UserError, wrap_corruption
from thaw.core.files import read_json
from thaw.data.corpus import Corpus, scored_part
from thaw.evaluation.metrics import NO_TAG
from thaw.evaluation.result_files import select_rows, task_with_defaults
from thaw.evaluation.weighted_metrics import Scorer, scorer
from thaw.statistics.bootstrap import Draws

BY_GROUP = ("spans", "tagging")  # types whose examples are drawn by document


class PredictionFiles:
    """Predictions of runs on the test and validation splits of their tasks.

    Corpora and records are read once, and the draws of the same runs are drawn once, however often they are compared.
    """

    def __init__(self, results):
        self.results = Path(results)
        self._corpora: dict[str, Corpus] = {}
        self._specs: dict[str, dict] = {}
        self._draws: dict[tuple, np.ndarray] = {}

    def groups(self, folder: str, split: str):
        """Return what a split's examples are drawn by: documents where they are words, else how many there are.

        Args: folder of a run below results.
        """
        task, rows = self._task(folder), self._rows(folder, split)
        frame = self._corpus(task["corpus"]).frame(split)
        return frame["group"].to_numpy()[rows] if task["type"] in BY_GROUP else len(rows)

    def scorer(self, folder: str, metric: str, split: str) -> Scorer:
        """Return the function from weights [D, N] to a run's scores. Args: folder of the run below results."""
        import pandas

        path, task, rows = self.results / folder / "predictions.parquet", self._task(folder), self._rows(folder, split)
        if not path.is_file():
            raise UserError(f"{path} is missing; delete {path.parent}/metrics.json, so that the run is made again")
        with wrap_corruption(path, f"{path.parent}/metrics.json"):
            data, frame = self._corpus(task["corpus"]), pandas.read_parquet(path)
        asked, labels = data.frame(split)["row"].to_numpy()[rows], data.labels(task["target"])
        predictions = frame[frame["split"] == split].set_index("row").loc[asked, "prediction"]
        return scorer(task, metric, select_rows(data.targets(task, split), rows), _encoded(predictions, labels), labels)

    def draws(self, rows, metric: str, split: str) -> np.ndarray:
        """Return the resampled means over seeds of some rows of runs.csv, [D]; the same for all of a task and split."""
        folders = list(rows["folder"])
        asked = (*folders, metric, split)
        if asked not in self._draws:
            key = crc32(f"{rows['task'].iloc[0]}/{split}".encode())
            draws = Draws(len(folders), self.groups(folders[0], split), random_seed=key)
            self._draws[asked] = draws.means([self.scorer(folder, metric, split) for folder in folders])
        return self._draws[asked]

    def _task(self, folder: str) -> dict:
        return task_with_defaults(self._spec(folder)["task"])

    def _rows(self, folder: str, split: str) -> np.ndarray:
        """Return the rows of a split that a run was scored on."""
        spec = self._spec(folder)
        return scored_part(self._corpus(spec["task"]["corpus"]), split, spec.get("subset", {}))

    def _spec(self, folder: str) -> dict:
        if folder not in self._specs:
            self._specs[folder] = read_json(self.results / folder / "metrics.json")["spec"]
        return self._specs[folder]

    def _corpus(self, name: str) -> Corpus:
        if name not in self._corpora:
            self._corpora[name] = Corpus(self.results / layout.folder("prepare", {"corpus": name}))
        return self._corpora[name]


def _encoded(predictions, labels: list[str]):
    """Return predictions as metrics want them: class indices, floats, or lists of tag indices."""
    if not labels:
        return predictions.to_numpy(np.float64)
    index = {label: position for position, label in enumerate(labels)}
    if isinstance(predictions.iloc[0], str):
        return np.array([index[label] for label in predictions])
    return [[index.get(tag, NO_TAG) for tag in tags] for tags in predictions]
