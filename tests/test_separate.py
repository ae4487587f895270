"""Pairs whose texts are read separately: tokens, store, extraction, heads and fits, against one text at a time."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

from corpora import prepared
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.digests import canonical
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.heads.registry import build
from thaw.schema.head import HeadConfig
from thaw.training.head_fitting import HeadFit
from thaw.training.task_model import BatchLoader
from tiny import WORDS
from tiny_corpus import Bench, run_in_process, tiny_corpus

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    """A small BERT on a small corpus of pairs, read apart."""
    folder = tmp_path_factory.mktemp("apart")
    corpus = tiny_corpus(folder / "data", "pair_classification")
    return Bench(folder, "bert", corpus, "pair_classification", pairs="separate")


def alone(bench: Bench, ids: list[int]) -> torch.Tensor:
    """Return the last hidden state [1, T, d] of one sequence, computed by itself."""
    row = torch.tensor([ids])
    return Encoder.load(bench.encoder)(Batch(row, row > -1, torch.zeros_like(row), None, torch.zeros(1)))


def test_a_row_is_two_sequences_each_with_its_own_marks(bench):
    rows = np.array([3, 0, 7])
    batch = bench.store.batch("train", rows)
    assert batch.mask.shape[0] == 6 and len(batch) == 3
    starts = set(batch.input_ids[:, 0].tolist())
    assert len(starts) == 1, "every text begins with the same mark"
    frame = bench.corpus.frame("train")
    lengths = batch.mask.sum(1).view(3, 2).tolist()
    for row, (first, second) in zip(rows, lengths, strict=True):
        words = [len(frame[name][row].split()) for name in ("a", "b")]
        assert first >= words[0] + 2 and second >= words[1] + 2
        assert bench.store.lengths("train")[row] == first + second
        assert bench.store.sizes("train")[row] == 2 * max(first, second)


def last(bench, split: str, rows) -> tuple:
    """Return a batch of some rows, and their stored last hidden states."""
    batch, states = BatchLoader(bench.store, [bench.layers], CPU)(split, rows)
    return batch, states[bench.layers]


def test_stored_states_are_those_of_each_text_alone(bench):
    batch, state = last(bench, "validation", np.array([5, 2]))
    for sequence in range(4):
        ids = batch.input_ids[sequence][batch.mask[sequence]].tolist()
        real = state[sequence][: len(ids)]
        assert torch.allclose(alone(bench, ids)[0], real, atol=1e-5)
        assert not state[sequence][len(ids) :].any()


def test_the_head_reads_both_texts_and_what_is_between_them(bench):
    head = build(HeadConfig(kind="linear"), 32, 2, "pair_classification", separate_encoding=True)
    batch, state = last(bench, "test", np.arange(4))
    u, v = head.pooling(state, batch.mask).view(4, 2, 32).unbind(1)
    assert torch.equal(head.vectors(state, batch), torch.cat([u, v, (u - v).abs(), u * v], 1))
    assert head.eval()(state, batch).shape == (4, 2)


@pytest.mark.parametrize("train", [["head"], ["head", {"top": 1}], ["all"]])
def test_training_from_the_store_is_training_from_text(bench, train):
    spec = bench.spec({"train": train, "epochs": 1})
    _, stored = bench.train(spec)
    _, again = bench.train(spec)
    phase = spec["phases"][0] | {"boundary": None}
    _, computed = bench.train(spec | {"phases": [phase]})
    for name, value in stored.head.state_dict().items():
        assert torch.equal(value, again.head.state_dict()[name])
        assert torch.allclose(value, computed.head.state_dict()[name], atol=1e-4)
    assert stored.outcome["scores"]["train"]["accuracy"] > 0.4


def similar(folder: Path) -> Bench:
    """Return a bench on pairs with a score: 1 where both texts share a word, 0 where they do not."""
    random = np.random.default_rng(1)

    def row(i: int) -> dict:
        first, second = random.choice(WORDS, 2, replace=False)
        return {"a": f"{first} {first}", "b": f"{first if i % 2 else second}", "score": i % 2 + 0.01 * (i % 5)}

    splits = {
        split: [row(i) for i in range(count)] for split, count in (("train", 40), ("validation", 20), ("test", 20))
    }
    (folder / "data").mkdir()
    corpus = prepared(folder / "data", {"texts": ["a", "b"], "targets": {"score": "score"}}, **splits)
    return Bench(folder, "bert", corpus, "pair_regression", pairs="separate")


def test_the_cosine_head_gives_the_correlation_of_the_untrained_cosine(tmp_path):
    bench = similar(tmp_path)
    spec = bench.spec({"optimizer": "lbfgs"}, head={"kind": "cosine"})
    fit = HeadFit(spec, bench.inputs())
    fitted = fit.run(Stopwatch())
    batch, state = last(bench, "test", np.arange(20))
    u, v = fit.head.pooling(state, batch.mask).view(20, 2, 32).unbind(1)
    cosine = torch.cosine_similarity(u, v).numpy()
    gold = bench.corpus.frame("test")["score"]
    assert fit.outcome(fitted, 1)["scores"]["test"]["pearson"] == pytest.approx(pearsonr(gold, cosine).statistic)


def test_validation_chooses_how_a_frozen_run_reads_pairs(tmp_path, bench):
    joint = Bench(tmp_path, "bert", bench.corpus, "pair_classification")
    spec = joint.spec({"optimizer": "lbfgs"}) | {"features": [b.store.card["digest"] for b in (joint, bench)]}
    del spec["seed"]
    folders = ["--data", bench.corpus.folder, "--encoder", joint.encoder, "--features", joint.features, bench.features]
    run_in_process("fit_heads", "--spec", canonical(spec), *folders, "--seeds", 1, "--out", tmp_path / "best")
    chosen = json.loads((tmp_path / "best" / "seed1" / "metrics.json").read_text())
    alone = [HeadFit(b.spec({"optimizer": "lbfgs"}), b.inputs()) for b in (joint, bench)]
    fits = [fit.run(Stopwatch()) for fit in alone]
    better = max((0, 1), key=lambda i: fits[i].choice_score)
    assert chosen["chosen"]["pairs"] == ("joint", "separate")[better]
    assert chosen["scores"] == alone[better].outcome(fits[better], 1)["scores"]
