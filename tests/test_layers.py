"""Heads that read several layers: how these are combined, where they come from, and what the plan refuses."""

import pytest
import torch

from thaw.encoders.parity import MARKER
from thaw.heads.layer_mixing import combination
from thaw.outputs.frame.collection import selected
from thaw.planning.config_files import read_config
from thaw.planning.configuration import load_plan
from thaw.schema.head import HeadConfig
from thaw.training.device_placement import prepare
from tiny_corpus import small_bert

MIX = {"layers": {"combine": "mix"}}
MASK = torch.ones(2, 5, dtype=torch.bool)
STATES = {n: torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(n)) for n in range(4)}


bench = pytest.fixture(scope="module")(small_bert)


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


@pytest.mark.parametrize(
    ("train", "stored"),
    [
        (["head"], {"boundary": 3, "reads": [0, 1, 2]}),
        (["head", {"top": 2}], {"boundary": 1, "reads": [0]}),
    ],
)
def test_a_mix_from_the_store_is_a_mix_from_text(bench, train, stored):
    spec = bench.spec({"train": train, **stored}, head=MIX)
    run, found = bench.train(spec)
    _, computed = bench.train(bench.spec({"train": train, "boundary": None}, head=MIX))
    tensors = found.head.state_dict()
    assert tensors["combination.weights"].abs().min() > 0 and tensors["combination.gamma"] != 1
    for name, value in computed.head.state_dict().items():
        assert torch.allclose(value, tensors[name], atol=1e-4), name
    assert (run.evaluator.encoder is None) == (train == ["head"])


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


def with_head(home, folder, head: str, strategies: list):
    """Plan the demo with a head of one's own catalogue."""
    folder.mkdir()
    (folder / "heads.yaml").write_text("heads:\n  mine: " + head)
    changes = {"catalogues": [str(folder)], "heads": ["mine"], "strategies": strategies, "baselines": []}
    return load_plan(read_config([str(home / "tests/base.yaml")], changes), home)


def test_the_plan_says_which_boundaries_a_head_reads(home, tmp_path):
    plan = with_head(home, tmp_path / "my", "{kind: linear, layers: {combine: mix}}", ["frozen_sgd", {"top_k": [2]}])
    assert plan.boundaries["minilm/acceptability/joint"] == list(range(7))
    found = {run.strategy: plan.job(run.step, run.key).spec["phases"][0] for run in plan.runs["demo"]}
    assert (found["frozen_sgd"]["boundary"], found["frozen_sgd"]["reads"]) == (6, [0, 1, 2, 3, 4, 5])
    assert (found["top_k"]["boundary"], found["top_k"]["reads"]) == (4, [0, 1, 2, 3])


def test_a_set_of_heads_takes_one_by_the_type_of_the_task(home):
    tasks = ["acceptability", "paraphrase", "entities"]
    changes = {"heads": ["wang", "linear"], "strategies": ["frozen_sgd", "full"], "seeds": [1], "tasks": tasks}
    plan = load_plan(read_config([str(home / "tests/base.yaml")], changes | {"baselines": []}), home)
    spec = {task: plan.job("train", f"runs/{task}/all/minilm/wang/full/base/seed1").spec for task in tasks}
    assert [spec[task]["head"]["kind"] for task in tasks] == ["densenet", "bimpm", "bilstm"]
    rows = [result.row for result in selected(plan.job("collect", "demo").spec)]
    assert {(row["task"], row["head"]) for row in rows} == {(task, head) for task in tasks for head in changes["heads"]}


def test_tasks_for_which_a_set_has_no_head_are_left_to_other_heads(home, tmp_path):
    (tmp_path / "heads.yaml").write_text("head_sets:\n  mine: {by_task: {spans: crf}}\n")
    changes = {"heads": ["mine", "linear"], "strategies": ["full"], "seeds": [1], "catalogues": [str(tmp_path)]}
    plan = load_plan(read_config([str(home / "tests/base.yaml")], changes | {"baselines": []}), home)
    due = {("entities", "mine")} | {(task, "linear") for task in plan.experiments[0].tasks}
    assert {(run.task, run.head) for run in plan.runs["demo"]} == due
    rows = [result.row for result in selected(plan.job("collect", "demo").spec)]
    assert {(row["task"], row["head"]) for row in rows} == due
