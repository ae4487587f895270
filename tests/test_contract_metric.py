"""The contract of a metric.

It is tried through `score`, as every result is: None stands for a score that is not defined.
"""

import numpy as np
import pytest

from thaw.core import plugins
from thaw.declarations.task_types import METRICS_OF_TYPE, TASK_TYPES, UNBOUNDED_METRICS
from thaw.evaluation.answers import Answer
from thaw.evaluation.metrics import METRICS, score

LABELS = ["no", "yes"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC"]


def pytest_generate_tests(metafunc):
    """Try each of Thaw's metrics, or the given one, on each type of task that it takes."""
    given, words = metafunc.config.getoption("part"), metafunc.function is test_unseen_words
    cases = [(metric, task_type) for metric in ([given] if given else METRICS) for task_type in types(metric)]
    metafunc.parametrize("metric, task_type", [case for case in cases if not words or kind(case[1]) == "tags"])


def types(metric: str) -> list[str]:
    """Return the types of task that a metric takes: all, where an own one states nothing."""
    if plugins.is_plugin(metric):
        return plugins.parse_plugin(metric).stated("task_types", TASK_TYPES)
    return [task_type for task_type in TASK_TYPES if metric in METRICS_OF_TYPE[task_type]]


def kind(task_type: str) -> str:
    """Return what a type of task predicts: class, set of labels, score, tags or answer."""
    if task_type == "span_extraction":
        return "answer"
    if task_type.endswith("multi_label_classification"):
        return "set"
    return "score" if task_type.endswith("regression") else "tags" if task_type in ("tagging", "spans") else "class"


def scored(metric: str, task_type: str, gold, predicted) -> float | None:
    """Return the score."""
    task = {"id": "made up", "type": task_type, "target": "answer", "metrics": [metric]}
    labels = {"class": LABELS, "set": LABELS, "score": None, "tags": TAGS, "answer": None}[kind(task_type)]
    if kind(task_type) == "answer":
        gold, predicted = [[(0, text)] if text else [] for text in gold], [as_answer(text) for text in predicted]
    return score(task, gold, predicted, labels)[metric]


def as_answer(text: str) -> Answer:
    """Return a text as the metrics get it; an empty one is no answer."""
    return Answer(text, -1.0 if text else 1.0)


def random_targets(task_type: str, rows: int, seed: int):
    """Return made-up gold or predictions, as metrics get them; among the first are all classes and a span."""
    draw = np.random.default_rng(seed)
    if kind(task_type) == "class":
        return np.concatenate([[0, 1], draw.integers(0, 2, rows)])
    if kind(task_type) == "answer":
        return ["", "old cat", *(draw.choice(["", "cat", "old cat", "dog"]) for _ in range(rows))]
    if kind(task_type) == "set":
        return np.concatenate([[[0, 1], [1, 0]], draw.integers(0, 2, (rows, 2))])
    if kind(task_type) == "score":
        return np.concatenate([[1.0, 4.5], draw.normal(3, 1, rows)])
    return [[1, 2, 0], *(draw.integers(0, 4, 1 + i % 5).tolist() for i in range(rows))]


def test_perfect(metric, task_type):
    """a perfect prediction scores 1"""
    for rows in (3, 40):
        gold = random_targets(task_type, rows, rows)
        found = scored(metric, task_type, gold, gold)
        assert found == pytest.approx(1), f"{task_type}: it scores {found}"


def lowest(metric) -> float:
    """Return the lowest score of a metric."""
    return -np.inf if metric in UNBOUNDED_METRICS else -1


def test_range(metric, task_type):
    """every score lies between -1 and 1, and another prediction may score less than a perfect one"""
    gold = random_targets(task_type, 30, 0)
    found = [scored(metric, task_type, gold, random_targets(task_type, 30, seed)) for seed in range(1, 30)]
    outside = [value for value in found if value is not None and not lowest(metric) <= value <= 1]
    assert not outside, f"{task_type}: a score of {outside[0]:.4g}"
    assert min((value for value in found if value is not None), default=1) < 1, f"{task_type}: it always scores 1"


def test_order(metric, task_type):
    """the order of the rows changes nothing"""
    gold, predicted = random_targets(task_type, 30, 5), random_targets(task_type, 30, 6)
    first = scored(metric, task_type, gold, predicted)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(gold))
        both = [[side[i] for i in order] for side in (gold, predicted)]
        both = both if kind(task_type) in ("tags", "answer") else [np.array(side) for side in both]
        assert scored(metric, task_type, *both) == pytest.approx(first), f"{task_type}: rows in another order"


def test_undefined(metric, task_type):
    """what is undefined is NaN, and no exception: no rows, one row, a single class, numbers that are none"""
    gold = random_targets(task_type, 6, 0)
    alike = {
        "class": np.zeros(8, int),
        "set": np.zeros((8, 2), int),
        "score": np.full(8, 2.0),
        "tags": [[0] * len(row) for row in random_targets("spans", 6, 0)],
        "answer": ["cat"] * 8,
    }
    same = alike[kind(task_type)]
    sides = [(gold[:0], gold[:0]), (gold[:1], gold[:1]), (same, same), (gold, same), (same, gold)]
    if kind(task_type) == "score":
        sides.append((gold, np.full(8, np.nan)))
    for real, predicted in sides:
        found = scored(metric, task_type, real, predicted)
        assert found is None or lowest(metric) <= found <= 1, (
            f"{task_type}: a score of {found} for {real!r} and {predicted!r}"
        )


def test_unseen_words(metric, task_type):
    """a word that the model never saw, -1 among its predictions, counts as wrong"""
    gold = random_targets(task_type, 6, 0)
    found = scored(metric, task_type, gold, [[-1] * len(row) for row in gold])
    assert found is None or found < 1, f"{task_type}: it scores {found} though no word was seen"
