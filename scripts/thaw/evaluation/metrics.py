"""Scores of predictions against gold, as fractions between -1 and 1.

Gold and predictions come encoded: class indices, floats, or per sentence a list of tag indices. A tag index
of -1 in a prediction means that the model saw no such word (truncated away): it counts as wrong, and as
outside of any span. A score that is not defined (correlation with a constant, F1 where neither side has a
positive) is None, never 0.
"""

import math
from itertools import chain

import numpy as np

from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.core.files import finite

NO_TAG = -1


def accuracy(gold, predicted) -> float:
    """Return the share of equal entries; lists of lists (tags) are compared word by word."""
    gold, predicted = _flat(gold), _flat(predicted)
    return float(np.mean(np.equal(gold, predicted))) if len(gold) else math.nan


def f1(gold, predicted) -> float:
    """Return the F1 of the positive class, the label of index 1; NaN where neither side has a positive."""
    return _f1(np.asarray(gold) == 1, np.asarray(predicted) == 1)


def f1_macro(gold, predicted) -> float:
    """Return the unweighted mean of the F1 of all classes that occur in gold or predictions."""
    gold, predicted = np.asarray(gold), np.asarray(predicted)
    found = [_f1(gold == label, predicted == label) for label in np.union1d(gold, predicted)]
    return float(np.mean(found)) if found else math.nan


def _f1(gold, predicted) -> float:
    """Return the F1 of truths [N] against predicted ones; NaN where there is none on either side."""
    total = int(gold.sum()) + int(predicted.sum())
    return 2 * int((gold & predicted).sum()) / total if total else math.nan


def mcc(gold, predicted) -> float:
    """Return Matthews' correlation coefficient; 0 for a constant prediction, as GLUE has it for CoLA.

    Gorodkin 2004, for any number of classes, by counts: n examples, c right ones, and how often each class is.
    """
    if not len(gold):
        return math.nan
    labels, codes = np.unique(np.concatenate([gold, predicted]), return_inverse=True)
    gold, predicted = codes[: len(gold)], codes[len(gold) :]
    truth, answers = (np.bincount(side, minlength=len(labels)).astype(float) for side in (gold, predicted))
    n, right = float(len(gold)), float((gold == predicted).sum())
    varied = (n * n - answers @ answers) * (n * n - truth @ truth)
    return float((right * n - truth @ answers) / math.sqrt(varied)) if varied else 0.0


def import_for(metrics: list[str]) -> None:
    """Import what some metrics need, before a device waits for it."""
    if {"pearson", "spearman"} & set(metrics):
        import scipy.stats  # noqa: F401


def pearson(gold, predicted) -> float:
    """Return Pearson's linear correlation; NaN where either side is constant."""
    from scipy.stats import pearsonr

    return float(pearsonr(gold, predicted).statistic) if _varies(gold) and _varies(predicted) else math.nan


def spearman(gold, predicted) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; NaN where either side is constant."""
    from scipy.stats import spearmanr

    return float(spearmanr(gold, predicted).statistic) if _varies(gold) and _varies(predicted) else math.nan


def span_f1(gold, predicted) -> float:
    """Return the micro F1 of spans over sentences of BIO tag names; NaN where neither side has a span.

    A span counts only if its type and both its ends agree (conlleval). Spans are read strictly, see `spans`.
    """
    found = [(spans(g), spans(p)) for g, p in zip(gold, predicted, strict=True)]
    hits = sum(len(g & p) for g, p in found)
    total = sum(len(g) + len(p) for g, p in found)
    return 2 * hits / total if total else math.nan


def spans(tags) -> set[tuple[str, int, int]]:
    """Return the spans (type, first word, word after the last) of one sentence's tags, read strictly as IOB2.

    A span begins at `B-X` and goes on over the `I-X` that follow it. An `I-X` that no `B-X` opened belongs to
    no span: conlleval would open one there, seqeval (mode strict, scheme IOB2) does not, and neither do we,
    since a model that skips the beginning has not marked a span.
    """
    found, kind, start = set(), None, 0
    for position, tag in enumerate(chain(tags, ["O"])):
        prefix, _, name = tag.partition("-")
        if kind is not None and not (prefix == "I" and name == kind):
            found.add((kind, start, position))
            kind = None
        if prefix == "B":
            kind, start = name, position
    return found


METRICS = {
    "accuracy": accuracy,
    "f1": f1,
    "f1_macro": f1_macro,
    "mcc": mcc,
    "pearson": pearson,
    "spearman": spearman,
    "span_f1": span_f1,
}


def score(task: dict, gold, predicted, labels: list[str] | None = None) -> dict[str, float | None]:
    """Return the task's metrics, the main one first; None where one is not defined.

    `labels` are the target's label names in order (none for scores). Raises UserError where `f1` is asked for
    and the target has other than two labels, or where gold and predictions differ in length.
    """
    if len(gold) != len(predicted):
        raise UserError(f"task {task['id']}: {len(predicted)} predictions for {len(gold)} examples")
    if "f1" in task["metrics"] and len(labels) != 2:
        found = f"{task['target']} has {len(labels)}"
        raise UserError(f"task {task['id']}: metric f1 needs two labels, {found}; take f1_macro")
    scores = {}
    for name in task["metrics"]:
        sides = (_names(gold, labels), _names(predicted, labels)) if name == "span_f1" else (gold, predicted)
        scores[name] = finite(plugins.resolve(name, METRICS)(*sides))
    return scores


def majority(task: dict, gold) -> int | float:
    """Return the one answer of a model without input: the most frequent class or tag, or the mean."""
    import numpy as np

    if task["type"].endswith("regression"):
        return float(np.mean(gold))
    return int(np.bincount(_flat(gold)).argmax())


def _flat(values):
    """Return tags as one list over all sentences, anything else as it is."""
    return list(chain.from_iterable(values)) if len(values) and hasattr(values[0], "__len__") else values


def _names(sentences, labels: list[str]) -> list[list[str]]:
    """Return sentences of tag names for sentences of tag indices, outside where there is no tag."""
    return [["O" if tag == NO_TAG else labels[tag] for tag in tags] for tags in sentences]


def _varies(values) -> bool:
    """Tell whether finite values differ by more than rounding: a correlation with less is noise."""
    import numpy as np

    values = np.asarray(values, dtype=np.float64)
    spread = np.ptp(values) if len(values) > 1 else 0.0
    return bool(np.isfinite(values).all() and spread > 1e-9 * max(1.0, np.abs(values).max(initial=0)))
