"""The answers of runs, read back from their folders, as functions of resampled examples."""

from pathlib import Path
from zlib import crc32

import numpy as np

from thaw.analysis.intervals import Draws
from thaw.analysis.metrics import NO_TAG
from thaw.analysis.results import whole_task
from thaw.analysis.weighted import Scorer, scorer
from thaw.data.corpus import Corpus
from thaw.outputs.runs import folder
from thaw.records import UserError, intact, read_json

BY_GROUP = ("spans", "tagging")  # types whose examples are drawn by document


class Answers:
    """Answers of runs to the test and validation splits of their tasks; corpora are read once."""

    def __init__(self, results):
        self.results = Path(results)
        self._corpora: dict[str, Corpus] = {}

    def groups(self, folder: str, split: str):
        """Return what a split's examples are drawn by: documents where they are words, else how many there are.

        Args: folder of a run below results.
        """
        task = self._task(folder)
        frame = self._corpus(task["corpus"]).frame(split)
        return frame["group"].to_numpy() if task["type"] in BY_GROUP else len(frame)

    def scorer(self, folder: str, metric: str, split: str) -> Scorer:
        """Return the function from weights [D, N] to a run's scores. Args: folder of the run below results."""
        import pandas

        path, task = self.results / folder / "predictions.parquet", self._task(folder)
        if not path.is_file():
            raise UserError(f"{path} is missing; delete {path.parent}/metrics.json, so that the run is made again")
        with intact(path, f"{path.parent}/metrics.json"):
            data, frame = self._corpus(task["corpus"]), pandas.read_parquet(path)
        found = frame[frame["split"] == split].set_index("row").loc[data.frame(split)["row"], "prediction"]
        labels = data.labels(task["target"])
        return scorer(task, metric, data.targets(task, split), _encoded(found, labels), labels)

    def draws(self, rows, metric: str, split: str) -> np.ndarray:
        """Return the resampled means over seeds of some rows of runs.csv, [D]; the same for all of a task and split."""
        folders = [folder(row) for row in rows.to_dict("records")]
        key = crc32(f"{rows['task'].iloc[0]}/{split}".encode())
        draws = Draws(len(folders), self.groups(folders[0], split), random_seed=key)
        return draws.means([self.scorer(place, metric, split) for place in folders])

    def _task(self, folder: str) -> dict:
        return whole_task(read_json(self.results / folder / "metrics.json")["spec"]["task"])

    def _corpus(self, name: str) -> Corpus:
        if name not in self._corpora:
            self._corpora[name] = Corpus(self.results / "data" / name)
        return self._corpora[name]


def _encoded(predictions, labels: list[str]):
    """Return predictions as metrics want them: class indices, floats, or lists of tag indices."""
    if not labels:
        return predictions.to_numpy(np.float64)
    index = {label: place for place, label in enumerate(labels)}
    if isinstance(predictions.iloc[0], str):
        return np.array([index[label] for label in predictions])
    return [[index.get(tag, NO_TAG) for tag in tags] for tags in predictions]
