"""Linear heads fitted to convergence, against scikit-learn and against what an optimum must satisfy."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional

from thaw.features.batch import Batch
from thaw.heads import convex, descent
from thaw.heads.base import balanced_weights
from thaw.heads.convex import Scale
from thaw.heads.linear import LinearHead
from thaw.schema.head import HeadConfig

STRENGTHS = [1e-3, 1e-2, 1.0]


def problem(classes, rows=600, width=24, seed=0):
    """Correlated features of very different scales, and noisy linear classes of them."""
    random = torch.Generator().manual_seed(seed)
    mixing = torch.randn(width, width, generator=random) * torch.logspace(1, -2, width)
    vectors = torch.randn(rows, width, generator=random) @ mixing.T + 5 * torch.randn(width, generator=random)
    truth = torch.randn(classes, width, generator=random)
    scaled = (vectors - vectors.mean(0)) / vectors.std(0)
    targets = (scaled @ truth.T / 3 + torch.randn(rows, classes, generator=random)).argmax(1)
    return vectors, targets


def fit_classes(vectors, targets, classes, strengths, **options):
    """Fit a single layer, a batch of one."""
    return convex.fit_classes(vectors.unsqueeze(0), targets, classes, strengths, **options)[0]


def fit_scores(vectors, targets, strengths):
    """Fit a single layer, a batch of one."""
    return convex.fit_scores(vectors.unsqueeze(0), targets, strengths)[0]


def standardised(solution, vectors):
    """The weight and bias that a solution has on standardised features, and these features, as float64 tensors."""
    scale = Scale.of(vectors)
    weight = solution.weight.double() * scale.deviation
    bias = solution.bias.double() + solution.weight.double() @ scale.mean
    return weight, bias, (vectors.double() - scale.mean) / scale.deviation


def objective(weight, bias, scaled, targets, l2, of_classes=None):
    return functional.cross_entropy(scaled @ weight.T + bias, targets, of_classes) + l2 / 2 * weight.square().sum()


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_classes_agree_with_scikit_learn(classes, balanced):
    vectors, targets = problem(classes)
    new, _ = problem(classes, rows=3000)
    named, of_classes = None, None
    if balanced:  # of the first class one row in ten is left
        kept = (targets > 0) | (torch.arange(len(targets)) % 10 == 0)
        vectors, targets, named = vectors[kept], targets[kept], "balanced"
        of_classes = torch.tensor(compute_class_weight(named, classes=np.arange(classes), y=targets.numpy()))
        assert balanced_weights(targets, classes).tolist() == pytest.approx(of_classes.tolist())
    for solution in fit_classes(vectors, targets, classes, STRENGTHS, balanced=balanced):
        weight, bias, scaled = standardised(solution, vectors)
        halved = 2 if classes == 2 else 1  # scikit-learn has a single row for two classes
        strength = halved / (len(vectors) * solution.l2)
        reference = LogisticRegression(C=strength, tol=1e-8, max_iter=5000, class_weight=named)
        reference.fit(scaled.numpy(), targets.numpy())
        rows, offsets = torch.tensor(reference.coef_), torch.tensor(reference.intercept_)
        if classes == 2:
            rows, offsets = torch.cat([-rows, rows]) / 2, torch.cat([-offsets, offsets]) / 2
        ours = objective(weight, bias, scaled, targets, solution.l2, of_classes)
        assert solution.converged
        theirs = objective(rows, offsets, scaled, targets, solution.l2, of_classes)
        assert ours == pytest.approx(theirs.item(), rel=1e-4)
        assert solution.objective == pytest.approx(ours.item(), rel=1e-4)
        theirs = (new.double() - Scale.of(vectors).mean) / Scale.of(vectors).deviation @ rows.T + offsets
        agreement = (theirs.argmax(1) == solution.logits(new).argmax(1)).double().mean()
        assert agreement > 0.998


def test_scores_agree_with_scikit_learn():
    vectors, _ = problem(2, width=100)
    targets = vectors[:, 0] * 0.01 + torch.randn(len(vectors), generator=torch.Generator().manual_seed(1))
    for solution in fit_scores(vectors, targets, STRENGTHS):
        weight, bias, scaled = standardised(solution, vectors)
        reference = Ridge(alpha=solution.l2 * len(vectors) / 2, solver="cholesky")
        reference.fit(scaled.numpy(), targets.double().numpy())
        assert weight.flatten().numpy() == pytest.approx(reference.coef_, abs=1e-5)
        assert bias.item() == pytest.approx(reference.intercept_, abs=1e-5)
        predicted = solution.logits(vectors).flatten().numpy()
        assert predicted == pytest.approx(reference.predict(scaled.numpy()), abs=1e-4)
        loss = np.mean((predicted - targets.numpy()) ** 2) + solution.l2 / 2 * weight.square().sum().item()
        assert solution.objective == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("cache", [0, 2**24])
def test_a_layer_alone_is_as_it_is_among_others(cache, monkeypatch):
    monkeypatch.setattr(convex, "CACHE", cache)
    vectors, targets = problem(3)
    layers = torch.stack([vectors, vectors.flip(1) ** 2, vectors.roll(1, 1) * targets.unsqueeze(1)])
    for together, layer in zip(convex.fit_classes(layers, targets, 3, STRENGTHS), layers, strict=True):
        for one, other in zip(together, fit_classes(layer, targets, 3, STRENGTHS), strict=True):
            assert one.converged and one.objective == pytest.approx(other.objective, rel=1e-5)
            assert one.logits(layer) == pytest.approx(other.logits(layer), abs=2e-2)
            assert cache or torch.equal(one.weight, other.weight)


def test_a_wider_gap_is_kept_and_takes_fewer_steps():
    vectors, targets = problem(4, width=60)
    least = fit_classes(vectors, targets, 4, [1e-4])[0]
    near = fit_classes(vectors, targets, 4, [1e-1, 1e-2, 1e-3, 1e-4], gap=3e-4)[-1]
    assert near.converged and least.objective < near.objective < (1 + 1e-3) * least.objective
    assert near.steps < least.steps


@pytest.mark.parametrize(("rows", "exact"), [(400, False), (100, True)])
def test_many_features_of_more_vectors_are_fitted_less_closely(rows, exact, monkeypatch):
    vectors, targets = problem(4, rows=rows, width=120)
    close = fit_classes(vectors, targets, 4, [1e-1, 1e-2, 1e-3])
    monkeypatch.setattr(convex, "WIDE", 119)
    fitted = fit_classes(vectors, targets, 4, [1e-1, 1e-2, 1e-3])
    assert all(one.converged for one in fitted)
    assert [one.objective for one in fitted] == pytest.approx([one.objective for one in close], rel=5e-3)
    assert exact == (fitted[-1].objective == pytest.approx(close[-1].objective, rel=1e-5))
    steps, of_close = (sum(one.steps for one in ones) for ones in (fitted, close))
    assert exact or steps < 0.7 * of_close
    right, of_close = (
        (ones[-1].logits(vectors).argmax(1) == targets).double().mean().item() for ones in (fitted, close)
    )
    assert right == pytest.approx(of_close, abs=1e-2)


@pytest.mark.parametrize("classes", [2, 4])
def test_more_features_than_vectors_agree_with_scikit_learn(classes, monkeypatch):
    monkeypatch.setattr(convex, "WIDE", 64)
    vectors, targets = problem(classes, rows=90, width=200)
    new, _ = problem(classes, rows=500, width=200)
    for solution in fit_classes(vectors, targets, classes, STRENGTHS):
        weight, bias, scaled = standardised(solution, vectors)
        halved = 2 if classes == 2 else 1
        reference = LogisticRegression(C=halved / (len(vectors) * solution.l2), tol=1e-10, max_iter=20_000)
        reference.fit(scaled.numpy(), targets.numpy())
        theirs = torch.tensor(reference.decision_function(Scale.of(vectors).apply(new, torch.float64).numpy()))
        ours = solution.logits(new).double()
        ours = ours[:, 1] - ours[:, 0] if classes == 2 else ours - ours.mean(1, keepdim=True)
        theirs = theirs if classes == 2 else theirs - theirs.mean(1, keepdim=True)
        assert solution.converged and ours.numpy() == pytest.approx(
            theirs.numpy(), abs=2e-2 * theirs.abs().max().item()
        )
        assert solution.objective == pytest.approx(
            objective(weight, bias, scaled, targets, solution.l2).item(), rel=1e-4
        )


def both_ways(fit, monkeypatch):
    """Return what a fit gives by way of the Gram matrix, and by way of the covariance."""
    monkeypatch.setattr(convex, "WIDE", 64)
    wide = fit()
    monkeypatch.setattr(convex, "WIDE", 10**6)
    return zip(wide, fit(), strict=True)


def test_gram_matrix_and_covariance_give_the_same_classes(monkeypatch):
    vectors, targets = problem(3, rows=80, width=300)
    vectors[:, 7] = 4.2  # a constant
    vectors[3] = vectors[4]  # a rank below the number of vectors
    for wide, narrow in both_ways(lambda: fit_classes(vectors, targets, 3, STRENGTHS, gap=1e-8), monkeypatch):
        assert wide.objective == pytest.approx(narrow.objective, rel=1e-6) and wide.l2 == narrow.l2
        assert wide.logits(vectors).numpy() == pytest.approx(narrow.logits(vectors).numpy(), abs=1e-2)
        assert wide.weight.numpy() == pytest.approx(narrow.weight.numpy(), abs=1e-3 * narrow.weight.abs().max().item())
        assert (wide.weight[:, 7] == 0).all()


def test_gram_matrix_and_covariance_give_the_same_scores(monkeypatch):
    vectors, targets = problem(2, rows=80, width=300)
    targets = targets + torch.randn(len(targets), generator=torch.Generator().manual_seed(1))
    for wide, narrow in both_ways(lambda: fit_scores(vectors, targets, [1e-3, *STRENGTHS, 1e2]), monkeypatch):
        assert wide.objective == pytest.approx(narrow.objective, rel=1e-8)
        assert wide.weight.numpy() == pytest.approx(narrow.weight.numpy(), abs=1e-6 * narrow.weight.abs().max().item())
        assert wide.bias.item() == pytest.approx(narrow.bias.item(), abs=1e-5)
        scaled = Scale.of(vectors).apply(vectors, torch.float64)
        reference = Ridge(alpha=len(vectors) * wide.l2 / 2, solver="svd").fit(scaled.numpy(), targets.numpy())
        assert wide.logits(vectors).squeeze(1).numpy() == pytest.approx(reference.predict(scaled.numpy()), abs=1e-4)
    assert torch.isfinite(fit_scores(vectors, targets, [0.0])[0].weight).all()


def test_the_scale_of_features_makes_no_difference():
    vectors, targets = problem(3)
    factors = torch.logspace(-3, 3, vectors.shape[1])
    plain = fit_classes(vectors, targets, 3, [1e-2])[0].logits(vectors)
    scaled = fit_classes(vectors * factors - 7, targets, 3, [1e-2])[0].logits(vectors * factors - 7)
    assert scaled.numpy() == pytest.approx(plain.numpy(), abs=2e-2)


def test_same_problem_same_bits_and_the_order_given():
    vectors, targets = problem(3)
    first, second = (fit_classes(vectors, targets, 3, strengths) for strengths in (STRENGTHS, STRENGTHS[::-1]))
    assert [solution.l2 for solution in first] == STRENGTHS
    for one, other in zip(first, second[::-1], strict=True):
        assert torch.equal(one.weight, other.weight) and torch.equal(one.bias, other.bias)


@pytest.mark.parametrize(("rows", "threads"), [(100, 1), (40_000, 2)])
def test_little_work_is_done_in_one_thread_and_the_others_are_given_back(rows, threads, monkeypatch):
    seen, called = set(), descent.MeanCrossEntropy.__call__

    def watched(self, point):
        seen.add(torch.get_num_threads())
        return called(self, point)

    monkeypatch.setattr(descent.MeanCrossEntropy, "__call__", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        fit_classes(*problem(20, rows), 20, [1e-1])
        assert (seen, torch.get_num_threads()) == ({threads}, 2)
    finally:
        torch.set_num_threads(before)


def test_degenerate_problems_are_solved():
    vectors, targets = problem(2)
    vectors[:, 3] = 4.2  # a constant
    vectors[:, 5] = vectors[:, 4]  # collinear
    for solution in fit_classes(vectors, targets, 5, [0.0, 1e-2]):  # three classes without a vector
        assert torch.isfinite(solution.weight).all() and solution.logits(vectors).argmax(1).max() < 2
        assert solution.weight[:, 3].abs().max() < 1e-6
    assert torch.isfinite(fit_scores(vectors, targets.float(), [0.0])[0].weight).all()


def test_too_few_iterations_are_told(monkeypatch):
    monkeypatch.setattr(descent, "STEPS", 1)
    vectors, targets = problem(3)
    assert not fit_classes(vectors, targets, 3, [1e-4])[0].converged


@pytest.mark.parametrize("task_type", ["classification", "pair_regression", "spans"])
def test_a_solution_is_a_plain_linear_head(task_type):
    vectors, targets = problem(3)
    if task_type == "pair_regression":
        solution, outputs = fit_scores(vectors, targets.float(), [1e-2])[0], 1
    else:
        solution, outputs = fit_classes(vectors, targets, 3, [1e-2])[0], 3
    head = LinearHead(HeadConfig(kind="linear"), vectors.shape[1], outputs, task_type).eval()
    head.load_state_dict(solution.state())
    ones = torch.ones(len(vectors), 1, dtype=torch.long)
    batch = Batch(ones, ones.bool(), None, ones - 1 if task_type == "spans" else None, torch.arange(len(vectors)))
    logits = head(vectors.unsqueeze(1), batch).reshape(len(vectors), -1)
    assert logits.detach().numpy() == pytest.approx(solution.logits(vectors).numpy(), rel=1e-5, abs=1e-5)
    assert np.isfinite(logits.detach().numpy()).all()
