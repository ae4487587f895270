"""One interval for all differences of a table: against brute force, its error, and the words that are read off it."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from thaw.decision.contrasts import Difference, simultaneous
from thaw.outputs.frame.paired_differences import jointly
from thaw.statistics.bootstrap import RowDraws, resampled

ROWS = 200
DRAWN = np.concatenate(list(RowDraws(ROWS).examples())) / ROWS


def test_the_interval_is_that_of_the_largest_t_of_each_draw_written_out():
    rng = np.random.default_rng(0)
    values, errors = np.array([1.0, -2.0, 0.3]), np.array([0.5, 1.0, 0.2])
    draws = values + errors * (rng.standard_normal((400, 1)) + rng.standard_normal((400, 3)))
    found = simultaneous(values, draws, errors, np.full(3, ROWS))
    largest = sorted(max(abs(draw[k] - values[k]) / errors[k] for k in range(3)) for draw in draws)
    reach = largest[379] + 0.05 * (largest[380] - largest[379])  # the quantile 0.95 lies at place 0.95 * 399
    assert [one.low for one in found] == pytest.approx(values - reach * errors)
    assert [one.high for one in found] == pytest.approx(values + reach * errors)
    inside = np.mean([all(one.low <= draw[k] <= one.high for k, one in enumerate(found)) for draw in draws])
    assert inside == pytest.approx(0.95, abs=0.003)


def test_of_independent_differences_it_is_the_normal_one_of_sidak():
    rng = np.random.default_rng(1)
    found = simultaneous(np.zeros(8), rng.standard_normal((20_000, 8)), np.ones(8), np.full(8, ROWS))
    assert found[0].high == pytest.approx(norm.ppf((1 + 0.95 ** (1 / 8)) / 2), rel=0.02)


def test_of_one_difference_of_seeds_it_is_students():
    scores = np.random.default_rng(2).normal(3, 1, 6)
    (found,) = jointly([resampled(scores, np.repeat(scores[:, None], 1000, axis=1), ROWS, paired=True)])
    half = t.ppf(0.975, 5) * scores.std(ddof=1) / np.sqrt(6)
    assert found.value == pytest.approx(scores.mean()) and found.high - found.value == pytest.approx(half, rel=0.12)


def test_what_no_draw_changes_is_as_wide_as_rows_that_were_not_seen():
    still, moves = resampled(np.zeros(3), np.zeros((3, 1000)), 50, True), scores_of(np.random.default_rng(3), 3)
    alone, other = jointly([still])[0], jointly([still, resampled(*moves, ROWS, paired=True)])[0]
    exact = binomtest(0, 50).proportion_ci(0.9).high  # one-sided at 0.95
    assert (alone.low, alone.high) == (other.low, other.high) == pytest.approx((-100 * exact, 100 * exact))
    assert alone.answer == "open" and jointly([]) == []


def test_a_difference_that_no_draw_defines_has_no_interval_and_spoils_none():
    draws = np.random.default_rng(4).standard_normal((500, 2))
    draws[:, 1] = np.nan
    sound, undefined = simultaneous(np.array([5.0, 1.0]), draws + [5.0, 0.0], np.array([1.0, np.nan]), np.array([9, 9]))
    assert sound.answer == "higher" and np.isnan(undefined.low) and undefined.answer == "open"


@pytest.mark.parametrize(
    "low, high, answer, within_one, above_two",
    [
        (0.1, 0.9, "higher", "within", "lower"),
        (-0.9, -0.1, "lower", "within", "lower"),
        (-0.5, 0.5, "open", "within", "lower"),
        (1.5, 1.9, "higher", "higher", "lower"),
        (-3.0, -1.5, "lower", "lower", "lower"),
        (0.5, 3.0, "higher", "open", "open"),
        (2.5, 3.0, "higher", "higher", "higher"),
    ],
)
def test_the_words_are_read_off_the_interval(low, high, answer, within_one, above_two):
    difference = Difference((low + high) / 2, low, high)
    assert (difference.answer, difference.compared_with(-1.0, 1.0), difference.compared_with(2.0, 2.0)) == (
        answer,
        within_one,
        above_two,
    )


def scores_of(rng, seeds: int, deviation: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return what a strategy that is like all others scores by seed, and on drawn rows."""
    values = 15 * rng.standard_normal((seeds, ROWS)) + 10 * rng.standard_normal((1, ROWS))
    by_seed = deviation * rng.standard_normal((seeds, 1))
    return values.mean(1) + by_seed[:, 0], values @ DRAWN.T + by_seed
