"""Scores of predictions against gold, as fractions between -1 and 1; R² has no lowest one.

N examples, C classes, D draws, K counts.

Gold and predictions come encoded: class indices, floats, or per sentence a list of tag indices. A tag index of -1 in a
prediction means that the model saw no such word (truncated away): it counts as wrong, and as outside of any span. Sets
of labels are [N, C]: gold 0 or 1, predictions probabilities, of which those above 0.5 count as predicted. Answers to
questions are `thaw.evaluation.answers.Answer`. A score that is not defined (correlation with a constant, F1 where
neither side has a positive) is None, never 0.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.core.files import finite
from thaw.declarations.task_types import NO_TAG, no_f1
from thaw.evaluation import answers


def pearson(gold, predicted) -> float:
    """Return Pearson's linear correlation; NaN where either side is constant."""
    from scipy.stats import pearsonr

    return float(pearsonr(gold, predicted).statistic) if varies(gold) and varies(predicted) else math.nan


def spearman(gold, predicted) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; NaN where either side is constant."""
    from scipy.stats import spearmanr

    return float(spearmanr(gold, predicted).statistic) if varies(gold) and varies(predicted) else math.nan


def r2(gold, predicted) -> float:
    """Return the coefficient of determination: 1 less the squared errors' share of the squared deviations of gold.

    It is 1 for no error, 0 for errors as large as those of the mean, and below 0 for larger ones. NaN where gold is
    constant.
    """
    gold, predicted = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if not varies(gold):
        return math.nan
    return float(1 - np.square(gold - predicted).sum() / np.square(gold - gold.mean()).sum())


def varies(values) -> bool:
    """Return whether finite values differ by more than rounding: a correlation with less is noise."""
    values = np.asarray(values, dtype=np.float64)
    spread = np.ptp(values) if len(values) > 1 else 0.0
    return bool(np.isfinite(values).all() and spread > 1e-9 * max(1.0, np.abs(values).max(initial=0)))


THRESHOLD = 0.5  # probability above which a label of a set counts as predicted


def ratio(above, below) -> np.ndarray:
    """Return a quotient, NaN where the divisor is 0."""
    above, below = np.broadcast_arrays(np.asarray(above, float), np.asarray(below, float))
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def _first_of_second(sums: np.ndarray) -> np.ndarray:
    return ratio(sums[:, 0], sums[:, 1])


@dataclass(frozen=True)
class CountMetric:
    """A metric that depends on sums of counts over examples, so that many resampled test sets are scored at once.

    Args: counts, from gold, predictions and C to what each example adds to each count, [K, N]; value, from sums [D, K]
    to scores [D], NaN where one is not defined.
    """

    counts: Callable[..., np.ndarray]
    value: Callable[[np.ndarray], np.ndarray] = _first_of_second

    def __call__(self, gold, predicted) -> float:
        """Return the score of the examples, each counted once."""
        return float(self.value(self.counts(gold, predicted).sum(1).astype(float)[None])[0])


def _equal(gold, predicted, classes: int | None = None) -> np.ndarray:
    """Count equal entries and all entries, [2, N]: one entry for a label, many for tags."""
    equal = np.equal(_flat(gold), _flat(predicted))
    if not _nested(gold):
        return np.stack([equal, np.ones_like(equal)])
    lengths = [len(tags) for tags in gold]
    sentence = np.repeat(np.arange(len(gold)), lengths)
    return np.stack([np.bincount(sentence, equal, len(gold)), lengths])


def _positives(gold, predicted, classes: int | None = None) -> np.ndarray:
    """Count the positives, the label of index 1: twice those that both sides have, and those of either side, [2, N]."""
    gold, predicted = (np.equal(side, 1).astype(int) for side in (gold, predicted))
    return np.stack([2 * gold * predicted, gold + predicted])


def marked(values) -> np.ndarray:
    """Return which labels [C, N] the sets of N examples have, of 0 and 1 or of probabilities [N, C]."""
    return np.asarray(values).T > THRESHOLD


def _common(gold, predicted, classes: int | None = None) -> np.ndarray:
    """Count labels of sets: twice those that both sides have, and those of either side, [2, N]."""
    gold, predicted = marked(gold), marked(predicted)
    return np.stack([2 * (gold & predicted).sum(0), gold.sum(0) + predicted.sum(0)])


def _equal_sets(gold, predicted, classes: int | None = None) -> np.ndarray:
    """Count examples whose sets are the same, and all examples, [2, N]."""
    equal = (marked(gold) == marked(predicted)).all(0)
    return np.stack([equal, np.ones_like(equal)])


def _classes(gold, predicted, classes: int | None = None) -> np.ndarray:
    """Mark the class, or the labels, of each example in gold, in predictions and, where they agree, in both: [3 C, N].

    Without a number of classes they are those that occur.
    """
    if np.ndim(gold) == 2:
        gold, predicted = marked(gold), marked(predicted)
        return np.concatenate([gold, predicted, gold & predicted])
    labels = np.union1d(gold, predicted) if classes is None else np.arange(classes)
    gold, predicted = (np.equal(labels[:, None], side) for side in (gold, predicted))
    return np.concatenate([gold, predicted, gold & predicted])


def _mean_f1(sums: np.ndarray) -> np.ndarray:
    """Return the mean F1 of the classes that gold or predictions have."""
    gold, predicted, both = np.split(sums, 3, axis=1)
    by_class = ratio(2 * both, gold + predicted)
    return ratio(np.nansum(by_class, 1), (~np.isnan(by_class)).sum(1))


def _mcc(sums: np.ndarray) -> np.ndarray:
    """Return Matthews' coefficient for any number of classes (Gorodkin 2004), 0 where a side has one class alone."""
    gold, predicted, both = np.split(sums, 3, axis=1)
    total = gold.sum(1)
    above = both.sum(1) * total - (gold * predicted).sum(1)
    below = np.sqrt((total**2 - (gold**2).sum(1)) * (total**2 - (predicted**2).sum(1)))
    return np.where(below > 0, above / np.where(below > 0, below, 1), np.where(total > 0, 0.0, np.nan))


def _spans(gold, predicted, classes: int | None = None) -> np.ndarray:
    """Count the spans of sentences of tag names: twice those that both sides have, and those of either side, [2, N]."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(predicted)} sentences of predictions for {len(gold)} of gold")
    names = {tag: n for n, tag in enumerate(dict.fromkeys(chain(*gold, *predicted)))}
    longest = 1 + max(map(len, chain(gold, predicted)), default=0)
    mine, theirs = (_numbered_spans(side, names, longest) for side in (gold, predicted))
    both = np.intersect1d(mine, theirs, assume_unique=True)
    each = (part // (longest**2 * max(1, len(names))) for part in (both, mine, theirs))
    shared, *sides = (np.bincount(sentences, minlength=len(gold)) for sentences in each)
    return np.stack([2 * shared, sum(sides)]).astype(float)


def _numbered_spans(sentences, names: dict[str, int], longest: int) -> np.ndarray:
    """Return the spans of sentences of tag names, read as `spans` reads them, each as one number.

    Its digits are sentence, first word, length and type. Args: a number for each tag name; more than the most words of
    a sentence.
    """
    parts = [tag.partition("-") for tag in names]
    types = {name: n for n, name in enumerate(dict.fromkeys(name for _, _, name in parts))}
    begins, inside = (np.array([part[0] == prefix for part in parts], dtype=bool) for prefix in "BI")
    type_of = np.array([types[name] for _, _, name in parts], dtype=np.int64)
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    tags = np.fromiter(map(names.__getitem__, chain.from_iterable(sentences)), np.int64, lengths.sum())
    sentence = np.repeat(np.arange(len(sentences)), lengths)
    goes_on = np.zeros(len(tags), dtype=bool)
    goes_on[1:] = inside[tags[1:]] & (begins | inside)[tags[:-1]] & (type_of[tags[1:]] == type_of[tags[:-1]])
    goes_on[1:] &= sentence[1:] == sentence[:-1]
    first = np.flatnonzero(begins[tags])
    breaks = np.append(np.flatnonzero(~goes_on), len(tags))
    length = breaks[np.searchsorted(breaks, first, side="right")] - first
    word = first - (np.cumsum(lengths) - lengths)[sentence[first]]
    return ((sentence[first] * longest + word) * longest + length) * len(names) + type_of[tags[first]]


def import_for(metrics: list[str]) -> None:
    """Import what some metrics need, before a device waits for it."""
    if {"pearson", "spearman"} & set(metrics):
        import scipy.stats  # noqa: F401


def spans(tags) -> set[tuple[str, int, int]]:
    """Return the spans (type, first word, word after the last) of one sentence's tags, read strictly as IOB2.

    A span begins at `B-X` and includes the `I-X` that follow it. An `I-X` that no `B-X` opened belongs to
    no span: conlleval would open one there, seqeval (mode strict, scheme IOB2) does not, and neither do we,
    since a model that skips the beginning has not marked a span.
    """
    complete, kind, start = set(), None, 0
    for position, tag in enumerate(chain(tags, ["O"])):
        prefix, _, name = tag.partition("-")
        if kind is not None and not (prefix == "I" and name == kind):
            complete.add((kind, start, position))
            kind = None
        if prefix == "B":
            kind, start = name, position
    return complete


def mean_average_precision(gold, predicted) -> float:
    """Return the mean over labels of average precision, of 0 or 1 and probabilities [N, C]; NaN without rows."""
    return float(weighted_average_precision(gold, predicted, np.ones((1, len(gold))))[0])


def weighted_average_precision(gold, predicted, weights: np.ndarray) -> np.ndarray:
    """Return the mean over labels of average precision where examples count as often as weights [D, N] say, [D].

    It is the sum over thresholds of precision times the gain in recall, without interpolation, as in scikit-learn. A
    label that no drawn example has is left out; NaN where none is left.
    """
    columns = zip(np.asarray(gold).T, np.asarray(predicted).T, strict=True)
    each = np.array([_precision(*column, weights) for column in columns]).reshape(-1, len(weights))
    known = ~np.isnan(each)
    return ratio(np.where(known, each, 0.0).sum(0), known.sum(0))


def _precision(gold, shares, weights: np.ndarray) -> np.ndarray:
    """Return the average precision [D] of one label, gold and probabilities [N]; NaN where no drawn example has it."""
    if not np.any(gold):
        return np.full(len(weights), np.nan)
    order = np.argsort(-shares, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(shares[order])), len(order) - 1)  # equal probabilities are one threshold
    drawn = weights[:, order]
    hits, taken = (np.cumsum(part, axis=1)[:, ends] for part in (drawn * gold[order], drawn))
    gained = np.diff(hits, axis=1, prepend=0.0)
    return ratio((gained * np.nan_to_num(ratio(hits, taken))).sum(1), hits[:, -1])


# The share of equal entries; lists of lists (tags) are compared word by word.
accuracy = CountMetric(_equal)
# The micro F1 of spans. A span counts only if its type and both its ends agree (conlleval); for how they are read see
# `spans`.
span_f1 = CountMetric(_spans)


def _answered(measure: Callable) -> CountMetric:
    """Return the mean of what answers are worth. Args: `answers.exact` or `answers.overlap`."""

    def counts(gold, predicted, classes: int | None = None) -> np.ndarray:
        return np.stack([answers.values(measure, gold, predicted), np.ones(len(gold))])

    return CountMetric(counts)


METRICS: dict[str, Callable[..., float]] = {
    "accuracy": accuracy,
    "f1": CountMetric(_positives),
    "f1_macro": CountMetric(_classes, _mean_f1),
    "mcc": CountMetric(_classes, _mcc),  # 0 for a constant prediction, as GLUE has it for CoLA
    "f1_micro": CountMetric(_common),
    "subset_accuracy": CountMetric(_equal_sets),
    "mean_average_precision": mean_average_precision,
    "pearson": pearson,
    "spearman": spearman,
    "r2": r2,
    "span_f1": span_f1,
    "answer_f1": _answered(answers.overlap),
    "exact_match": _answered(answers.exact),
    "best_f1": answers.BestThreshold(answers.overlap),
    "best_exact": answers.BestThreshold(answers.exact),
}


def score(task: dict, gold, predicted, labels: Sequence[str] = ()) -> dict[str, float | None]:
    """Return the task's metrics, the main one first; None where one is not defined.

    `labels` are the target's label names in order (none for scores). Raises UserError where `f1` is asked for
    and the target has other than two labels, or where gold and predictions differ in length.
    """
    if len(gold) != len(predicted):
        raise UserError(f"task {task['id']}: {len(predicted)} predictions for {len(gold)} examples")
    if "f1" in task["metrics"] and len(labels) != 2:
        raise UserError(f"task {task['id']}: {no_f1(task['target'], len(labels))}")
    return {
        name: finite(plugins.resolve(name, METRICS)(*as_metric_wants(name, gold, predicted, labels)))
        for name in task["metrics"]
    }


def as_metric_wants(metric: str, gold, predicted, labels: Sequence[str]) -> tuple:
    """Return gold and predictions as a metric takes them: tags by name for spans, else encoded as they are."""
    if metric != "span_f1":
        return gold, predicted
    names = {**dict(enumerate(labels)), NO_TAG: "O"}
    return tuple([list(map(names.__getitem__, tags)) for tags in side] for side in (gold, predicted))


def _nested(values) -> bool:
    return bool(len(values)) and hasattr(values[0], "__len__")


def _flat(values):
    """Return tags as one list over all sentences, anything else as it is."""
    return list(chain.from_iterable(values)) if _nested(values) else values
