"""What validation chooses when a head is fitted to convergence: a layer, or a fraction of the features."""

import json

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression, Ridge

from test_pooled import CONCAT, LAYERS, spec_of
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.digests import canonical
from thaw.heads import convex
from thaw.heads.convex import Solution
from thaw.papers import feature_selection
from thaw.schema.head import HeadConfig
from thaw.schema.layers import OneLayerConfig
from thaw.schema.phases import PhaseConfig
from thaw.training.head_candidates import HeadCandidate, candidates, choose
from thaw.training.head_fitting import HeadFit
from tiny_corpus import Bench, tiny_corpus

KINDS = ("classification", "regression", "spans")
MEAN = {"pooling": "mean", "separate_pooling": "mean"}
FRACTIONS = [0.1, 0.5, 1.0]


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """A bench in fp32 for each type of task, with pooled states."""
    folder, made = tmp_path_factory.mktemp("candidates"), {}
    for kind in KINDS:
        made[kind] = Bench(folder / kind, "bert", tiny_corpus(folder / kind / "data", kind), kind)
        made[kind].extract("words" if kind == "spans" else "pooled")
    return made


def part(kind: str) -> str:
    return "words" if kind == "spans" else "pooled"


def fitted(bench: Bench, head: dict, kind: str, **phase):
    """Fit in-process; return the fit and what it leaves."""
    spec = spec_of(bench, head, part(kind))
    fit = HeadFit(spec | {"phases": [spec["phases"][0] | phase]}, bench.inputs())
    return fit, fit.run(Stopwatch())


@pytest.mark.parametrize("kind", KINDS)
def test_each_layer_has_the_fit_that_it_has_alone(benches, kind):
    bench = benches[kind]
    _, best = fitted(bench, MEAN | {"layers": {"layer": "best"}}, kind)
    _, lowest = fitted(bench, MEAN | {"layers": {"layer": "lowest", "margin": 0.9}}, kind)
    alone = [fitted(bench, MEAN | {"layers": {"layer": n}}, kind)[1] for n in range(LAYERS + 1)]
    scores = [each.choice_score for each in alone]
    assert best.chosen["layer"] == scores.index(max(scores)) and best.choice_score == max(scores)
    assert lowest.chosen["layer"] == next(n for n, score in enumerate(scores) if score >= max(scores) - 0.9)
    for found in (best, lowest):
        one = alone[found.chosen["layer"]]
        assert found.chosen["l2"] == one.chosen["l2"] and found.choice_score == one.choice_score
        assert found.solution.objective == pytest.approx(one.solution.objective, rel=1e-5)
        assert found.head.combination.read == [found.chosen["layer"]]
        by_layer = pandas.DataFrame(found.history).groupby("layer")["validation"].max()
        assert by_layer.tolist() == scores


def test_a_layer_is_chosen_without_vectors_in_the_store_too(benches):
    bench, head = benches["classification"], MEAN | {"layers": {"layer": "best"}}
    _, stored = fitted(bench, head, "classification")
    tokens = HeadFit(spec_of(bench, head, None), bench.inputs()).run(Stopwatch())
    assert tokens.chosen == stored.chosen and torch.equal(tokens.solution.weight, stored.solution.weight)


def candidate(position: int, l2: float, fraction: float | None = None) -> HeadCandidate:
    return HeadCandidate(Solution(l2, torch.zeros(1, 1), torch.zeros(1), True, 1, 0.0, 0.0), position, fraction)


def test_penalties_are_compared_at_a_wide_gap_and_the_chosen_head_converges():
    phase = PhaseConfig(train=["head"], optimizer="lbfgs", l2=[1e-1, 1e-3])
    generator = torch.Generator().manual_seed(1)
    vectors = torch.randn(300, 60, generator=generator) @ torch.randn(60, 60, generator=generator)  # they correlate
    targets = torch.randint(3, (300,), generator=generator)
    wide = candidates([vectors], targets, 3, phase, lambda *_: 0.5)[-1]
    (least,) = convex.fit_classes(vectors.unsqueeze(0), targets, 3, [1e-3], 1e-9)[0]
    found = wide.converged(vectors, targets, 3, False).solution
    above = [one.objective / least.objective - 1 for one in (wide.solution, found)]
    assert above[0] < 1e-4 and abs(above[1]) < 1e-6 and abs(above[1]) < above[0] / 5


def test_of_equals_the_lowest_layer_the_fewest_features_and_the_strongest_penalty():
    plain, best = OneLayerConfig(), OneLayerConfig(layer="best")
    found = [candidate(1, 1e-2), candidate(0, 1e-3), candidate(0, 1e-2)]
    assert choose(found, [0.5, 0.5, 0.5], best) == 2 and choose(found, [0.6, 0.5, 0.5], best) == 0
    assert choose(found, [None, 0.5, None], best) == 1 and choose(found[1:], [None, None], plain) == 1
    lowest = OneLayerConfig(layer="lowest", margin=0.1)
    assert choose(found, [0.6, 0.3, 0.5], lowest) == 2 and choose(found, [0.7, 0.3, 0.5], lowest) == 0
    found = [candidate(0, 1.0, 1.0), candidate(0, 1e-2, 0.1), candidate(0, 1e-1, 0.1)]
    assert choose(found, [0.5, 0.5, 0.5], plain) == 2


@pytest.mark.parametrize("by", ["group_lasso", "clusters"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_selected_head_is_a_plain_linear_head_on_all_features(benches, kind, by):
    bench = benches[kind]
    fit, found = fitted(bench, CONCAT, kind, select={"by": by, "fractions": FRACTIONS})
    width = fit.head.output.in_features
    used = found.head.output.weight.detach().any(0).nonzero().squeeze(1)
    assert 0 < len(used) <= found.chosen["features"] <= width and found.chosen["fraction"] in FRACTIONS
    assert found.cost["parameters"]["trained"] == fit.head.outputs * (found.chosen["features"] + 1)
    (reader, rows) = fit.reader(fit.head), fit.context.rows
    train = reader(bench.store, "train", rows["train"], fit.context.word_counts("train", rows["train"]))
    targets = torch.as_tensor(train.gold(fit.context.gold("train", rows["train"])))
    subset, strengths = train.values[:, used].unsqueeze(0), [found.chosen["l2"]]
    if kind == "regression":
        again = convex.fit_scores(subset, targets, strengths)[0][0]
    else:
        again = convex.fit_classes(subset, targets, fit.head.outputs, strengths)[0][0]
    assert again.objective == pytest.approx(found.solution.objective, rel=1e-4)
    history = pandas.DataFrame(found.history)
    assert sorted(set(history["fraction"])) == FRACTIONS and len(history) == len(FRACTIONS) * 2
    assert history["validation"].max() == found.choice_score


def test_copies_of_features_are_left_out_by_clusters():
    vectors = torch.randn(120, 40, generator=torch.Generator().manual_seed(0))
    select = {"by": "clusters", "correlation": 0.99, "fractions": [1.0]}
    phase = PhaseConfig(train=["head"], optimizer="lbfgs", l2=[1e-2], select=select)
    targets = (vectors[:, 7] > 0).long()
    (one,) = candidates([torch.cat([vectors, vectors], 1)], targets, 2, phase, lambda position, solution: 0.0)
    assert len(one.features) == 40 and one.solution.weight.shape == (2, 80)


@pytest.mark.parametrize("classes", [3, 0])
@pytest.mark.parametrize("by", ["group_lasso", "clusters"])
def test_which_features_are_kept_is_what_scikit_learn_and_the_objective_say(by, classes):
    """Neurons by the weights of a reference on standardised features; Head2Toe by the norms of the lasso's own columns.

    Features differ in scale by four orders, so that weights of raw features would rank otherwise.
    """
    random = torch.Generator().manual_seed(4)
    plain, scales = torch.randn(300, 24, generator=random), torch.logspace(-2, 2, 24)
    scores = plain @ torch.linspace(0.2, 2, 24)[:, None] * torch.randn(1, max(classes, 1), generator=random)
    scores = scores + 2 * torch.randn(300, max(classes, 1), generator=random)
    targets = scores.argmax(1) if classes else scores.squeeze(1)
    vectors, l2 = (plain * scales + 3)[:, torch.randperm(24, generator=random)], 1e-2
    phase = PhaseConfig(train=["head"], optimizer="lbfgs", l2=[l2], select={"by": by, "fractions": [0.25]})
    (one,) = candidates([vectors], targets, classes, phase, lambda position, solution: 0.0)
    if by == "clusters":
        scaled = ((vectors - vectors.mean(0)) / vectors.std(0, correction=0)).double().numpy()
        if classes:
            reference = LogisticRegression(C=1 / (300 * l2), tol=1e-10, max_iter=5000)
        else:
            reference = Ridge(alpha=300 * l2 / 2)
        weights = np.atleast_2d(reference.fit(scaled, targets.numpy()).coef_)
    else:
        weights = feature_selection.group_lasso(vectors, targets, classes, 0.1).weight.numpy()
    largest = np.argsort(-np.linalg.norm(weights, axis=0))[:6]
    assert one.solution.weight.any(0).nonzero().squeeze(1).tolist() == sorted(largest.tolist())


def test_features_that_do_not_vary_can_be_fitted():
    phase = PhaseConfig(train=["head"], optimizer="lbfgs", l2=[1e-2], select={"by": "clusters"})
    found = candidates([torch.ones(6, 4)], torch.tensor([0, 1] * 3), 2, phase, lambda position, solution: 0.0)
    assert all((one.solution.weight == 0).all() for one in found)


def test_the_records_say_what_was_chosen(benches, tmp_path):
    bench = benches["classification"]
    spec = spec_of(bench, MEAN | {"layers": {"layer": "lowest"}}, "pooled")
    spec["phases"] = [spec["phases"][0] | {"select": {"by": "group_lasso", "fractions": [0.5]}}]
    run = bench.step("fit_heads", spec, tmp_path, "--seeds", 1) / "seed1"
    metrics = json.loads((run / "metrics.json").read_text())
    assert set(metrics["chosen"]) == {"l2", "layer", "fraction", "features"} and metrics["chosen"]["features"] == 16
    assert HeadConfig.of_run(spec, metrics["chosen"]).layers.layer == metrics["chosen"]["layer"]
    weight = load_file(run / "head.safetensors")["output.weight"]
    assert weight.shape[1] == 32 and np.count_nonzero(weight.abs().sum(0)) <= 16
    columns = {"phase", "l2", "layer", "fraction", "features", "step", "loss", "validation_accuracy"}
    assert set(pandas.read_csv(run / "history.csv")) == columns
    assert canonical(metrics["spec"]["phases"]) == canonical(spec["phases"])
