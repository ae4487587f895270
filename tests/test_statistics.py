"""Statistics on cases with known answers: resampled metrics, intervals, tests, trials, variance."""

import numpy as np
import pytest

from thaw.core.errors import UserError
from thaw.evaluation import metrics, weighted_metrics
from thaw.statistics import bootstrap, expected_max, significance, variance_components

LABELS = ["no", "yes", "perhaps"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def example_task(kind: str, metric: str) -> dict:
    """Return a whole task with one metric."""
    return {"id": "example", "type": kind, "metrics": [metric], "target": "target"}


def gold_and_predicted(kind: str, metric: str, rng, n: int = 40):
    """Return gold, predictions and labels of n examples of a type of task."""
    if kind == "spans":
        sides = [[rng.integers(0, len(TAGS), 7).tolist() for _ in range(n)] for _ in range(2)]
        sides[1] = [g if rng.random() < 0.5 else p for g, p in zip(*sides, strict=True)]
        return *sides, TAGS
    if kind == "regression":
        gold = rng.integers(0, 6, n) / 1.0
        return gold, gold + rng.normal(0, 2, n).round(), None
    classes = 2 if metric == "f1" else 3
    gold = rng.integers(0, classes, n)
    return gold, np.where(rng.random(n) < 0.6, gold, rng.integers(0, classes, n)), LABELS[:classes]


CASES = [("classification", metric) for metric in ("accuracy", "f1", "f1_macro", "mcc")]
CASES += [("regression", "pearson"), ("regression", "spearman"), ("spans", "span_f1"), ("spans", "accuracy")]


@pytest.mark.parametrize("kind, metric", CASES)
def test_a_weighted_score_is_the_metric_of_the_examples_written_out(kind, metric):
    rng = np.random.default_rng(1)
    gold, predicted, labels = gold_and_predicted(kind, metric, rng)
    task, weights = example_task(kind, metric), rng.integers(0, 3, (5, 40))
    weights[0] = 1
    found = weighted_metrics.scorer(task, metric, gold, predicted, labels)(weights)
    for row, value in zip(weights, found, strict=True):
        drawn = [i for i, count in enumerate(row) for _ in range(count)]
        sides = ([side[i] for i in drawn] for side in (gold, predicted))
        assert value == pytest.approx(metrics.score(task, *sides, labels)[metric], abs=1e-12)


def test_a_score_that_is_not_defined_is_nan_and_counted():
    scorer = weighted_metrics.scorer(example_task("regression", "pearson"), "pearson", [1.0, 2.0], [1.0, 3.0])
    assert np.isnan(scorer(np.array([[2, 0], [1, 1]]))).tolist() == [True, False]
    assert bootstrap.interval(1.0, np.array([np.nan, 1.0, 1.0, np.nan])).undefined == 0.5


def accuracy(right: np.ndarray):
    """Return the scorer of an accuracy whose right predictions are given as ones."""
    return weighted_metrics.scorer(
        example_task("classification", "accuracy"), "accuracy", np.ones(len(right), int), right, LABELS
    )


def test_the_bootstrap_of_one_seed_is_the_binomial_interval():
    right = np.array([1] * 80 + [0] * 20)
    draws = bootstrap.Draws(1, 100, 4000).means([accuracy(right)])
    found = bootstrap.interval(0.8, draws)
    assert draws.std() == pytest.approx(np.sqrt(0.8 * 0.2 / 100), rel=0.05)
    assert (found.low, found.high) == pytest.approx((0.72, 0.88), abs=0.011)


def test_seeds_and_examples_both_widen_the_interval():
    rng = np.random.default_rng(3)
    same = [accuracy((rng.random(400) < 0.8).astype(int)) for _ in range(6)]
    apart = [accuracy((rng.random(400) < level).astype(int)) for level in (0.7, 0.74, 0.78, 0.82, 0.86, 0.9)]
    widths = [np.ptp(np.quantile(bootstrap.Draws(6, 400).means(runs), [0.025, 0.975])) for runs in (same, apart)]
    one = np.ptp(np.quantile(bootstrap.Draws(1, 400).means(same[:1]), [0.025, 0.975]))
    assert widths[0] < one and widths[1] > 2 * widths[0]


def test_documents_that_agree_within_count_as_one_example():
    right, documents = np.repeat([1, 0] * 10, 50), np.repeat(np.arange(20), 50)
    by_document = bootstrap.Draws(1, documents).means([accuracy(right)]).std()
    alone = bootstrap.Draws(1, len(right)).means([accuracy(right)]).std()
    assert by_document == pytest.approx(np.sqrt(0.25 / 20), rel=0.1) and alone == pytest.approx(
        np.sqrt(0.25 / 1000), rel=0.1
    )


def test_pairs_stay_pairs_and_large_sets_are_drawn_in_parts(monkeypatch):
    rng = np.random.default_rng(5)
    right = (rng.random(300) < 0.5).astype(int)
    better = right.copy()
    better[np.flatnonzero(right == 0)[:9]] = 1
    whole = bootstrap.Draws(2, 300)
    gain = whole.means([accuracy(better)] * 2) - whole.means([accuracy(right)] * 2)
    assert gain.min() >= 0 and gain.std() < 0.4 * whole.means([accuracy(right)] * 2).std()
    before = np.concatenate(list(whole.examples()))
    monkeypatch.setattr(bootstrap, "AT_ONCE", 700)
    again = list(whole.examples())
    assert np.array_equal(np.concatenate(again), before)
    assert [len(part) for part in again] == [2] * 500 and all((part.sum(1) == 300).all() for part in again)


def test_least_k_has_an_interval_and_may_never_be_reached():
    rng = np.random.default_rng(7)
    full = np.full(500, 0.8)
    by_k = {0: np.full(500, 0.5), 1: 0.72 + rng.normal(0, 0.01, 500), 2: np.full(500, 0.79)}
    found = bootstrap.least_interval(1, by_k, full, 0.9)
    assert (found["value"], found["low"], found["high"], found["never"]) == (1, 1, 2, 0.0)
    never = bootstrap.least_interval(None, {0: by_k[0]}, full, 0.9)
    assert never == {"value": None, "low": None, "high": None, "never": 1.0}


@pytest.mark.parametrize("n, least", [(1, 1.0), (5, 2 / 32), (6, 2 / 64), (8, 2 / 256)])
def test_the_sign_flip_test_cannot_go_below_its_bound(n, least):
    assert significance.sign_flip(np.linspace(0.5, 1, n)) == pytest.approx(least)


def test_the_sign_flip_test_of_a_known_case():
    assert significance.sign_flip([1, 2, -3]) == 1.0
    assert significance.sign_flip([3, 1, -1]) == pytest.approx(6 / 8)  # sums 5, 3, 3, 1 and their mirrors
    many = significance.sign_flip(np.random.default_rng(2).normal(0.2, 1, 40))
    assert many == pytest.approx(significance.sign_flip(np.random.default_rng(2).normal(0.2, 1, 40), 9), abs=0.02)
    with pytest.raises(UserError, match="one difference or more"):
        significance.sign_flip([])


def test_the_sign_flip_test_keeps_its_level():
    rng = np.random.default_rng(4)
    called = [significance.sign_flip(rng.normal(0, 1, 8)) <= 0.05 for _ in range(400)]
    assert 0.02 < np.mean(called) < 0.08


def test_holm_and_its_family():
    assert significance.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert significance.holm([0.5, 0.9]) == [1.0, 1.0] and significance.holm([]) == []


def test_answers_need_six_seeds_and_may_be_none():
    up, noise = [1.0, 1.2, 0.9, 1.1, 1.0, 0.8, 1.3], [1.0, -1.2, 0.9, -1.1, 0.2, -0.1, 0.3]
    first, second = significance.compare([up, noise])
    assert first.answer == "higher" and first.adjusted == pytest.approx(2 * 2 / 128) and first.effect > 5
    assert second.answer == "not distinguishable" and second.seeds == 7
    assert significance.compare([[-x for x in up]])[0].answer == "lower"
    assert significance.compare([up[:5]])[0].answer == "too few seeds"
    assert significance.effect_size([1.0, 1.0]) is None and significance.effect_size([1, 3]) == pytest.approx(2**0.5)


def test_how_many_seeds_it_would_take():
    assert significance.seeds_needed([1.0, 1.1, 0.9]) == significance.FEWEST_SEEDS
    noisy = significance.seeds_needed([0.5, -0.5, 0.6, -0.3, 0.4])
    assert noisy > 30 and significance.seeds_needed([0.5, -0.5, 0.6, -0.3, 0.4], most=30) is None
    assert significance.seeds_needed([1.0]) is None and significance.seeds_needed([1.0, 1.2], margin=1.1) is None


def test_the_expected_best_of_so_many_trials():
    curve = expected_max.expected_maximum([0.5, 0.7, 0.6])
    assert curve == pytest.approx([0.6, (0.5 + 3 * 0.6 + 5 * 0.7) / 9, (0.5 + 7 * 0.6 + 19 * 0.7) / 27])
    assert expected_max.expected_maximum([0.5, 0.7], 50)[-1] == pytest.approx(0.7)


def test_variance_is_split_between_subset_and_seed():
    rng = np.random.default_rng(6)
    subset, order = rng.normal(0, 3, 40), rng.normal(0, 1, 40)
    scores = {(a, b): subset[a] + order[b] + rng.normal(0, 0.5) for a in range(40) for b in range(40)}
    found = variance_components.split(scores, ("subset", "order"))
    assert found["subset"] == pytest.approx(subset.var(ddof=1), rel=0.1)
    assert found["order"] == pytest.approx(order.var(ddof=1), rel=0.1)
    assert found["rest"] == pytest.approx(0.25, rel=0.15)
    assert variance_components.split({(1,): 0.0, (2,): 2.0}, ("seed",)) == {"seed": 2.0, "rest": 0.0}
    with pytest.raises(UserError, match="needs a run for each combination"):
        variance_components.split({(1, 1): 0.0, (2, 2): 1.0}, ("subset", "seed"))
    with pytest.raises(UserError, match="variance of subset needs two levels"):
        variance_components.split({(1, 1): 0.0, (1, 2): 1.0}, ("subset", "seed"))
