"""Centre of gravity, expected layer and divergence, against what Tenney et al. 2019 printed and against scipy."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import entropy

from thaw.statistics.layer_location import centre_of_gravity, deltas, divergence, expected_layer

TABLES = yaml.safe_load((Path(__file__).parents[1] / "config/reference/tenney2019.yaml").read_text())["tables"]
PRINTED = {name: row["values"] for name, row in TABLES["figures_1_and_2"]["rows"].items()}


@pytest.mark.parametrize("task", PRINTED)
def test_numbers_of_the_paper(task):
    first, last, expected, centre, k_delta, k_s = PRINTED[task]
    scores = TABLES["scores_bert_large"]["rows"][task]["values"]
    weights = TABLES["weights_bert_large"]["rows"][task]["values"]
    assert [scores[0], scores[-1]] == pytest.approx([first, last], abs=0.051)
    assert expected_layer(scores) == pytest.approx(expected, abs=0.006)
    assert centre_of_gravity(weights) == pytest.approx(centre, abs=0.006)
    assert divergence(deltas(scores)) == pytest.approx(k_delta, abs=0.006)
    assert divergence(weights) == pytest.approx(k_s, abs=0.006)


def test_divergence_is_that_of_scipy():
    shares = np.random.default_rng(0).dirichlet(np.ones(7))
    assert divergence(shares) == pytest.approx(entropy(shares, np.full(7, 1 / 7), base=2))
    assert divergence([1, 0, 0, 0]) == 2.0 and divergence([3, 3]) == 0.0
    assert divergence([0.5, -0.2, 0.5]) == pytest.approx(entropy([0.5, 0, 0.5], [1 / 3] * 3, base=2))
    assert divergence([0.0, -1.0]) is None


def test_what_becomes_of_a_layer_that_takes_away():
    scores = [0.5, 0.7, 0.6, 0.9]
    assert deltas(scores) == pytest.approx([0.2, -0.1, 0.3])
    assert deltas(scores, "zero") == pytest.approx([0.2, 0, 0.3])
    assert deltas(scores, "running_max") == pytest.approx([0.2, 0, 0.2])
    assert expected_layer(scores) == pytest.approx((0.2 - 2 * 0.1 + 3 * 0.3) / 0.4)
    assert expected_layer(scores, "zero") == pytest.approx((0.2 + 3 * 0.3) / 0.5)
    assert expected_layer(scores, "running_max") == pytest.approx((0.2 + 3 * 0.2) / 0.4)
    assert expected_layer([0.5, 0.4]) is None and expected_layer([0.5, 0.5, 0.5]) is None
