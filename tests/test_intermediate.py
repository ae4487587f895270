"""Starting from a run on another task: its encoder goes over, its head stays behind; plan, training and costs."""

import pandas
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from plans import plan_with
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.outputs.frame import collection
from tiny_corpus import Bench, tiny_corpus

KEPT = "  kept: {phases: [{train: [head, {top: 2}]}], keep: true}\n"
NEXT = "  next: {phases: [{train: [head, {top: 3}]}], after: {strategy: kept, task: entities}}\n"


def test_the_plan_trains_the_intermediate_task_first(tmp_path):
    plan = plan_with(tmp_path / "my", KEPT + NEXT, strategies=["next"], subsets=["n100_d1"])
    before = "runs/entities/all/minilm/linear/kept/base/seed1"
    job = plan.job("train", "runs/acceptability/n100_d1/minilm/linear/next/base/seed1")
    assert job.inputs["start"] == [f"results/{before}/metrics.json"]
    assert job.spec["after"] == {"run": plan.job("train", before).digest, "epoch": "last", "encoder_alone": True}
    assert job.spec["phases"][0]["boundary"] == 3, "what the intermediate task left alone is still that of the store"
    (result,) = [found for found in collection.selected(plan.job("collect", "demo").spec) if found.needs]
    assert result.paid == [before]


def test_it_is_not_run_on_the_task_that_it_starts_from(tmp_path):
    plan = plan_with(tmp_path / "my", KEPT + NEXT, strategies=["next"], tasks=["acceptability", "entities"])
    assert {run.task for run in plan.runs if run.strategy == "next"} == {"acceptability"}


SWEPT = "  swept: {phases: [{train: [head, {top: k}]}], sweep: {k: [1, 2]}, keep: true}\n"


def test_a_variant_names_the_point_of_a_sweep_that_is_started_from(tmp_path):
    """What is printed of `variant:` is what is trained; without one, or with another, there is no such run."""
    later = "  next: {{phases: [{{train: [head, {{top: 3}}]}}], after: {{strategy: swept{}}}}}\n"
    plan = plan_with(tmp_path / "my", SWEPT + later.format(", variant: k02"), strategies=["next"])
    job = plan.job("train", "runs/acceptability/all/minilm/linear/next/base/seed1")
    assert job.inputs["start"] == ["results/runs/acceptability/all/minilm/linear/swept/k02/seed1/metrics.json"]
    for wrong, said in (("", "has a run for each of"), (", variant: k09", "has no variant k09; there are")):
        with pytest.raises(UserError, match=f"next.after: swept {said} k01, k02"):
            plan_with(tmp_path / "my", SWEPT + later.format(wrong), strategies=["next"])


STILL = {"train": ["head", {"top": 1}], "boundary": 2, "epochs": 1, "rate": 1e-12, "head_rate": 1e-12}  # changes no bit


def test_a_run_on_another_task_begins_with_exactly_the_trained_encoder_and_a_new_head(tmp_path):
    """Its tensors are those of the first run's file, and its predictions those of transformers' model with them."""
    first, second = (
        Bench(tmp_path / kind, "bert", tiny_corpus(tmp_path / f"{kind}_data", kind), kind)
        for kind in ("classification", "regression")
    )
    learnt = first.spec({"train": ["head", {"top": 1}]}, keep=True)
    metrics = first.step("train", learnt, tmp_path / "learnt") / "metrics.json"
    after = {"run": read_json(metrics)["digest"], "epoch": "last", "encoder_alone": True}
    moved = second.step("train", second.spec(STILL, after=after, keep=True), tmp_path / "m", "--need", "start", metrics)
    fresh = second.step("train", second.spec(STILL, keep=True), tmp_path / "fresh")
    source, begun, own = (load_file(folder / "encoder.safetensors") for folder in (metrics.parent, moved, fresh))
    pretrained = load_file(second.encoder / "model.safetensors")
    assert set(source) == {name for name in pretrained if name.startswith("encoder.layer.2.")}
    assert source.keys() == begun.keys() and all(torch.equal(begun[name], source[name]) for name in source)
    assert all(torch.equal(own[name], pretrained[name]) for name in own)
    assert not any(torch.equal(source[name], pretrained[name]) for name in source if "weight" in name)
    head, new = (load_file(folder / "head.safetensors") for folder in (moved, fresh))
    assert all(torch.equal(head[name], new[name]) for name in new), "the head of a run that starts from none"
    for folder, tensors in ((moved, source), (fresh, {})):
        found = pandas.read_parquet(folder / "predictions.parquet").query("split == 'test'")["prediction"].tolist()
        assert found == pytest.approx(scored_by_transformers(second, tensors, new), abs=1e-5)


def scored_by_transformers(bench: Bench, tensors: dict, head: dict) -> list[float]:
    """Return what a linear head gives for each test text's first token, on an encoder with some tensors replaced."""
    model, tokenizer = AutoModel.from_pretrained(bench.encoder).eval(), AutoTokenizer.from_pretrained(bench.encoder)
    model.load_state_dict(model.state_dict() | tensors)
    found = []
    for text in bench.corpus.frame("test")["text"]:
        with torch.no_grad():
            state = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0]
        found.append((head["output.weight"] @ state + head["output.bias"]).item())
    return found
