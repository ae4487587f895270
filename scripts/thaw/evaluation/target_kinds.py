"""What evaluation does differently by kind of target: constants, names, encodings, labels, means.

N rows of a split, M members of an ensemble, C labels. Predictions are encoded as metrics want them: class indices [N],
floats [N], per sentence a list of tag indices, of sets of labels probabilities [N, C], or a list of N answers.
"""

from itertools import chain

import numpy as np

from thaw.declarations.task_types import NO_TAG, TARGET_OF_TYPE
from thaw.evaluation.answers import Answer, shifted, threshold
from thaw.evaluation.metrics import marked


class ClassTarget:
    """One label a row. `read_from`: the column of predictions.parquet that metrics are computed from."""

    read_from = "prediction"

    def constant(self, gold):
        """Return the prediction of a model without input: here the most frequent class."""
        return int(np.bincount(gold).argmax())

    def repeated(self, constant, gold):
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
        return np.array([labels.index(name) for name in coded.dictionary.to_pylist()])[coded.indices]

    def array(self, values: list):
        """Return encoded predictions of rows in the form that metrics read."""
        return np.array(values)

    def relabelled(self, values, indices: np.ndarray, count: int):
        """Return encoded predictions in other labels.

        Args: predictions; the index of another label for each one; how many others there
        are.
        """
        return indices[values]

    def probabilities(self, predicted) -> np.ndarray | None:
        """Return the probabilities [N, C] of predictions, None where there are none."""
        return predicted.probabilities

    def columns(self, values) -> dict[str, list]:
        """Return further columns of predictions.parquet: what is read again and is not what the dataset writes."""
        return {}

    def unread(self, values) -> int:
        return 0

    def threshold(self, task: dict, gold, predicted) -> float | None:
        """Return what validation decides of predictions when all are made, None for nothing."""
        return None

    def decided(self, values, threshold: float):
        """Return predictions by what validation has decided."""
        raise NotImplementedError

    def averaged(self, frames: list) -> tuple:
        """Return what an ensemble predicts, encoded, and its probabilities. Args: each member's predictions.parquet."""
        shares = mean_probabilities(frames)
        return shares.argmax(1), shares


def mean_probabilities(frames: list) -> np.ndarray:
    """Return the mean of the members' probabilities [N, C]."""
    return np.mean([np.stack(frame["probabilities"].tolist()) for frame in frames], axis=0)


class ScoreTarget(ClassTarget):
    """A number a row."""

    def constant(self, gold):
        return float(np.mean(gold))

    def is_constant(self, values) -> bool:
        return False

    def named(self, values, labels: list[str]) -> list:
        return [float(value) for value in values]

    def read(self, column, labels: list[str]):
        return column.to_numpy().astype(np.float64)

    def relabelled(self, values, indices: np.ndarray, count: int):
        return values

    def averaged(self, frames: list) -> tuple:
        return np.mean([frame["prediction"].tolist() for frame in frames], axis=0), None


class TagsTarget(ClassTarget):
    """One tag for each word of a sentence; NO_TAG where the model saw no such word."""

    def constant(self, gold):
        return super().constant(list(chain.from_iterable(gold)))

    def repeated(self, constant, gold):
        return [[constant] * len(tags) for tags in gold]

    def is_constant(self, values) -> bool:
        return len({int(tag) for tags in values for tag in tags}) == 1

    def named(self, values, labels: list[str]) -> list:
        """Return lists of tags; None for a word that the model never saw, so that it stays wrong when read again."""
        return [[None if tag == NO_TAG else labels[tag] for tag in tags] for tags in values]

    def unread(self, values) -> int:
        return sum(tag == NO_TAG for tags in values for tag in tags)

    def read(self, column, labels: list[str]):
        """Return lists of tag indices, each name looked up once; a word that the model never saw is null."""
        sentences = column.combine_chunks()
        coded = sentences.flatten().dictionary_encode(null_encoding="encode")
        index = {label: position for position, label in enumerate(labels)}
        tags = [index.get(tag, NO_TAG) for tag in coded.dictionary.to_pylist()]
        indices = np.array(tags, dtype=np.int64)[coded.indices].tolist()
        ends = np.cumsum(sentences.value_lengths()).tolist()
        return [indices[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def array(self, values: list):
        return values

    def relabelled(self, values, indices: np.ndarray, count: int):
        """Return other tags; NO_TAG stays."""
        return [[tag if tag == NO_TAG else int(indices[tag]) for tag in tags] for tags in values]


class LabelSetTarget(ClassTarget):
    """Any number of labels a row."""

    read_from = "probabilities"

    def constant(self, gold):
        return np.mean(gold, axis=0)

    def repeated(self, constant, gold):
        return np.tile(constant, (len(gold), 1))

    def is_constant(self, values) -> bool:
        return len(np.unique(marked(values), axis=1).T) == 1

    def named(self, values, labels: list[str]) -> list:
        return [[label for label, has in zip(labels, row, strict=True) if has] for row in marked(values).T]

    def read(self, column, labels: list[str]):
        return column.combine_chunks().flatten().to_numpy().reshape(len(column), len(labels))

    def array(self, values: list):
        return np.array(values, dtype=np.float32)

    def relabelled(self, values, indices: np.ndarray, count: int):
        """Return probabilities of other labels; one in place of several has the largest of theirs."""
        shares = np.zeros((len(values), count), np.float32)
        np.maximum.at(shares.T, indices, values.T)
        return shares

    def probabilities(self, predicted) -> np.ndarray | None:
        return predicted.values

    def averaged(self, frames: list) -> tuple:
        return mean_probabilities(frames), None


class AnswersTarget(ClassTarget):
    """A part of a context, or no answer; validation decides from where on there is none."""

    read_from = "extracted"

    def constant(self, gold):
        """Return no answer, which is the most frequent one: each other text is the answer to few questions."""
        return Answer("", np.inf)

    def repeated(self, constant, gold):
        return [constant] * len(gold)

    def is_constant(self, values) -> bool:
        """Return whether a model gives one and the same answer throughout."""
        return len({value.given for value in values}) == 1

    def named(self, values, labels: list[str]) -> list:
        return [value.given for value in values]

    def columns(self, values) -> dict[str, list]:
        """Return the best text of each question, how much less likely it is than no answer, and the next best ones."""
        names = ("text", "behind")
        others = [[dict(zip(names, other, strict=True)) for other in value.others] for value in values]
        return {
            "extracted": [
                value._asdict() | {"others": next_ones} for value, next_ones in zip(values, others, strict=True)
            ]
        }

    def threshold(self, task: dict, gold, predicted) -> float | None:
        return threshold(task, gold, predicted)

    def decided(self, values, threshold: float):
        """Return answers whose `no_answer` counts from the threshold."""
        return shifted(values, threshold)

    def read(self, column, labels: list[str]):
        return [Answer(value["text"], value["no_answer"]) for value in column.to_pylist()]

    def array(self, values: list):
        return values


TARGET_KINDS = {"label": ClassTarget(), "score": ScoreTarget(), "tags": TagsTarget(), "label_set": LabelSetTarget()}
TARGET_KINDS |= {"answers": AnswersTarget()}


def target_of(task: dict) -> ClassTarget:
    return TARGET_KINDS[TARGET_OF_TYPE[task["type"]]]
