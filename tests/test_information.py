"""Estimates of mutual information where it is known, and the probe that makes them."""

import json
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import torch
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score

from test_probes import spec_of
from thaw.core.errors import UserError
from thaw.probes.information_estimates import (
    clusters,
    edge_weights,
    entropy,
    estimate,
    hashed,
    projected,
    shared,
    standardised,
)
from thaw.probes.mutual_information import Sample, mutual_information, surprisal
from thaw.probes.reading import Reading
from tiny_corpus import small_bert

WIDTHS = [1.0, 1.5, 2.0, 2.5, 3.0]
NATS = np.log(2)


def edge(first, second, seed=0, widths=WIDTHS, dimensions=4, draws=4):
    """Return EDGE of vectors [N, d] and labels [N], or of vectors and vectors."""
    generator, continuous = np.random.default_rng(seed), second.ndim == 2
    cells, labels = [], []
    for _ in range(draws):
        axes = projected(first, dimensions, generator)
        for width in widths:
            cells.append(hashed(axes, width, generator))
            labels.append(hashed(standardised(second), width, generator) if continuous else second)
    d = axes.shape[1] + (second.shape[1] if continuous else 0)
    weights = np.tile(edge_weights(widths, len(first), d), draws) / draws
    return estimate(cells, labels, weights, 20, generator)


def kmeans(vectors, labels, numbers=(8, 16, 32), seed=0):
    """Return the estimate of k-means."""
    cells = clusters(vectors, numbers, 16, seed)
    equal = np.full(len(cells), 1 / len(cells))
    return estimate(cells, [labels] * len(cells), equal, 20, np.random.default_rng(seed))


def mixture(distance: float) -> float:
    """Return I(X; Y) in bits for a fair label and X normal around 0 or the distance, by the trapezoid rule."""
    x = np.linspace(-10, 10 + distance, 20001)
    one, two = (np.exp(-((x - mean) ** 2) / 2) / np.sqrt(2 * np.pi) for mean in (0, distance))
    both = (one + two) / 2
    return float(np.trapezoid((one * np.log2(one / both) + two * np.log2(two / both)) / 2, x))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_gaussian_pairs_share_what_their_correlation_says(correlation):
    draw, known = np.random.default_rng(1), -np.log2(1 - correlation**2) / 2
    first = draw.standard_normal((4000, 1))
    second = correlation * first + np.sqrt(1 - correlation**2) * draw.standard_normal((4000, 1))
    found = edge(first, second, widths=[0.4, 0.6, 0.8, 1.0, 1.5], draws=2)
    assert found.bits == pytest.approx(known, abs=0.05)


def test_classes_that_overlap_share_what_the_integral_says():
    draw = np.random.default_rng(2)
    labels = draw.integers(0, 2, 2000)
    vectors = draw.standard_normal((2000, 1)) + 2 * labels[:, None]
    known = mixture(2.0)
    assert edge(vectors, labels).bits == pytest.approx(known, abs=0.06)
    assert kmeans(vectors, labels).bits == pytest.approx(known, abs=0.04)


def test_a_label_copied_with_noise_shares_one_bit_less_the_noise():
    """A vector that is the label, wrong in one of ten: 1 - H(0.1) = 0.531 bit."""
    draw = np.random.default_rng(3)
    labels = draw.integers(0, 2, 4000)
    copied = np.where(draw.random(4000) < 0.1, 1 - labels, labels).astype(float)
    vectors = np.stack([copied, copied], 1) * 10 + 0.01 * draw.standard_normal((4000, 2))
    known = 1 + 0.1 * np.log2(0.1) + 0.9 * np.log2(0.9)
    assert edge(vectors, labels).bits == pytest.approx(known, abs=0.04)
    assert kmeans(vectors, labels).bits == pytest.approx(known, abs=0.04)


@pytest.mark.parametrize("width", [1, 4, 64])
def test_random_labels_and_random_vectors_share_nothing(width):
    draw = np.random.default_rng(width)
    labels, vectors = draw.integers(0, 3, 600), draw.standard_normal((600, width))
    vectors[:, 0] += 3 * labels
    for found in (edge(vectors, draw.permutation(labels)), edge(draw.standard_normal((600, width)), labels)):
        assert abs(found.bits) < 1.5 * found.noise and found.noise < 0.2
    for found in (kmeans(vectors, draw.permutation(labels)), kmeans(draw.standard_normal((600, width)), labels)):
        assert abs(found.bits) < 1.5 * found.noise and found.noise < 0.05


def test_counts_are_those_of_scikit_learn_and_chance_is_its_own():
    draw = np.random.default_rng(4)
    cells, labels = draw.integers(0, 30, 300), draw.integers(0, 4, 300)
    labels[:150] = cells[:150] % 4
    assert shared(cells, labels) == pytest.approx(mutual_info_score(cells, labels) / NATS)
    found = estimate([cells], [labels], np.ones(1), 400, draw)
    due = adjusted_mutual_info_score(cells, labels, average_method="min") * entropy(labels)
    assert found.bits == pytest.approx(due, abs=0.01)


def test_weights_of_widths_tend_to_those_of_theorem_4_1():
    """With so many vectors that variance is nothing, powers of the width are cancelled."""
    weights, widths = edge_weights([1.0, 2.0, 3.0, 4.0], 10**12, 2), np.arange(1.0, 5.0)
    assert weights.sum() == pytest.approx(1)
    assert [float(weights @ widths**power) for power in (1, 2)] == pytest.approx([0, 0], abs=1e-6)
    assert edge_weights([0.1, 0.2, 0.3], 1, 2) == pytest.approx([1 / 3] * 3, abs=0.01), "else all weigh the same"


def test_a_grid_is_as_wide_as_it_says_and_axes_that_do_not_vary_hurt_nobody():
    vectors = np.array([[0.0, 5.0], [0.9, 5.0], [1.1, 5.0], [3.0, 5.0]])
    unmoved = SimpleNamespace(uniform=lambda low, high, count: np.zeros(count))
    assert hashed(vectors, 1.0, unmoved).tolist() == [0, 0, 1, 2]
    assert np.isfinite(standardised(vectors)).all() and not standardised(vectors)[:, 1].any()


def test_85_percent_on_balanced_labels_prove_0_39_bit():
    """A probe that is as sure as it is right: H(Y) less its cross-entropy is 1 - H(0.85)."""
    targets, wrong = np.tile([0, 1], 100), np.arange(200) % 20 < 3
    said = np.where(wrong, 1 - targets, targets)
    logit = torch.full((200, 2), float(np.log(0.15)))
    logit[torch.arange(200), torch.from_numpy(said)] = float(np.log(0.85))
    solution = SimpleNamespace(logits=lambda vectors: logit)
    bits = surprisal(None, targets, solution, 10**9)
    assert 1 - bits.mean().item() == pytest.approx(0.39, abs=0.001)


bench = pytest.fixture(scope="module")(small_bert)


def test_the_records_of_the_probe(bench, tmp_path):
    spec = spec_of(bench, "mutual_information", rows=20)
    out = bench.step("probe", spec, tmp_path / "out")
    metrics, table = json.loads((out / "metrics.json").read_text()), pandas.read_csv(out / "layers.csv")
    assert metrics["main"] == "bound" and len(metrics["layers"]) == 2 * 4
    assert len(table) == 2 * 4 * 2 * 7 and set(table["estimator"]) == {"edge", "kmeans", "with_last"}
    for end in metrics["layers"]:
        test = end["scores"]["test"]
        assert test["entropy"] == 1.0 and test["bound"] <= 1.0
        own = table.query(f"layer == {end['layer']} and seed == {end['seed']} and split == 'test'")
        values = own[own["estimator"] == "kmeans"]["bits"]
        assert test["kmeans"] == pytest.approx(values.mean()) and test["kmeans_highest"] == pytest.approx(values.max())
    last = metrics["layers"][3]["scores"]["test"]
    assert last["with_last"] == pytest.approx(last["with_last_plain"]), "a layer shares all that it has with itself"
    assert last["cka_with_last"] == pytest.approx(1)
    again = bench.step("probe", spec, tmp_path / "again")
    assert all((again / name).read_bytes() == (out / name).read_bytes() for name in ("metrics.json", "layers.csv"))


def test_every_layer_is_measured_on_the_same_rows_and_axes(bench):
    torch.set_num_threads(1)
    spec = spec_of(bench, "mutual_information", rows=20)
    reading = Reading(spec, bench.inputs())
    for split in reading.splits.values():
        split.layers = [split.layers[0]] * len(split.layers)
    _, ends = mutual_information(reading, 1)
    scores = [{key: value for key, value in end["scores"]["test"].items() if "last" not in key} for end in ends]
    assert all(score == scores[0] for score in scores)


def test_a_split_of_one_label_is_refused(bench):
    reading = Reading(spec_of(bench, "mutual_information"), bench.inputs())
    reading.splits["test"].gold = np.zeros(8, dtype=int)
    with pytest.raises(UserError, match="all rows of test have the label 'no'; mutual information needs two"):
        Sample.of(reading, "test", 1)
