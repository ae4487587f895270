"""Heads that read several layers: how these are combined, where they come from, and what the plan refuses.

S sequences, T tokens, d width, K boundaries that are read.
"""

import math

import numpy as np
import pytest
import torch

from plans import plan_of
from pretended import pretended
from test_contract_head import batch_of, trained_on
from thaw.encoders.parity import MARKER
from thaw.heads.combination import combination
from thaw.heads.registry import build
from thaw.outputs.frame.collection import selected
from thaw.schema.head import HeadConfig
from thaw.training.seeds_together import prepare
from tiny_corpus import small_berts
from trained import check_training

MIX = {"layers": {"combine": "mix"}}
ATTENTION = {"layers": {"combine": "attention", "norm": True}, "pooling": "attention", "separate_pooling": "attention"}
LADDER = {"layers": {"combine": "ladder", "width": 8, "heads": 2, "feed_forward": 2}, "pooling": "mean"}
LEARNED = {"mix": MIX, "attention": ATTENTION, "ladder": LADDER}  # combinations with parameters of their own
FROZEN = {"train": ["head"], "boundary": 3, "reads": [0, 1, 2]}
WIDE = 8
KINDS = [("classification", False), ("regression", False), ("tagging", False), ("spans", False)]
KINDS += [("pair_classification", True), ("pair_classification", False), ("pair_regression", True)]
MASK = torch.ones(2, 5, dtype=torch.bool)
STATES = {n: torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(n)) for n in range(4)}


benches = pytest.fixture(scope="module")(small_berts)


@pytest.fixture(scope="module")
def bench(benches):
    return benches("classification")


def layers_of(**entry):
    """Return what a head's entry with such `layers` says of them."""
    return HeadConfig(kind="linear", layers=entry).layers


def combined(**entry):
    """Return the module that combines layers of an encoder with three of them, and what it gives."""
    found = combination(layers_of(**entry), 8, 3)
    return found, found(STATES, MASK)


@pytest.mark.parametrize(
    ("entry", "due"),
    [
        ({}, STATES[3]),
        ({"layer": 1}, STATES[1]),
        ({"combine": "mean", "last": 2}, (STATES[2] + STATES[3]) / 2),
        ({"combine": "sum", "last": 3}, STATES[1] + STATES[2] + STATES[3]),
        ({"combine": "concat", "last": 2}, torch.cat([STATES[2], STATES[3]], -1)),
        ({"combine": "mix"}, sum(STATES.values()) / 4),
        ({"combine": "mix", "last": 2}, (STATES[2] + STATES[3]) / 2),
        ({"combine": "attention", "last": 2}, (STATES[2] + STATES[3]) / 2),
    ],
)
def test_layers_are_combined(entry, due):
    module, state = combined(**entry)
    assert torch.allclose(state, due, atol=1e-6) and module.width == state.shape[-1]


def test_the_mix_is_gamma_times_the_softmax_of_its_weights():
    module, _ = combined(combine="mix")
    with torch.no_grad():
        module.weights.copy_(torch.tensor([1.0, 0.0, -1.0, 2.0]))
        module.gamma.fill_(0.5)
    shares = torch.tensor([1.0, 0.0, -1.0, 2.0]).exp()
    due = sum(share * STATES[n] for n, share in enumerate(shares / shares.sum())) / 2
    assert torch.allclose(module(STATES, MASK), due, atol=1e-6)


def test_layers_may_be_brought_to_one_scale_first():
    module, state = combined(combine="mix", norm=True, last=1)
    assert torch.allclose(state.mean(-1), torch.zeros(2, 5), atol=1e-6)
    assert torch.allclose(state.std(-1, correction=0), torch.ones(2, 5), atol=1e-3)


def test_mix_dropout_leaves_layers_out_and_keeps_one():
    module, _ = combined(combine="mix", dropout=0.7)
    torch.manual_seed(1)
    shares = torch.stack([module.shares() for _ in range(400)]).detach()
    due = 0.7 - 0.7**4  # where all four would be left out, none is
    assert torch.allclose(shares.sum(1), torch.ones(400)) and abs((shares == 0).float().mean() - due) < 0.05
    assert torch.equal(module.eval().shares(), torch.full((4,), 0.25))


def test_a_penalty_on_the_mix_is_an_l2_term_of_the_loss():
    given = torch.tensor([1.0, 0.5, -1.0, 2.0])
    plain, penalised = (combined(combine="mix", penalty=penalty)[0] for penalty in (0.0, 0.1))
    for module, penalty in ((plain, 0.1), (penalised, 0.0)):
        with torch.no_grad():
            module.weights.copy_(given)
        (module(STATES, MASK).square().sum() + penalty * module.weights.square().sum()).backward()
    assert torch.allclose(plain.weights.grad, penalised.weights.grad)
    assert torch.equal(plain.gamma.grad, penalised.gamma.grad)


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


def test_dropout_leaves_a_layer_out_at_every_token():
    module = attending(dropout=0.5)
    torch.manual_seed(1)
    stacked = module.stacked(STATES)
    drawn = torch.stack([module.train().token_shares(stacked) for _ in range(200)]).detach()
    out = drawn == 0
    assert torch.equal(out.all((2, 3)), out.any((2, 3))) and torch.allclose(drawn.sum(1), torch.ones(200, 2, 5))
    assert abs(out.float().mean() - (0.5 - 0.5**4)) < 0.05
    assert not (module.eval().token_shares(stacked) == 0).any()


@pytest.mark.parametrize("train", [["head"], ["head", {"top": 1}]], ids=["head", "with a layer"])
@pytest.mark.parametrize("combine", LEARNED)
def test_what_is_read_of_the_store_is_what_is_computed_from_text(combine, train, bench):
    stored = FROZEN if train == ["head"] else {"boundary": 2, "reads": [0, 1]}
    heads = []
    for where in (stored, {"boundary": None}):
        run, found = bench.train(bench.spec({"epochs": 2, **where, "train": train}, head=LEARNED[combine]))
        assert (run.evaluator.encoder is None) == (where == FROZEN)
        heads.append(found.head.state_dict())
    for name, value in heads[0].items():
        assert torch.allclose(value, heads[1][name], atol=1e-3 if combine == "ladder" else 1e-4), name


@pytest.mark.parametrize(("task_type", "separate_encoding"), KINDS)
@pytest.mark.parametrize("combine", LEARNED)
def test_padding_has_no_part_and_every_number_of_a_mix_gets_a_gradient(combine, task_type, separate_encoding):
    torch.manual_seed(1)
    outputs = 1 if "regression" in task_type else 3
    entry = HeadConfig(kind="linear", **LEARNED[combine])
    head = build(entry, 6, outputs, task_type, separate_encoding, layers=2).eval()

    def logits(lengths, padding=0, junk=0.0):
        states, batch = batch_of(head, lengths, padding, junk)
        return head(head.combination({n: states.roll(n, -1) * (n + 1) for n in range(3)}, batch.mask), batch)

    assert not head.constant_vectors
    logits([2, 5, 3, 4]).square().sum().backward()
    for name, parameter in head.combination.named_parameters() if combine != "ladder" else ():
        assert (parameter.grad != 0).all(), name
    with torch.no_grad():
        if combine == "attention":
            head.combination.query.normal_()
        alone = torch.cat([logits([size]) for size in (2, 5, 3, 1)])
        for padding, junk in ((0, 0.0), (3, 100.0), (1, -100.0)):
            assert torch.allclose(logits([2, 5, 3, 1], padding, junk), alone, atol=1e-4)


@pytest.mark.parametrize(
    ("task_type", "separate_encoding", "head"),
    [
        *(("classification", False, {**head, "layers": {**head["layers"], "norm": True}}) for head in LEARNED.values()),
        ("regression", False, ATTENTION),
        ("spans", False, ATTENTION),
        ("pair_classification", True, ATTENTION),
        ("spans", False, {"layers": LADDER["layers"]}),
        ("pair_classification", True, LADDER),
    ],
)
def test_what_combines_layers_learns_from_the_store_alone(task_type, separate_encoding, head, benches):
    bench = benches(task_type, separate_encoding)
    spec = bench.spec(FROZEN | {"epochs": 4}, head=head)
    run, found = check_training(bench, spec)
    assert run.evaluator.encoder is None and not run.head.constant_vectors
    assert found.cost["parameters"]["trained"] == sum(parameter.numel() for parameter in run.head.parameters())
    counted = getattr(run.head.combination, "flops", lambda batch: 0.0)(bench.store.batch("train", np.array([0])))
    assert found.cost["flops"] > 4 * 3 * counted


@pytest.mark.parametrize(
    ("phase", "head", "resumed"),
    [
        ({"boundary": 3, "reads": [0, 1, 2]}, MIX, False),
        ({"boundary": 1}, {"layers": {"layer": 1}}, False),
        ({"boundary": None, "train": ["all"]}, {}, False),
        ({"train": ["head", {"top": 1}]}, {}, True),
        ({"boundary": 0}, {"layers": {"layer": 1}}, True),
    ],
)
def test_resuming_is_proved_where_layers_are_computed_from_a_stored_state(bench, phase, head, resumed):
    marker = bench.encoder / MARKER
    marker.unlink(missing_ok=True)
    prepare(bench.run(bench.spec(phase, head=head)))
    assert marker.is_file() == resumed


def test_nothing_above_the_layer_that_is_read_is_run_or_counted(bench):
    def flops(n: int) -> float:
        phase = {"train": ["head", {"top": 3}], "boundary": 0}
        phase["components"] = ["head", *(f"layer.{i}" for i in range(1, n + 1))]
        return bench.train(bench.spec(phase, head={"layers": {"layer": n}}))[1].cost["flops"]

    # one layer of three: its way back needs no gradient of its input
    assert flops(1) < 0.4 * flops(3)


def test_tasks_for_which_a_set_has_no_head_are_left_to_other_heads(tmp_path):
    (tmp_path / "heads.yaml").write_text("head_sets:\n  mine: {by_task: {spans: crf}}\n")
    changes = {"heads": ["mine", "linear"], "strategies": ["full"], "seeds": [1], "catalogues": [str(tmp_path)]}
    plan = plan_of(**changes | {"baselines": []})
    due = {("entities", "mine")} | {(task, "linear") for task in plan.experiment.tasks}
    assert {(run.task, run.head) for run in plan.runs} == due
    rows = [result.row for result in selected(plan.job("collect", "demo").spec)]
    assert {(row["task"], row["head"]) for row in rows} == due


@pytest.mark.parametrize(
    "entry",
    [
        *LEARNED.values(),
        *({"layers": {"combine": way, "last": 2}, "separate_pooling": "first"} for way in ("mean", "sum", "concat")),
        {"layers": {"combine": "mix", "norm": True, "dropout": 0.5}},
        {"layers": LADDER["layers"] | {"norm": True, "dropout": 0.1}},
    ],
)
def test_every_combination_trains_on_the_pretended_device(entry):
    with pretended() as device:
        head, losses, _ = trained_on(device, HeadConfig(kind="linear", **entry), "pair_classification", True)
    assert losses.isfinite().all() and all(tensor.is_cuda for tensor in head.state_dict().values())
    assert all(parameter.grad is not None and parameter.grad.is_cuda for parameter in head.parameters())
