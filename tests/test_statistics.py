"""Statistics on cases with known answers: resampled metrics, intervals, tests, trials, variance."""

import numpy as np
import pytest
from scipy.stats import binomtest, t

from thaw.evaluation import metrics, weighted_metrics
from thaw.statistics import aggregation, bootstrap

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
CASES += [
    ("regression", "pearson"),
    ("regression", "spearman"),
    ("regression", "r2"),
    ("spans", "span_f1"),
    ("spans", "accuracy"),
]


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


def test_a_score_that_is_not_defined_is_nan():
    scorer = weighted_metrics.scorer(example_task("regression", "pearson"), "pearson", [1.0, 2.0], [1.0, 3.0])
    assert np.isnan(scorer(np.array([[2, 0], [1, 1]]))).tolist() == [True, False]


def accuracy(right: np.ndarray):
    """Return the scorer of an accuracy whose right predictions are given as ones."""
    return weighted_metrics.scorer(
        example_task("classification", "accuracy"), "accuracy", np.ones(len(right), int), right, LABELS
    )


def crossed(runs: list, groups, paired: bool = False, number: int = bootstrap.DRAWS):
    """Return the mean over runs with its draws. Args: a scorer for each seed; groups of the examples."""
    drawn = bootstrap.RowDraws(groups, number)
    count = groups if np.isscalar(groups) else len(groups)
    scores = np.array([run(np.ones((1, count)))[0] for run in runs])
    return bootstrap.resampled(scores, drawn.scores(runs), count, paired)


def test_the_bootstrap_of_one_seed_is_the_binomial_interval():
    right = np.array([1] * 80 + [0] * 20)
    made = crossed([accuracy(right)], 100, number=4000)
    found = bootstrap.interval(made.value, made.draws)
    assert made.draws.std() == pytest.approx(np.sqrt(0.8 * 0.2 / 100), rel=0.05)
    assert (found.low, found.high) == pytest.approx((0.72, 0.88), abs=0.011)


def test_with_rows_that_all_agree_the_interval_is_students():
    """Where the test rows add nothing, three seeds or more have t, and two have no interval of seeds at all."""
    for seeds in (3, 6, 10):
        scores = np.random.default_rng(seeds).normal(80, 1, seeds)
        made = bootstrap.resampled(scores, np.repeat(scores[:, None], 1000, axis=1), 500)
        found = bootstrap.interval(made.value, made.draws)
        half = t.ppf(0.975, seeds - 1) * scores.std(ddof=1) / np.sqrt(seeds)
        assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.12)
    two = bootstrap.resampled(scores[:2], np.repeat(scores[:2, None], 1000, axis=1), 500)
    assert np.ptp(two.draws) == 0


def test_what_differs_by_seed_and_row_at_once_is_counted_once():
    """Seeds that all err on rows of their own: the deviation of their mean difference is that over seeds."""
    rng = np.random.default_rng(2)
    differences = rng.normal(0, 1, (8, 600))
    drawn = next(bootstrap.RowDraws(600).examples()) / 600
    made = bootstrap.resampled(differences.mean(1), differences @ drawn.T, 600, paired=True)
    twice = bootstrap.resampled(differences.mean(1), differences @ drawn.T, 600)
    of_seeds = differences.mean(1).std(ddof=1) / np.sqrt(8)
    assert made.spread.by_rows < 0.3 * twice.spread.by_rows
    assert np.ptp(np.quantile(made.draws, [0.16, 0.84])) / 2 == pytest.approx(of_seeds * t.ppf(0.84, 7), rel=0.15)


def test_seeds_and_examples_both_widen_the_interval():
    rng = np.random.default_rng(3)
    same = [accuracy((rng.random(400) < 0.8).astype(int)) for _ in range(6)]
    apart = [accuracy((rng.random(400) < level).astype(int)) for level in (0.7, 0.74, 0.78, 0.82, 0.86, 0.9)]
    widths = [np.ptp(np.quantile(crossed(runs, 400).draws, [0.025, 0.975])) for runs in (same, apart)]
    one = np.ptp(np.quantile(crossed(same[:1], 400).draws, [0.025, 0.975]))
    assert widths[0] < one and widths[1] > 2 * widths[0]


def test_documents_that_agree_within_count_as_one_example():
    right, documents = np.repeat([1, 0] * 10, 50), np.repeat(np.arange(20), 50)
    by_document, alone = (crossed([accuracy(right)], groups).draws.std() for groups in (documents, len(right)))
    assert by_document == pytest.approx(np.sqrt(0.25 / 20), rel=0.1)
    assert alone == pytest.approx(np.sqrt(0.25 / 1000), rel=0.1)


def test_pairs_stay_pairs_and_large_sets_are_drawn_in_parts(monkeypatch):
    rng = np.random.default_rng(5)
    right = (rng.random(300) < 0.5).astype(int)
    better = right.copy()
    better[np.flatnonzero(right == 0)[:9]] = 1
    gain = crossed([accuracy(better)] * 2, 300).draws - crossed([accuracy(right)] * 2, 300).draws
    assert gain.min() >= 0 and gain.std() < 0.4 * crossed([accuracy(right)] * 2, 300).draws.std()
    whole = bootstrap.RowDraws(300)
    before = np.concatenate(list(whole.examples()))
    monkeypatch.setattr(bootstrap, "AT_ONCE", 700)
    again = list(whole.examples())
    assert np.array_equal(np.concatenate(again), before)
    assert [len(part) for part in again] == [2] * 500 and all((part.sum(1) == 300).all() for part in again)


def test_least_k_has_an_interval_and_may_never_be_reached():
    rng = np.random.default_rng(7)
    full = np.full(500, 0.8)
    by_k = {0: np.full(500, 0.5), 1: 0.72 + rng.normal(0, 0.01, 500), 2: np.full(500, 0.79)}
    assert bootstrap.least_interval(by_k, full, 0.9) == (1, 2)
    assert aggregation.least({1: 0.73, 2: 0.5, 3: 0.74}, 0.8, 0.9) == 1, "the first"
    assert aggregation.least_lasting({1: 0.73, 2: 0.5, 3: 0.74, 4: 0.75}, 0.8, 0.9) == 3, "and all after it"
    assert aggregation.least_lasting({1: 0.73, 2: 0.5}, 0.8, 0.9) is None
    assert bootstrap.least_interval({0: by_k[0]}, full, 0.9) == (None, None)


def test_parts_of_a_set_share_the_draws_of_the_groups_that_they_share():
    parts = {name: np.array(groups) for name, groups in {"one": [7, 7, 3, 9], "other": [9, 4, 7]}.items()}
    drawn = {name: np.concatenate(list(bootstrap.PartDraws(groups).examples())) for name, groups in parts.items()}
    one, other = drawn["one"], drawn["other"]
    assert one.shape == (1000, 4) and (one[:, 0] == one[:, 1]).all()
    assert (one[:, 3] == other[:, 0]).all() and (one[:, 0] == other[:, 2]).all()
    assert abs(np.corrcoef(one[:, 2], other[:, 1])[0, 1]) < 0.1
    assert one.mean() == pytest.approx(1, abs=0.1) and one[:, 2].var() == pytest.approx(1, abs=0.15)
    again = np.concatenate(list(bootstrap.PartDraws(parts["one"], number=1000).examples()))
    assert (again == one).all()


def test_seeds_with_rows_of_their_own_count_the_rows_once():
    """Eight draws, each scored on its own 200 rows: the interval is that of eight independent scores."""
    rng, inside, widths = np.random.default_rng(2), [], []
    groups = [np.arange(200) + 200 * draw for draw in range(8)]
    weights = [np.concatenate(list(bootstrap.PartDraws(names, 400).examples())) for names in groups]
    for _ in range(100):
        values = 100 * rng.normal(0.0, 0.25, (8, 200)) + rng.standard_normal((8, 1))
        by_row = np.stack([(w @ row) / w.sum(1) for w, row in zip(weights, values, strict=True)])
        made = bootstrap.resampled(values.mean(1), by_row, 200, paired=True)
        ci = bootstrap.interval(made.value, made.draws)
        inside.append(ci.low <= 0 <= ci.high)
        widths.append((ci.high - ci.low) / (2 * t.ppf(0.975, 7) * values.mean(1).std(ddof=1) / np.sqrt(8)))
    assert np.mean(inside) >= 0.9 and np.median(widths) == pytest.approx(1, abs=0.1)


def test_a_score_that_no_drawn_row_changes_has_the_interval_of_rows_that_were_not_seen():
    """All of 50 rows right, by three seeds: the exact interval of a proportion (Clopper and Pearson) of 50 in 50."""
    made = bootstrap.resampled(np.full(3, 100.0), np.full((3, 1000), 100.0), 50)
    exact = binomtest(50, 50).proportion_ci(0.95)
    assert (made.ci.low, made.ci.high) == pytest.approx((100 * exact.low, 100 * exact.high))
    equal = bootstrap.resampled(np.zeros(3), np.zeros((3, 1000)), 50, paired=True).ci
    assert (equal.low, equal.high) == pytest.approx((100 * exact.low - 100, 100 - 100 * exact.low))
    far = bootstrap.resampled(np.full(3, -2029.5), np.full((3, 1000), -2029.5), 50).ci
    assert far.low == pytest.approx(far.value) and far.value < far.high < -2000, "R2, which has no least value"
