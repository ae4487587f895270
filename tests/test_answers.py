"""Exact match and F1 of answers, and the no-answer threshold, against loops that follow the published definitions."""

import random

import numpy as np
import pytest

from thaw.evaluation import answers
from thaw.evaluation.answers import Answer
from thaw.evaluation.metrics import score
from thaw.evaluation.target_kinds import TARGET_KINDS
from thaw.evaluation.weighted_metrics import scorer

METRICS = ["answer_f1", "exact_match", "best_f1", "best_exact"]
TASK = {"id": "t", "type": "span_extraction", "target": "answers", "metrics": METRICS}
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
WORDS = ["the", "A", "an", "cat", "Cat's", "cat.", "anthem", "river", "(river)", "old", "-", "3.5", "an-old", "straße"]


def words_of(text: str) -> list[str]:
    """Normalise as Rajpurkar et al. say: character by character, then word by word."""
    kept = "".join(character for character in text.lower() if character not in MARKS)
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def reference_exact(gold: str, predicted: str) -> float:
    return 1.0 if words_of(gold) == words_of(predicted) else 0.0


def reference_f1(gold: str, predicted: str) -> float:
    """Precision and recall of the words that both have, each as often as both have it."""
    ours, theirs = words_of(gold), words_of(predicted)
    if not ours or not theirs:
        return 1.0 if ours == theirs else 0.0
    left, shared = list(ours), 0
    for word in theirs:
        if word in left:
            left.remove(word)
            shared += 1
    if shared == 0:
        return 0.0
    precision, recall = shared / len(theirs), shared / len(ours)
    return 2 * precision * recall / (precision + recall)


def reference(measure, gold: list, text: str, above: bool) -> float:
    """What one question counts: above the threshold it is right if it has no answer, and nothing else."""
    if above:
        return 0.0 if gold else 1.0
    texts = [answer for _, answer in gold if words_of(answer)] or [""]
    return max(measure(answer, text) for answer in texts)


def drawn(seed: int, count: int = 40, unanswerable: float = 0.3):
    """Return gold and predictions, some of them without an answer, some certainties equal."""
    draw = random.Random(seed)

    def text() -> str:
        return "  ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 4)))

    gold = [
        [] if draw.random() < unanswerable else [(0, text()) for _ in range(draw.randint(1, 3))] for _ in range(count)
    ]
    said = [draw.choice(answers)[1] if answers and draw.random() < 0.5 else text() for answers in gold]
    return gold, [
        Answer(one, round(draw.gauss(0.5 if not answers else -0.5, 1), 1))
        for one, answers in zip(said, gold, strict=True)
    ]


def test_texts_are_compared_as_published():
    for seed in range(200):
        draw = random.Random(seed)
        gold, predicted = (" ".join(draw.choice(WORDS) for _ in range(draw.randint(0, 5))) for _ in range(2))
        assert answers.exact(gold, predicted) == reference_exact(gold, predicted)
        assert answers.overlap(gold, predicted) == pytest.approx(reference_f1(gold, predicted))


@pytest.mark.parametrize(
    ("gold", "predicted", "exact", "f1"),
    [
        ("the Normans", "Normans.", 1, 1),
        ("in the 10th century", "10th century", 0, 0.8),
        ("an answer", "theanswer", 0, 0),
        ("A", "the", 1, 1),  # nothing is left of either
        ("Denmark, Iceland and Norway", "Denmark", 0, 2 * 1 * 0.25 / 1.25),
    ],
)
def test_known_values(gold, predicted, exact, f1):
    assert (answers.exact(gold, predicted), answers.overlap(gold, predicted)) == (exact, pytest.approx(f1))


@pytest.mark.parametrize("seed", range(6))
def test_scores_equal_a_loop(seed):
    gold, predicted = drawn(seed)
    found = score(TASK, gold, predicted)
    pairs = list(zip(gold, predicted, strict=True))
    for name, best, measure in (("exact_match", "best_exact", reference_exact), ("answer_f1", "best_f1", reference_f1)):
        given = [reference(measure, each, one.text, one.no_answer > 0) for each, one in pairs]
        assert found[name] == pytest.approx(np.mean(given))
        at = []
        for threshold in [-np.inf, *(one.no_answer for one in predicted)]:
            values = []
            for each, one in pairs:
                above = one.no_answer > threshold
                kept = (
                    measure if each else (lambda gold, text: 0.0 if text else 1.0)
                )  # any text is wrong without answer
                values.append(reference(kept, each, one.text, above))
            at.append(np.mean(values))
        assert found[best] == pytest.approx(max(at))


@pytest.mark.parametrize("metric", METRICS)
def test_resampled_rows_score_as_if_written_out(metric):
    gold, predicted = drawn(3)
    weights = np.random.default_rng(3).multinomial(40, [1 / 40] * 40, size=5).astype(float)
    found = scorer(TASK, metric, gold, predicted)(weights)
    for row, value in zip(weights.astype(int), found, strict=True):
        written = np.repeat(np.arange(40), row)
        sides = ([side[place] for place in written] for side in (gold, predicted))
        assert value == pytest.approx(score(TASK | {"metrics": [metric]}, *sides)[metric])


@pytest.mark.parametrize("main", ["answer_f1", "exact_match"])
def test_the_threshold_of_validation_is_the_best_there(main):
    gold, predicted = drawn(7)
    predicted = [one._replace(no_answer=one.no_answer + 2) for one in predicted]
    kind, task = TARGET_KINDS["answers"], TASK | {"metrics": [main, "best_f1", "best_exact"]}
    threshold = kind.threshold(task, gold, predicted)
    found = score(task, gold, kind.decided(predicted, threshold))
    best, pairs = found["best_exact" if main == "exact_match" else "best_f1"], zip(gold, predicted, strict=True)
    articles = sum(one.no_answer <= threshold for each, one in pairs if not each and not words_of(one.text))
    assert found[main] == pytest.approx(best + articles / len(gold))  # where it looks for it, the script counts "the"
    assert found[main] > score(task, gold, predicted)[main]


def test_where_every_question_has_an_answer_one_is_always_given():
    gold, predicted = drawn(1, unanswerable=0)
    kind = TARGET_KINDS["answers"]
    decided = kind.decided(predicted, kind.threshold(TASK, gold, predicted))
    assert kind.named(decided, []) == [one.text for one in predicted]
    nothing = kind.decided(predicted, kind.threshold(TASK, [[] for _ in gold], predicted))
    assert set(kind.named(nothing, [])) == {""}
