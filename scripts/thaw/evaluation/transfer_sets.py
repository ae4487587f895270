"""Transfer sets: what a run predicts on the test splits of other tasks, scored by its own task's metrics.

Labels are matched by name, after `rename`; several of ours may map to one of theirs (three-way inference on two).
"""

from dataclasses import dataclass

import numpy as np

from thaw.core.errors import UserError
from thaw.data.corpus import Corpus
from thaw.evaluation.metrics import score
from thaw.evaluation.result_files import Predictions, predictions_frame, select_rows, task_with_defaults
from thaw.evaluation.target_kinds import target_of


@dataclass
class TransferSet:
    """Another task's corpus; `label_indices` are their label indices by ours, none for scores."""

    task: dict
    corpus: Corpus
    label_indices: np.ndarray

    @classmethod
    def of(cls, entry: dict, corpus: Corpus, ours: list[str]) -> "TransferSet":
        """Match labels: entry of a spec's `also`, the other corpus, our labels in order (none for scores).

        Raises UserError for a label of ours that leads to none of theirs.
        """
        task = task_with_defaults(entry["task"], {})
        if not ours:
            return cls(task, corpus, np.empty(0, dtype=int))
        theirs = corpus.labels(task["target"])
        names = [entry["rename"].get(label, label) for label in ours]
        for label, name in zip(ours, names, strict=True):
            if name not in theirs:
                known = ", ".join(theirs)
                raise UserError(
                    f"transfer_sets: {task['id']} has no label '{name}' ({known}); say rename: {{{label}: ...}}"
                )
        return cls(task, corpus, np.array([theirs.index(name) for name in names]))

    def rows(self, more: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
        """Return all rows of each test split, and of more splits."""
        return {split: np.arange(self.corpus.size(split)) for split in (*self.task["test"], *more)}

    def words(self, split: str) -> list[int] | None:
        """Return how many words each row has, None where the task is not on words."""
        if self.corpus.words is None:
            return None
        return [len(tags) for tags in self.corpus.targets(self.task, split)]

    def read(self, predictions: Predictions) -> Predictions:
        """Return predictions in our label indices in theirs; the probabilities of classes are left out."""
        count = len(self.corpus.labels(self.task["target"]))
        values = target_of(self.task).relabelled(predictions.values, self.label_indices, count)
        return Predictions(predictions.rows, values)

    def assess(self, task: dict, predictions: dict[str, Predictions]) -> dict:
        """Return {"scores", "rows"} by `<task>/<split>` of predictions in our indices, by the metrics of our task."""
        labels = self.corpus.labels(self.task["target"]) if len(self.label_indices) else []
        scores, rows = {}, {}
        for split, predicted in predictions.items():
            gold = select_rows(self.corpus.targets(self.task, split), predicted.rows)
            name = f"{self.task['id']}/{split}"
            scores[name], rows[name] = score(task, gold, self.read(predicted).values, labels), len(predicted.rows)
        return {"scores": scores, "rows": rows}

    def predictions(self, predictions: dict[str, Predictions]):
        """Return the predictions as `predictions_frame` does, their splits named `<task>/<split>`."""
        frame = predictions_frame(self.task, self.corpus, {split: self.read(a) for split, a in predictions.items()})
        return frame.assign(split=f"{self.task['id']}/" + frame["split"])


def with_transfer_scores(outcome: dict, task: dict, transfer: list[tuple[TransferSet, dict[str, Predictions]]]) -> dict:
    """Return an outcome with the scores and rows on transfer sets added to its own."""
    for other, predictions in transfer:
        result = other.assess(task, predictions)
        outcome = outcome | {key: outcome[key] | result[key] for key in ("scores", "rows")}
        if any(None in scores.values() for scores in result["scores"].values()):
            outcome["flags"] = list(dict.fromkeys(["undefined", *outcome["flags"]]))
    return outcome


def all_predictions(
    task: dict, corpus: Corpus, predictions: dict, transfer: list[tuple[TransferSet, dict[str, Predictions]]]
):
    """Return the predictions for a run's own splits and its transfer sets as one table, as `predictions_frame` does."""
    import pandas as pd

    frames = [
        predictions_frame(task, corpus, predictions),
        *(other.predictions(their_predictions) for other, their_predictions in transfer),
    ]
    return pd.concat(frames, ignore_index=True)
