"""Attention over layers: its numbers against plain loops, its part in runs of each type of task, and what is refused.

S sequences, T tokens, d width, K boundaries that are read.
"""

import math

import numpy as np
import pytest
import torch

from test_contract_head import batch_of
from test_layers import MASK, STATES, layers_of
from test_pairs_plan import job
from test_plan import planned
from test_training import OnTheFly
from thaw.heads.layer_mixing import combination
from thaw.heads.registry import build
from thaw.schema.head import HeadConfig
from tiny_corpus import small_berts
from trained import check_training, equal, tensors

WIDE = 8
KINDS = [("classification", False), ("regression", False), ("tagging", False), ("spans", False)]
KINDS += [("pair_classification", True), ("pair_classification", False), ("pair_regression", True)]
ATTENTION = {"layers": {"combine": "attention", "norm": True}, "pooling": "attention", "separate_pooling": "attention"}
FROZEN = {"train": ["head"], "boundary": 3, "reads": [0, 1, 2]}


def attending(**entry):
    """Return attention over the layers of an encoder with three, every number of it random."""
    module = combination(layers_of(combine="attention", **entry), WIDE, 3).eval()
    draw = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw))
    return module


def looped(module, states: dict, read: list[int], norm: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the state [S, T, d] and the shares [S, T, K] of attention over layers, one token after the other."""
    query, bias, gamma = (getattr(module, n).detach().double().numpy() for n in ("query", "weights", "gamma"))
    sequences, tokens = states[0].shape[:2]
    result, shares = np.zeros((sequences, tokens, WIDE)), np.zeros((sequences, tokens, len(read)))
    for s in range(sequences):
        for t in range(tokens):
            vectors = [states[n][s, t].double().numpy() for n in read]
            if norm:
                vectors = [(v - v.mean()) / math.sqrt(v.var() + 1e-5) for v in vectors]
            scores = [sum(a * b for a, b in zip(query, v, strict=True)) / math.sqrt(WIDE) for v in vectors]
            powers = [math.exp(score + bias[k]) for k, score in enumerate(scores)]
            for k, v in enumerate(vectors):
                shares[s, t, k] = powers[k] / sum(powers)
                result[s, t] += gamma * shares[s, t, k] * v
    return result, shares


@pytest.mark.parametrize(
    ("entry", "read"), [({}, [0, 1, 2, 3]), ({"norm": True}, [0, 1, 2, 3]), ({"norm": True, "last": 2}, [2, 3])]
)
def test_attention_over_layers_is_the_sum_that_a_loop_over_tokens_gives(entry, read):
    module = attending(**entry)
    due, shares = looped(module, STATES, read, "norm" in entry)
    with torch.no_grad():
        assert module.read == read and np.allclose(module(STATES, MASK).numpy(), due, atol=1e-5)
        given = module.token_shares(module.stacked(STATES)).permute(1, 2, 0).numpy()
    assert np.allclose(given, shares, atol=1e-6) and np.allclose(shares.sum(-1), 1)
    assert np.ptp(shares, axis=(0, 1)).max() > 0.3, "the shares depend on the token"


def test_without_a_query_attention_over_layers_is_the_scalar_mix():
    weights = torch.tensor([1.0, 0.0, -1.0, 2.0])
    mix, module = (combination(layers_of(combine=name, norm=True), WIDE, 3) for name in ("mix", "attention"))
    with torch.no_grad():
        for each in (mix, module):
            each.weights.copy_(weights)
            each.gamma.fill_(0.5)
    assert torch.allclose(module(STATES, MASK), mix(STATES, MASK), atol=1e-6)
    with torch.no_grad():
        module.query.fill_(0.1)
        module.query[0] = 3.0
    assert not torch.allclose(module(STATES, MASK), mix(STATES, MASK), atol=1e-2)


def test_dropout_leaves_a_layer_out_at_every_token():
    module = attending(dropout=0.5)
    torch.manual_seed(1)
    stacked = module.stacked(STATES)
    drawn = torch.stack([module.train().token_shares(stacked) for _ in range(200)]).detach()
    out = drawn == 0
    assert torch.equal(out.all((2, 3)), out.any((2, 3))) and torch.allclose(drawn.sum(1), torch.ones(200, 2, 5))
    assert abs(out.float().mean() - (0.5 - 0.5**4)) < 0.05
    assert not (module.eval().token_shares(stacked) == 0).any()


@pytest.mark.parametrize(("task_type", "separate_encoding"), KINDS)
def test_every_number_of_attention_over_layers_gets_a_gradient_and_padding_has_no_part(task_type, separate_encoding):
    torch.manual_seed(1)
    outputs = 1 if "regression" in task_type else 3
    head = build(HeadConfig(kind="linear", **ATTENTION), 6, outputs, task_type, separate_encoding, layers=2).eval()

    def logits(lengths, padding=0, junk=0.0):
        states, batch = batch_of(head, lengths, padding, junk)
        return head(head.combination({n: states.roll(n, -1) * (n + 1) for n in range(3)}, batch.mask), batch)

    assert not head.constant_vectors
    logits([2, 5, 3, 4]).square().sum().backward()
    for name in ("query", "weights", "gamma"):
        gradient = getattr(head.combination, name).grad
        assert gradient is not None and (gradient != 0).all(), name
    with torch.no_grad():
        head.combination.query.normal_()
        alone = torch.cat([logits([size]) for size in (2, 5, 3, 1)])
        for padding, junk in ((0, 0.0), (3, 100.0)):
            assert torch.allclose(logits([2, 5, 3, 1], padding, junk), alone, atol=1e-4)


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """Small BERTs on small corpora, by type of task and reading of pairs."""
    return small_berts(tmp_path_factory)


@pytest.mark.parametrize(
    ("task_type", "separate_encoding"),
    [("classification", False), ("regression", False), ("spans", False), ("pair_classification", True)],
)
def test_attention_over_layers_learns_from_the_store_alone(task_type, separate_encoding, benches):
    bench = benches(task_type, separate_encoding)
    spec = bench.spec(FROZEN | {"epochs": 4}, head=ATTENTION)
    check_training(bench, spec)
    run, found = bench.train(spec)
    assert run.evaluator.encoder is None
    assert found.cost["parameters"]["trained"] == sum(parameter.numel() for parameter in run.head.parameters())
    assert found.head.state_dict()["combination.query"].abs().max() > 1e-3


@pytest.mark.parametrize("task_type", ["classification", "spans"])
def test_cached_is_uncached_to_the_bit_in_the_extractions_batches(task_type, benches):
    bench = benches(task_type)
    spec = bench.spec(FROZEN | {"epochs": 2}, head=ATTENTION)
    stored, computed = (
        bench.train(spec, **given)[1] for given in ({}, {"store": OnTheFly(bench.features, bench.encoder)})
    )
    assert equal(tensors(stored), tensors(computed)) and stored.history == computed.history


@pytest.mark.parametrize("train", [["head"], ["head", {"top": 1}]])
def test_attention_over_layers_from_the_store_is_that_from_text(train, benches):
    bench = benches("classification")
    where = {"boundary": 3, "reads": [0, 1, 2]} if train == ["head"] else {"boundary": 2, "reads": [0, 1]}
    stored, computed = (
        bench.train(bench.spec({"train": train, "epochs": 2} | found, head=ATTENTION))[1].head.state_dict()
        for found in (where, {"boundary": None})
    )
    for name, value in computed.items():
        assert torch.allclose(value, stored[name], atol=1e-4), name


def test_the_plan_trains_the_strategy_on_stored_states_of_all_layers(home):
    plan = planned(home, strategies=["frozen_mix", "frozen_layer_attention"], tasks=["acceptability"], seeds=[1])
    mix, run = (job(plan, strategy=name) for name in ("frozen_mix", "frozen_layer_attention"))
    assert {found.step for found in plan.runs["demo"]} == {"train"} and run.spec["phases"] == mix.spec["phases"]
    assert (run.spec["phases"][0]["boundary"], run.spec["phases"][0]["reads"]) == (6, [0, 1, 2, 3, 4, 5])
    assert run.spec["head"] == mix.spec["head"] | {"layers": {"combine": "attention", "norm": True}}
