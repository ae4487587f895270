"""Thawing in stages and one by one: what trains when, from which boundary, and that the store changes nothing."""

import pytest
import torch

from conftest import HOME
from thaw.adaptation.selectors import components
from thaw.adaptation.stages import chain_thaw_order, phases_to_spec, stages
from thaw.encoders.transformers import Encoder
from thaw.planning.configuration import load_plan, read_config
from thaw.planning.cost_estimate import training_operations
from thaw.schema.phases import PhaseConfig
from thaw.training.run_state import RunState
from tiny_corpus import small_bert
from trained import equal, losses, tensors
from workflow import Workplace

GRADUAL = {"train": ["head", {"top": 3}], "unfreeze": {}, "epochs": 1}


bench = pytest.fixture(scope="module")(small_bert)


def from_text(spec: dict) -> dict:
    """Return a spec whose stages all start from text."""
    phases = [entry | {"boundary": None} for entry in spec["phases"]]
    for entry in phases:
        entry |= {"stages": [stage | {"boundary": None} for stage in entry["stages"]]} if "stages" in entry else {}
    return spec | {"phases": phases}


def plan(train: list, layers: int = 6, **given) -> list[dict]:
    """Return the phases of a spec, with every boundary in the store and a head on the last layer."""
    phase = PhaseConfig(train=train, **given)
    pairs = [(phase, parts) for parts in chain_thaw_order(phase, components(train, layers, {}))]
    return phases_to_spec(pairs, layers, list(range(layers + 1)), layers, [layers])


@pytest.mark.parametrize("layers", [3, 6, 12])
def test_stage_s_trains_s_layers_and_reads_boundary_l_minus_s(layers):
    (entry,) = plan(["head", {"top": layers}], layers, unfreeze={})
    for s, stage in enumerate(entry["stages"]):
        assert stage["components"] == ["head", *(f"layer.{n}" for n in range(layers - s + 1, layers + 1))]
        assert stage["boundary"] == layers - s
    assert s == layers and entry["boundary"] == 0 and entry["components"] == stage["components"]


def test_layers_and_epochs_of_a_stage_are_settable_and_embeddings_come_last():
    phase = PhaseConfig(train=["all"], unfreeze={"layers": 2, "epochs": 3}, epochs=5)
    found = stages(phase, components(["all"], 3, {}))
    assert [stage["components"][1:] for stage in found] == [
        [],
        ["layer.2", "layer.3"],
        ["embeddings", "layer.1", "layer.2", "layer.3"],
    ]
    assert [stage.get("epochs") for stage in found] == [3, 3, None], "the last one has the phase's own"
    assert [stage["boundary"] for stage in plan(["all"], 3, unfreeze={})[0]["stages"]] == [3, 2, 1, 0, None]


def test_one_by_one_is_a_phase_for_each_and_one_for_all():
    found = plan(["all"], 2, one_by_one=True)
    alone = [["head"], ["embeddings"], ["layer.1"], ["layer.2"], ["head", "embeddings", "layer.1", "layer.2"]]
    assert [entry["components"] for entry in found] == alone
    assert [entry["boundary"] for entry in found] == [2, None, None, None, None], "no stored state is valid after that"
    bounds = [entry["boundary"] for entry in plan(["head", {"top": 2}], 3, one_by_one=True)]
    assert bounds == [3, 1, 1, 1], "layer 3 alone still starts below layer 2, which has moved"


@pytest.mark.parametrize("phase", [GRADUAL, GRADUAL | {"one_by_one": True, "unfreeze": None}], ids=["stages", "turns"])
def test_the_store_changes_nothing(bench, phase):
    spec = bench.spec(phase | {"rate": 1e-4, "head_rate": 1e-3})
    _, stored = bench.train(spec)
    _, computed = bench.train(from_text(spec))
    assert losses(stored) == pytest.approx(losses(computed), abs=1e-5)
    for name, value in tensors(stored).items():
        torch.testing.assert_close(value, tensors(computed)[name], atol=1e-4, rtol=0)
    assert stored.cost["flops"] < computed.cost["flops"]
    assert stored.cost["parameters"] == computed.cost["parameters"]


def test_the_optimizer_goes_on_through_the_stages(bench):
    """Two stages of the same components are one phase of as many epochs, to the bit."""
    for optimizer in ("adamw", "bert_adam"):
        whole = bench.spec({"train": ["head", {"top": 2}], "epochs": 3, "optimizer": optimizer})
        (entry,) = whole["phases"]
        stage = {"components": entry["components"], "boundary": entry["boundary"]}
        halves = entry | {"epochs": 2, "stages": [stage | {"epochs": 1}, stage]}
        one, two = bench.train(whole)[1], bench.train(whole | {"phases": [halves]})[1]
        assert equal(tensors(one), tensors(two)) and one.history == two.history and one.cost == two.cost


def test_the_best_epoch_may_lie_in_an_early_stage(bench):
    """Then what was thawed after it has its starting weights again."""
    slow = {"unfreeze": {"epochs": 3}}
    wild = GRADUAL | slow | {"rate": 5.0, "head_rate": 1e-2, "clip": None, "pick": "best"}
    run, trained = bench.train(bench.spec(wild))
    pretrained = Encoder.load(bench.encoder).components()
    watched = [note["validation"] for note in trained.history if note["validation"] is not None]
    (best,) = trained.outcome["chosen"]["epochs"]
    assert len(watched) == 10 and best <= 3, "the head alone was best"
    for part, named in pretrained.items():
        for name, value in named:
            assert part == "embeddings" or torch.equal(trained.encoder[name], value), name
    assert trained.outcome["scores"]["validation"]["accuracy"] == watched[best - 1]


def test_rules_that_end_a_phase_wait_for_its_last_stage(bench):
    still = GRADUAL | {"rate": 1e-30, "head_rate": 1e-30, "weight_decay": 0.0, "epochs": 9}
    _, trained = bench.train(bench.spec(still | {"patience": 2}))
    assert trained.outcome["chosen"]["epochs"] == [5], "three stages of one epoch, then two without a gain"


def test_a_gap_ends_a_phase_at_the_first_epoch_that_has_it(bench):
    """Against a loop over the scores of the same run without a stop that could happen."""
    phase = {"train": ["head", {"top": 1}], "rate": 1e-3, "head_rate": 1e-2, "epochs": 8, "pick": "last"}
    _, whole = bench.train(bench.spec(phase | {"stop": {"gap": 1.0}}))
    gaps = [abs(row["train"] - row["validation"]) for row in whole.history if "train" in row]
    assert len(gaps) == 8 and len(set(gaps) - {0.0}) > 1
    for allowed in sorted(set(gaps) - {0.0}):
        above = [epoch for epoch, gap in enumerate(gaps, start=1) if gap > allowed]
        _, trained = bench.train(bench.spec(phase | {"stop": {"gap": allowed}}))
        due = {"epochs": above[:1], "stopped": ["gap"]} if above else {"epochs": [8], "stopped": [None]}
        assert trained.outcome["chosen"] == due, (allowed, gaps)


def test_reinit_top_begins_the_top_layers_anew_by_the_models_own_code(bench):
    still = {"train": ["all"], "rate": 1e-30, "weight_decay": 0.0, "epochs": 1, "reinit_top": 2}
    one, same, other = (bench.train(bench.spec(still, seed=seed))[1].encoder for seed in (1, 1, 2))
    assert equal(one, same) and not equal(one, other)
    pretrained = Encoder.load(bench.encoder)
    for part, named in pretrained.components().items():
        for name, value in named:
            assert torch.equal(one[name], value) == (part in ("embeddings", "layer.1")), name
    scale = pretrained.model.config.initializer_range
    matrices = [value for name, value in one.items() if "layer.2" in name and value.ndim == 2]
    assert torch.cat([m.flatten() for m in matrices]).std().item() == pytest.approx(scale, rel=0.1)
    for name, value in one.items():
        if "layer.2" in name and "Norm" in name:
            assert torch.allclose(value, torch.full_like(value, name.endswith("weight")), atol=1e-20), name


def test_the_plan_stores_what_stages_read_and_counts_what_they_compute():
    plan = load_plan(
        {**read_config([str(HOME / "tests/base.yaml")]), "strategies": ["gradual_unfreezing", "full"]}, HOME
    )
    gradual, full = (next(r for r in plan.runs if r.strategy == name) for name in ("gradual_unfreezing", "full"))
    spec = plan.job("train", gradual.key).spec
    key = plan.job("train", gradual.key).store
    assert plan.boundaries[key] == [0, 1, 2, 3, 4, 5, 6]
    row = next(one["row"] for one in plan.job("collect", "demo").spec["results"] if one["names"] == gradual.names)
    assert (row["thawed"], row["embeddings"]) == (6, True)
    whole = training_operations(plan, plan.job("train", full.key).spec, key)  # 400 updates of 6 layers forward, 12 back
    stages = sum(3 * n for n in range(7)) + 18  # 50 updates each of 0 to 6 layers from the store, and of everything
    assert training_operations(plan, spec, key) == pytest.approx(whole * stages / (8 * 18))


def test_layers_above_the_highest_that_a_head_reads_are_not_counted():
    plan = load_plan({**read_config([str(HOME / "tests/base.yaml")]), "strategies": ["full"]}, HOME)
    key = next(run.key for run in plan.runs if run.strategy == "full")
    spec, store = plan.job("train", key).spec, plan.job("train", key).store
    (phase,) = spec["phases"]
    lower = [part for part in phase["components"] if part not in ("layer.3", "layer.4", "layer.5")]
    read = spec | {
        "head": spec["head"] | {"layers": {"combine": "one", "layer": 3}},
        "phases": [phase | {"components": lower}],
    }
    assert training_operations(plan, read, store) == pytest.approx(training_operations(plan, spec, store) / 2)


def test_an_order_of_its_own_is_shared_by_all_seeds():
    streams = [
        RunState(1, PhaseConfig(train=["all"], order=order), seed) for seed, order in ((1, 7), (2, 7), (2, None))
    ]
    assert streams[0].stream("order", 1) == streams[1].stream("order", 1) != streams[2].stream("order", 1)
    assert streams[0].stream("dropout", 1) != streams[1].stream("dropout", 1) == streams[2].stream("dropout", 1)


def test_a_sweep_over_a_key_of_phases_sets_it(tmp_path):
    (tmp_path / "my").mkdir()
    entry = "strategies: {ordered: {sweep: {order: [1, 2]}, phases: [{train: [all], epochs: 1}]}}"
    (tmp_path / "my/strategies.yaml").write_text(entry)
    chosen = {"tasks": ["acceptability"], "encoders": ["minilm"], "strategies": ["ordered", "full"], "seeds": [3]}
    plan = load_plan(Workplace.experiment("mine", **chosen) | {"catalogues": [str(tmp_path / "my")]}, HOME)
    found = {run.variant: plan.job("train", run.key).spec["phases"][0] for run in plan.runs}
    assert [found[name].get("order") for name in ("order01", "order02", "base")] == [1, 2, None]
