"""What a strategy lets a head read in the place of the head's own entry: plan, refusals, and the heads themselves."""

import pytest
import torch

from plans import plan_with
from test_pairs_plan import job
from thaw.heads.pooling import make_pooling
from thaw.heads.registry import build, example
from thaw.schema.head import HeadConfig
from thaw.schema.strategy import StrategyConfig

CONCAT = "{layers: {combine: concat}, pooling: mean}"
SOLVED = "phases: [{train: [head], optimizer: lbfgs}]"


def with_strategy(folder, text: str, **changes):
    """Plan the demo with a strategy of one's own catalogue, `mine`."""
    return plan_with(folder, f"  mine: {{{text}}}\n", strategies=["mine"], outputs=["main_table"], **changes)


def test_heads_that_differ_under_what_is_read_are_all_planned(tmp_path):
    text = f"reads: {{layers: {{combine: mean}}}}, {SOLVED}"
    plan = with_strategy(tmp_path, text, heads=["linear", "linear_mean"])
    assert {run.head for run in plan.runs} == {"linear", "linear_mean"}


def test_a_run_starts_from_a_head_that_reads_the_same(tmp_path):
    text = f"reads: {CONCAT}, after: linear_probe_all_layers, phases: [{{train: [all]}}]"
    run = job(with_strategy(tmp_path, text), strategy="mine")
    assert run.spec["head"]["layers"] == {"combine": "concat"} and run.spec["after"]


def test_a_kind_that_pools_in_its_own_way_keeps_it():
    strategy = StrategyConfig(reads={"layers": {"combine": "mix"}, "pooling": "mean"}, phases=[{"train": ["head"]}])
    head = strategy.head(HeadConfig(kind="bcn", dropout=0.3))
    assert head == HeadConfig(kind="bcn", dropout=0.3, layers={"combine": "mix"})
    plain = StrategyConfig(phases=[{"train": ["head"]}])
    assert plain.head(head) is head


@pytest.mark.parametrize("separate", [False, True])
def test_several_poolings_are_side_by_side(separate):
    """A head on [mean, max, first] of all layers of an encoder: its vectors are those of each pooling by itself."""
    task = "pair_classification" if separate else "classification"
    entry = HeadConfig(
        kind="linear",
        layers={"combine": "concat"},
        pooling=["mean", "max", "first"],
        separate_pooling=["mean", "max", "first"],
    )
    head = build(entry, 8, 2, task, separate, 3)
    _, batch = example(8, False, separate)
    boundaries = {n: torch.randn(*batch.mask.shape, 8) for n in range(4)}
    state = head.combination(boundaries)
    pooled = torch.cat([make_pooling(name, 32)(state, batch.mask) for name in ("mean", "max", "first")], -1)
    vectors = head.vectors(state, batch)
    assert head.constant_vectors and head.output.weight.shape == (2, 3 * 4 * 8 * (4 if separate else 1))
    assert torch.equal(vectors, head.compare(pooled[::2], pooled[1::2]) if separate else pooled)


def test_the_head_of_a_run_is_on_the_layer_that_validation_chose():
    spec = {"head": {"kind": "linear", "pooling": "mean", "layers": {"layer": "lowest", "margin": 0.02}}}
    assert HeadConfig.model_validate(spec["head"]).layers.reads(4) == [0, 1, 2, 3, 4]
    head = HeadConfig.of_run(spec, {"l2": 1.0, "layer": 2})
    assert head.layers.reads(4) == [2] and head.pooling == "mean"
    one = {"head": {"kind": "linear", "layers": {"layer": 3}}}
    assert HeadConfig.of_run(one, {"l2": 1.0}) == HeadConfig.model_validate(one["head"])
