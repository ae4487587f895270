"""Selected features, against closed forms, scipy, scikit-learn, and features that were planted."""

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.linear_model import MultiTaskLasso

from thaw.heads.convex import Scale
from thaw.papers import feature_selection
from thaw.papers.feature_selection import cluster_representatives, group_lasso
from thaw.training.head_candidates import most_relevant


@pytest.fixture(autouse=True)
def small_gap(monkeypatch):
    monkeypatch.setattr(feature_selection, "GAP", 1e-7)


def planted(rows=200, width=400, relevant=12, classes=3, seed=0):
    """Standard normal features of which the classes follow from a few, and which."""
    random = torch.Generator().manual_seed(seed)
    vectors = torch.randn(rows, width, generator=random)
    places = torch.randperm(width, generator=random)[:relevant].sort().values
    truth = torch.eye(classes).repeat(relevant, 1)[:relevant]
    return vectors, (vectors[:, places] @ truth).argmax(1), places


def orthogonal(rows=64, width=8):
    """Features of mean 0 and deviation 1 without correlation: columns of a Hadamard matrix."""
    matrix = torch.ones(1, 1)
    while len(matrix) < rows:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix[:, 1 : width + 1]


def test_scores_of_orthogonal_features_are_soft_thresholds():
    """The mean squared error splits by feature: w = soft(m, penalty / 2) with m the mean product with the target."""
    vectors = orthogonal()
    targets = vectors @ torch.linspace(-1, 1, 8) + 3.0
    fitted = group_lasso(vectors, targets, 0, 0.5)
    moments = (vectors.double() * (targets.double() - 3).unsqueeze(1)).mean(0)
    assert fitted.penalty == pytest.approx(2 * moments.abs().max().item() * 0.5, rel=1e-6)
    expected = moments.sign() * (moments.abs() - fitted.penalty / 2).clamp(min=0)
    assert fitted.weight[0].numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    assert fitted.bias.item() == pytest.approx(3.0, abs=1e-5)
    still = 2 * moments.abs()  # without weights the gradient is that of no features at all
    expected_relevance = torch.where(expected == 0, still, expected.abs() + fitted.penalty)
    assert fitted.relevance.numpy() == pytest.approx(expected_relevance.numpy(), abs=1e-5)


def test_scores_agree_with_scikit_learn():
    vectors, _, _ = planted(rows=60, width=100)
    targets = vectors[:, :5].sum(1) + 0.1 * torch.randn(60, generator=torch.Generator().manual_seed(1))
    fitted = group_lasso(vectors, targets, 0, 0.1)
    scaled = Scale.of(vectors).apply(vectors).double().numpy()
    reference = MultiTaskLasso(alpha=fitted.penalty / 2, tol=1e-10, max_iter=100_000)
    reference.fit(scaled, targets.double().numpy()[:, None])
    assert fitted.gap <= 1e-7
    assert fitted.weight.numpy() == pytest.approx(reference.coef_, abs=1e-3)


@pytest.mark.parametrize("classes", [2, 5])
def test_classes_satisfy_the_conditions_of_an_optimum(classes):
    """Gradient + penalty * direction = 0 where there are weights; elsewhere the gradient is at most the penalty."""
    vectors, targets, _ = planted(classes=classes)
    fitted = group_lasso(vectors, targets, classes, 0.1)
    scaled = Scale.of(vectors).apply(vectors).double()
    weight, bias = fitted.weight.clone().requires_grad_(), fitted.bias.clone().requires_grad_()
    torch.nn.functional.cross_entropy(scaled @ weight.T + bias, targets).backward()
    norms, active = fitted.weight.norm(dim=0), fitted.weight.any(0)
    direction = fitted.weight[:, active] / norms[active]
    assert 0 < active.sum() < 400
    assert (weight.grad[:, active] + fitted.penalty * direction).abs().max() < 2e-3 * fitted.penalty
    assert weight.grad[:, ~active].norm(dim=0).max() <= (1 + 1e-3) * fitted.penalty
    assert bias.grad.abs().max() < 1e-4
    ranks = fitted.relevance.argsort(descending=True)
    assert active[ranks[: int(active.sum())]].all(), "features without weights come after those with some"


def test_the_gap_is_no_less_than_what_the_objective_can_fall(monkeypatch):
    vectors, targets, _ = planted()
    exact = group_lasso(vectors, targets, 3, 0.1)
    scaled = Scale.of(vectors).apply(vectors).double()

    def objective(fitted):
        loss = torch.nn.functional.cross_entropy(scaled @ fitted.weight.T + fitted.bias, targets)
        return (loss + exact.penalty * fitted.weight.norm(dim=0).sum()).item()

    start = torch.nn.functional.cross_entropy(torch.bincount(targets).double().log().expand(200, -1), targets).item()
    monkeypatch.setattr(feature_selection, "GAP", 0.05)
    rough = group_lasso(vectors, targets, 3, 0.1)
    assert 0 < objective(rough) - objective(exact) <= rough.gap * start <= 0.05 * start


def test_scale_shift_and_order_of_features_change_no_relevance():
    vectors, targets, _ = planted(width=60)
    plain = group_lasso(vectors, targets, 3, 0.1).relevance
    order = torch.randperm(60, generator=torch.Generator().manual_seed(5))
    changed = (vectors * torch.logspace(-2, 2, 60) - 7)[:, order]
    assert group_lasso(changed, targets, 3, 0.1).relevance.numpy() == pytest.approx(plain[order].numpy(), abs=1e-3)
    again = group_lasso(vectors, targets, 3, 0.1).relevance
    assert torch.equal(again, plain)


def test_degenerate_problems_have_a_relevance():
    vectors, targets, _ = planted(width=30)
    vectors[:, 4] = 4.2
    relevance = group_lasso(vectors, targets, 5, 0.1).relevance  # two classes without a vector
    assert torch.isfinite(relevance).all() and relevance[4] == 0
    assert (group_lasso(vectors, torch.ones(200), 0, 0.1).relevance < 1e-6).all()  # nothing to explain


def test_clusters_are_those_of_scipy_and_have_their_most_central_feature():
    random = torch.Generator().manual_seed(0)
    sources = torch.randn(300, 6, generator=random)
    signs = torch.tensor([1.0, -1.0]).repeat(15)
    vectors = sources.repeat(1, 5) * signs + 0.5 * torch.randn(300, 30, generator=random) * torch.linspace(0.5, 2, 30)
    correlations = np.abs(np.corrcoef(vectors.double().numpy().T))
    for least in (0.95, 0.7, 0.4):
        chosen = cluster_representatives(vectors, least)
        upper = np.triu_indices(30, 1)
        clusters = fcluster(linkage(1 - correlations[upper], "average"), 1 - least, "distance")
        assert sorted(clusters[chosen]) == sorted(set(clusters))
        for feature in chosen.tolist():
            members = np.flatnonzero(clusters == clusters[feature])
            assert correlations[feature, members].sum() >= correlations[np.ix_(members, members)].sum(1).max() - 1e-4
    assert len(cluster_representatives(vectors, 0.4)) == 6, "a feature and its negative are one cluster"


def test_copies_are_one_cluster_and_constants_none():
    vectors, _, _ = planted(width=10, relevant=3)
    copies = torch.cat([vectors, -3 * vectors + 1, torch.full((200, 2), 4.2)], 1)
    chosen = cluster_representatives(copies, 0.99)
    assert sorted((chosen % 10).tolist()) == list(range(10)) and chosen.max() < 20
    assert chosen.tolist() == sorted(chosen.tolist())
    assert cluster_representatives(torch.full((5, 3), 1.0), 0.5).tolist() == [0]


def test_many_features_are_clustered_part_by_part(monkeypatch):
    vectors, _, _ = planted(width=10, relevant=3)
    copies = torch.cat([vectors, -3 * vectors + 1, vectors + 2], 1)
    for at_once, count in ((25, 10), (10, 30)):
        monkeypatch.setattr(feature_selection, "AT_ONCE", at_once)
        chosen = cluster_representatives(copies, 0.99)
        assert sorted(set((chosen % 10).tolist())) == list(range(10)), "every source is kept"
        assert len(chosen) == count


def test_a_fraction_has_the_most_relevant_and_at_least_one():
    relevance = torch.tensor([0.1, 0.5, 0.5, 0.0, 0.9])
    assert most_relevant(relevance, 0.4).tolist() == [1, 4] and most_relevant(relevance, 1.0).tolist() == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert most_relevant(relevance, 0.01).tolist() == [4]
