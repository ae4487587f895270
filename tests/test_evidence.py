"""LogME against the evidence as its equation says it, maximised by scipy; divergence against closed forms."""

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.spatial.distance import jensenshannon
from scipy.stats import multivariate_normal

from thaw.probes.logme import log_evidence
from thaw.statistics.word_divergence import jensen_shannon, terms


def largest(vectors: np.ndarray, target: np.ndarray) -> float:
    """Return max over alpha, beta of log N(y; 0, F F' / alpha + I / beta) / N."""

    basis = null_space(np.ones((1, len(target)))).T  # what a free bias leaves
    vectors, target = basis @ vectors, basis @ target

    def cost(logs):
        alpha, beta = np.exp(logs)
        covariance = vectors @ vectors.T / alpha + np.eye(len(target)) / beta
        return -multivariate_normal(np.zeros(len(target)), covariance).logpdf(target) / len(target)

    return -min(minimize(cost, start, method="Nelder-Mead").fun for start in ([0, 0], [2, 2]))


@pytest.mark.parametrize("width", [3, 40])
def test_logme_is_the_largest_evidence(width):
    draw = np.random.default_rng(width)
    vectors = draw.standard_normal((30, width))
    scores = vectors[:, 0] + 0.5 * draw.standard_normal(30)
    assert log_evidence(vectors, scores) == pytest.approx(largest(vectors, scores), abs=1e-3)
    labels = (vectors[:, 1] > 0).astype(np.int64)
    due = np.mean([largest(vectors, (labels == label).astype(float)) for label in (0, 1)])
    assert log_evidence(vectors, labels) == pytest.approx(due, abs=1e-3)


def test_logme_prefers_vectors_that_tell_the_labels():
    draw = np.random.default_rng(1)
    labels = draw.integers(0, 3, 200)
    noise = draw.standard_normal((200, 8))
    telling = noise + 2 * np.eye(8)[labels]
    assert log_evidence(telling, labels) > log_evidence(noise, labels) + 0.1


def test_divergence_of_terms():
    one, two = terms(["A cat, a dog."]), terms(["the CAT sat"])
    assert one == ["a", "cat", ",", "a", "dog", "."]
    assert jensen_shannon(one, one) == 0 and jensen_shannon(one, ["x"]) == 1
    known = ["a", "cat", ",", "dog", ".", "the", "sat"]
    shares = [[sample.count(term) for term in known] for sample in (one, two)]
    assert jensen_shannon(one, two) == pytest.approx(jensenshannon(*shares, base=2) ** 2)
