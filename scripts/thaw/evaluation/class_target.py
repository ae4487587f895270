"""How a target of one label a row is evaluated, the base of all kinds (`target_kinds`), and votes of ensemble members.

N rows of a split, C labels.
"""

from collections import Counter

import numpy as np


class ClassTarget:
    """One label a row. `read_from`: the column of predictions.parquet that metrics are computed from."""

    read_from = "prediction"

    def constant(self, gold):
        """Return the prediction of a model without input: here the most frequent class."""
        return int(np.bincount(gold).argmax())

    def repeated(self, constant, gold):
        """Return a constant prediction for every row of gold."""
        return np.full(len(gold), constant)

    def is_constant(self, values) -> bool:
        """Return whether a model predicts one and the same class throughout."""
        return len(set(map(int, values))) == 1

    def named(self, values, labels: list[str]) -> list:
        """Return encoded predictions as the dataset writes them."""
        return [labels[value] for value in values]

    def read(self, column, labels: list[str]):
        """Return encoded predictions. Args: `read_from` of some rows of predictions.parquet, as pyarrow reads it."""
        coded = column.combine_chunks().dictionary_encode()
        return self.array([self.encoded(name, labels) for name in coded.dictionary.to_pylist()])[coded.indices]

    def encoded(self, value, labels: list[str]):
        """Return one prediction, written as the dataset does, as metrics want it."""
        return labels.index(value)

    def array(self, values: list):
        """Return encoded predictions of rows in the form that metrics read."""
        return np.array(values)

    def relabelled(self, values, indices: np.ndarray | None, count: int):
        """Return encoded predictions in other labels.

        Args: predictions; the index of another label for each one, None where there are none; how many others there
        are.
        """
        return indices[values]

    def probabilities(self, predicted) -> np.ndarray | None:
        """Return the probabilities [N, C] of predictions, None where there are none."""
        return predicted.probabilities

    def columns(self, values) -> dict[str, list]:
        """Return further columns of predictions.parquet: what is read again and is not what the dataset writes."""
        return {}

    def threshold(self, task: dict, gold, predicted) -> float | None:
        """Return what validation decides of predictions when all are made, None for nothing."""
        return None

    def decided(self, values, threshold: float):
        """Return predictions by what validation has decided."""
        raise NotImplementedError

    def combined(self, frames: list, by: str, labels: list[str]) -> tuple:
        """Return the encoded predictions of an ensemble and its probabilities.

        Args: each member's rows of predictions.parquet; by, `mean` of probabilities or scores, or `majority`, where of
        equally many the first member's counts; the label names.
        """
        if by == "mean":
            shares = mean_probabilities(frames)
            return shares.argmax(1), shares
        return np.array([self.encoded(most(each), labels) for each in votes(frames)]), None

    def credit(self, gold, predicted) -> float:
        """Return how right a prediction is, both written as the dataset does: 1 or 0."""
        return float(gold == predicted)


def votes(frames: list):
    """Return the predictions of all members, row by row."""
    return zip(*(frame["prediction"].tolist() for frame in frames), strict=True)


def mean_probabilities(frames: list) -> np.ndarray:
    """Return the mean of the members' probabilities [N, C]."""
    return np.mean([np.stack(frame["probabilities"].tolist()) for frame in frames], axis=0)


def most(given: tuple):
    """Return what most members say; Counter keeps the order of the members among equals."""
    return Counter(given).most_common(1)[0][0]
