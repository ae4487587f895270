"""Metrics against seqeval, scikit-learn, and cases worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.scheme import IOB2
from sklearn import metrics as reference

from thaw.core.errors import UserError
from thaw.evaluation.metrics import METRICS, score, span_f1, spans
from thaw.evaluation.target_kinds import target_of

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
PAIRS = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=8),
    min_size=1,
    max_size=5,
)


def task(*metrics, type="classification"):
    return {"id": "t", "type": type, "target": "label", "metrics": list(metrics)}


@settings(max_examples=200, deadline=None)
@given(PAIRS)
def test_span_f1_equals_seqeval_strict(sentences):
    gold = [[pair[0] for pair in sentence] for sentence in sentences]
    predicted = [[pair[1] for pair in sentence] for sentence in sentences]
    ours = span_f1(gold, predicted)
    theirs = seqeval_f1(gold, predicted, mode="strict", scheme=IOB2, zero_division=0)
    assert (0.0 if math.isnan(ours) else ours) == pytest.approx(theirs)


def test_spans_by_hand():
    assert spans(["B-PER", "I-PER", "O", "B-LOC"]) == {("PER", 0, 2), ("LOC", 3, 4)}
    assert spans(["B-PER", "B-PER"]) == {("PER", 0, 1), ("PER", 1, 2)}
    assert spans(["O", "I-PER", "I-PER"]) == set()
    assert spans(["B-PER", "I-LOC", "I-LOC"]) == {("PER", 0, 1)}
    assert spans(["B-a-b", "I-a-b"]) == {("a-b", 0, 2)}
    assert spans([]) == set()
    with pytest.raises(ValueError):
        span_f1([["O"]], [])


TAG_LISTS = st.lists(st.sampled_from(["O", "B", "I", "B-A", "I-A", "B-B", "I-B", "B-I-A"]), max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TAG_LISTS, TAG_LISTS), max_size=5))
def test_spans_of_many_sentences_are_those_of_each(pairs):
    gold, predicted = [one for one, _ in pairs], [other for _, other in pairs]
    counts = METRICS["span_f1"].counts(gold, predicted)
    both = [2 * len(spans(one) & spans(other)) for one, other in pairs]
    assert counts.tolist() == [both, [len(spans(one)) + len(spans(other)) for one, other in pairs]]


def test_strict_where_the_lenient_reading_is_perfect():
    gold = [["B-PER", "I-PER", "O", "B-LOC"]]
    assert span_f1(gold, [["I-PER", "I-PER", "O", "B-LOC"]]) == pytest.approx(2 / 3)
    assert seqeval_f1(gold, [["I-PER", "I-PER", "O", "B-LOC"]]) == 1.0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=30))
def test_classes_equal_scikit_learn(pairs):
    gold, predicted = (list(side) for side in zip(*pairs, strict=True))
    ours = score(task("accuracy", "f1", "f1_macro", "mcc"), gold, predicted, ["no", "yes"])
    assert list(ours) == ["accuracy", "f1", "f1_macro", "mcc"]
    assert ours["accuracy"] == pytest.approx(np.mean(np.equal(gold, predicted)))
    assert ours["mcc"] == pytest.approx(reference.matthews_corrcoef(gold, predicted))
    hits = sum(g == p == 1 for g, p in pairs)
    total = sum(gold) + sum(predicted)
    assert ours["f1"] == (pytest.approx(2 * hits / total) if total else None)
    assert ours["f1_macro"] == pytest.approx(reference.f1_score(gold, predicted, average="macro"))


def test_correlations_by_hand():
    numbers = task("pearson", "spearman", type="pair_regression")
    assert score(numbers, [1.0, 2.0, 3.0], [1.0, 2.0, 9.0]) == {
        "pearson": pytest.approx(8 / math.sqrt(2 * 38)),
        "spearman": pytest.approx(1.0),
    }


def test_r2_equals_scikit_learn():
    rng = np.random.default_rng(3)
    gold = rng.normal(3, 2, 50)
    for predicted in (gold + rng.normal(0, 1, 50), rng.normal(0, 5, 50), np.full(50, gold.mean()), gold):
        ours = score(task("r2", type="regression"), gold.tolist(), predicted.tolist())
        assert ours["r2"] == pytest.approx(reference.r2_score(gold, predicted), abs=1e-12)
    assert score(task("r2", type="regression"), [2.0, 2.0], [1.0, 3.0]) == {"r2": None}


def test_undefined_is_none():
    numbers = task("pearson", "spearman", type="regression")
    assert score(numbers, [1.0, 2.0], [3.0, 3.0]) == {"pearson": None, "spearman": None}
    assert score(numbers, [1.0, 2.0], [3.0, math.nan]) == {"pearson": None, "spearman": None}
    nothing = score(task("span_f1", "accuracy", type="spans"), [[0, 0]], [[0, 0]], TAGS)
    assert nothing == {"span_f1": None, "accuracy": 1.0}
    assert score(task("accuracy", "mcc"), [], [], ["a", "b"]) == {"accuracy": None, "mcc": None}


@pytest.mark.parametrize("still", [[], [1.0], [1.0, 1 + 1e-12, 1 - 1e-12], [1e6, 1e6 + 1e-4, 1e6], [0.0, 2e-10, 1e-10]])
def test_what_varies_by_rounding_alone_has_no_correlation(still):
    numbers, moving = task("pearson", "spearman", type="regression"), [1.0, 3.0, 2.0][: len(still)]
    for sides in ((still, moving), (moving, still)):
        assert score(numbers, *sides) == {"pearson": None, "spearman": None}


def test_a_word_without_prediction_is_wrong():
    none = score(task("span_f1", type="spans"), [[0]], [[-1]], ["O", "B-PER"])
    assert none == {"span_f1": None}, "it is no span, whatever the last label is"
    scores = score(task("span_f1", "accuracy", type="spans"), [[1, 2], [0, 3]], [[1, 2], [0, -1]], TAGS)
    assert scores["accuracy"] == 0.75
    assert scores["span_f1"] == pytest.approx(2 / 3)


def test_errors_name_task_and_target():
    with pytest.raises(UserError, match="task t: metric f1 is for two labels, and label has 3; take f1_macro"):
        score(task("f1"), [0], [0], ["a", "b", "c"])
    with pytest.raises(UserError, match="task t: 1 predictions for 2 examples"):
        score(task("accuracy"), [0, 1], [0], ["a", "b"])


def test_majority():
    assert target_of(task("accuracy")).constant(np.array([2, 1, 1, 2, 0])) == 1
    assert target_of(task("pearson", type="regression")).constant([1.0, 2.0]) == 1.5
    assert target_of(task("accuracy", type="tagging")).constant([[0, 2], [2]]) == 2
