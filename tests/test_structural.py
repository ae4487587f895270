"""Structural probes: distances, depths and their scores against scipy, and spaces that hold a tree exactly."""

import json

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from scipy.stats import spearmanr

from thaw.papers.structural_probe import (
    Space,
    TreeReading,
    Trees,
    _of_known,
    attachment,
    correlation,
    losses,
    measured,
    root_accuracy,
    spanning_tree,
    tree_depths,
    tree_distances,
)
from tiny_trees import TreeBench, tree_corpus


def random_heads(draw, count: int) -> list[int]:
    order, heads = draw.permutation(count), [-1] * count
    for place in range(1, count):
        heads[order[place]] = int(order[draw.integers(place)])
    return heads


def tree_of(heads) -> tuple[np.ndarray, np.ndarray]:
    """Distances and depths by scipy's shortest paths."""
    arcs = np.zeros((len(heads), len(heads)))
    for word, head in enumerate(heads):
        if head >= 0:
            arcs[word, head] = 1
    paths = shortest_path(arcs, directed=False)
    return paths, paths[heads.index(-1)]


@pytest.mark.parametrize("seed", range(4))
def test_trees_and_their_scores_are_those_of_scipy(seed):
    draw = np.random.default_rng(seed)
    heads = random_heads(draw, 12)
    truth, depths = tree_of(heads)
    assert np.array_equal(tree_distances(heads), truth) and np.array_equal(tree_depths(heads), depths)
    found = draw.random((12, 12)) + 0.1
    found = found + found.T
    np.fill_diagonal(found, 0)
    words = [word for word in range(12) if word != 5]
    mine, theirs = spanning_tree(found, words), minimum_spanning_tree(found[np.ix_(words, words)]).tocoo()
    due = {tuple(sorted((words[a], words[b]))) for a, b in zip(theirs.row, theirs.col, strict=True)}
    assert mine == due
    every = list(range(12))
    true = {tuple(sorted((word, head))) for word, head in enumerate(heads) if head >= 0}
    assert spanning_tree(truth, every) == true
    assert attachment([found], [truth], [every]) == pytest.approx(len(spanning_tree(found, every) & true) / 11)
    each = [spearmanr(found[word], truth[word]).statistic for word in range(12)]
    assert correlation([found], [truth]) == pytest.approx(np.mean(each))
    assert correlation([found[0]], [depths]) == pytest.approx(spearmanr(found[0], depths).statistic)


def test_correlations_are_averaged_by_length_first():
    short, long = np.arange(5.0), np.arange(7.0)
    found = [short, short, long[::-1].copy(), np.ones(7)]
    assert correlation(found, [short, short, long, long]) == pytest.approx((1 + (-1 + 0) / 2) / 2)
    assert np.isnan(correlation([np.arange(4.0)], [np.arange(4.0)]))


def test_words_without_a_token_hang_on_none():
    truth, depths = tree_of([1, -1, 1, 2])
    known = np.array([True, True, True, False])
    found = _of_known(truth, known)
    assert attachment([found], [truth], [range(4)]) == pytest.approx(2 / 3)
    assert root_accuracy([_of_known(depths, ~known)], [depths], [np.arange(4)]) == 0
    five, _ = tree_of([1, -1, 1, 2, 3])
    seen = np.array([True] * 4 + [False])
    rows = [spearmanr(np.append(five[word, :4], 9), five[word]).statistic for word in range(4)]
    assert correlation([_of_known(five, seen)], [five]) == pytest.approx(np.mean([*rows, 0]))


def embedded(heads) -> np.ndarray:
    """A vector for each word with a 1 for each word on its way from the root: squared distances are the tree's."""
    vectors = np.zeros((len(heads), len(heads)))
    for word in range(len(heads)):
        step = word
        while heads[step] >= 0:
            vectors[word, step], step = 1, heads[step]
    return vectors


def test_a_space_that_holds_the_tree():
    heads = random_heads(np.random.default_rng(1), 9)
    truth, depths = tree_of(heads)
    trees = Trees("test", np.array([0]), [truth], [depths], [np.arange(9)])
    space = Space(2, 9, 9)
    with torch.no_grad():
        space.matrix[0] = torch.eye(9)
    words = torch.from_numpy(embedded(heads)).float().expand(2, 1, 9, 9)
    seen = torch.ones(1, 9, dtype=torch.bool)
    for kind in ("distances", "depths"):
        found = losses(space, kind, trees, (np.array([0]), words, seen)).detach()
        assert found[0] == pytest.approx(0, abs=1e-5) and found[1] > 0.5
        other = getattr(space, kind)(words)[1, 0].detach().numpy()
        due = np.abs(other - getattr(trees, kind)[0]).mean()
        assert found[1].item() == pytest.approx(due, rel=1e-5)
    images = (words[1, 0] @ space.matrix[1]).detach().numpy()
    naive = [[((one - two) ** 2).sum() for two in images] for one in images]
    assert np.allclose(space.distances(words)[1, 0].detach().numpy(), naive, atol=1e-5)
    near, deep = (space_of(words)[0, 0].detach().numpy() for space_of in (space.distances, space.depths))
    scores = measured(trees, [near], [deep])
    assert scores == pytest.approx({"uuas": 1, "dspr": 1, "nspr": 1, "root": 1})


def test_the_records_of_a_structural_probe(tmp_path):
    bench = TreeBench(tmp_path, "bert", tree_corpus(tmp_path / "data"), "spans")
    spec = bench.probe_spec("structural", "arcs", rank=8, rate=1e-2, epochs=12)
    record = json.loads((bench.step("probe", spec, tmp_path / "out") / "metrics.json").read_text())
    assert record["main"] == "uuas" and set(record["majority"]["test"]) == {"uuas", "dspr", "nspr", "root"}
    first = record["layers"][0]["scores"]["test"]
    assert first["uuas"] > record["majority"]["test"]["uuas"] and first["root"] > 0.5
    trees = TreeReading(spec, bench.inputs()).splits["train"]
    words = bench.corpus.frame("train")["words"]
    assert all(list(chosen) == list(range(len(each) - 1)) for chosen, each in zip(trees.words, words, strict=True))
