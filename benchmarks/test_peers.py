"""The benchmark's peers on a tiny encoder: each does the work that it is given. They need packages of their own."""

import numpy as np
import pytest
import torch

from benchmarks import work
from benchmarks.texts import Texts
from thaw.heads.convex import fit_classes
from tiny import tiny_encoder

for package in ("accelerate", "sentence_transformers"):
    pytest.importorskip(package, reason="benchmarks/requirements.txt is not installed")

from benchmarks.peers import (  # noqa: E402
    all_layers,
    boundary_loop,
    cached_loop,
    layer_states,
    models,
    probe_loop,
    script,
    sentence_vectors,
    trainer,
)
from benchmarks.peers.common import Clock, Reused  # noqa: E402

RECIPES = {"default": False, "tuned": False, "compiled": True}


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> dict:
    """A task of two labels that one word tells apart, and an encoder of three layers."""
    folder = tmp_path_factory.mktemp("peers")
    words = ["small", "old", "river", "house", "green"]
    rows = [
        {"text": f"{'cat' if i % 2 else 'dog'} {words[i % 5]} " * (1 + i % 3), "label": "ab"[i % 2]} for i in range(40)
    ]
    task = Texts("t", ["text"], ["a", "b"], {"train": rows, "validation": rows[:9], "test": rows[9:20]})
    task.write(folder / "t")
    encoder = str(tiny_encoder("bert", folder / "encoder"))
    return {"encoder": encoder, "tasks": {"t": task.for_peers(folder / "t")}, "features": str(folder)}


@pytest.mark.parametrize(("recipe", "bf16"), [("default", False), ("tuned", False), ("tuned", True)])
def test_the_trainer_trains_each_cell_and_scores_what_is_asked(job, recipe, bf16):
    strategies = work.table(3)
    (gradual,) = work.cells(["t"], {"bench_gradual": strategies["bench_gradual"]}, [1], 3)
    heads = [cell for cell in work.grid_cells("t", [2]) if cell["phases"][0]["rate"] == 1e-2]
    clock = Clock()
    given = {"recipe": recipe, "bf16": bf16, "splits": ["validation", "test"], "cells": [gradual, *heads]}
    found = trainer.main(job | given, clock)["cells"]
    assert [cell["head"] for cell in found] == ["pooler", "linear", "mlp"] and set(clock.parts) == {
        "load",
        "train",
        "evaluate",
    }
    assert all(set(cell["scores"]) == {"validation", "test"} for cell in found)
    assert max(cell["scores"]["test"] for cell in found[1:]) > 0.9


def test_the_compiled_recipe_compiles(job, tmp_path):
    (cell,) = work.cells(["t"], {work.FULL: work.full()}, [1], 3)
    asked = {name: trainer.arguments(name, cell, cell["phases"][0], str(tmp_path), False) for name in RECIPES}
    assert {name: bool(one.torch_compile) for name, one in asked.items()} == RECIPES


def test_lora_trains_its_matrices_and_the_head_in_the_layers_that_are_named(job):
    pytest.importorskip("peft", reason="benchmarks/requirements.txt is not installed")
    (cell,) = work.cells(["t"], {"bench_lora_2": work.lora(2)}, [1], 3)
    (phase,) = cell["phases"]
    model = models.with_lora(models.build("pooler", job["encoder"], 2), phase)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    inside = {name.split(".")[5] for name in trained if "lora" in name}
    assert phase["layers"] == [1, 2] and inside == {"1", "2"}
    assert {part for part in ("pooler", "classifier", "embeddings") if any(part in name for name in trained)} == {
        "pooler",
        "classifier",
    }
    phase["rate"], phase["stages"][0]["epochs"] = 1e-2, 10  # a tiny encoder learns nothing at the rate of MiniLM
    given = {"recipe": "tuned", "bf16": False, "splits": ["test"], "cells": [cell]}
    (found,) = trainer.main(job | given, Clock())["cells"]
    assert found["scores"]["test"] > 0.9


def test_unfreezing_thaws_what_a_stage_trains_when_it_begins(job):
    model = models.build("pooler", job["encoder"], 2)
    stages = [{"epochs": 2, "components": ["head"]}, {"epochs": 1, "components": ["head", "layer.3"]}]
    unfreezing = trainer.Unfreezing(stages)
    seen = []
    for epoch in range(3):
        unfreezing.on_epoch_begin(None, type("State", (), {"epoch": float(epoch)}), None, model=model)
        seen.append({models.component(name) for name, p in model.named_parameters() if p.requires_grad})
    assert seen == [{"head"}, {"head"}, {"head", "layer.3"}]


@pytest.mark.parametrize("bf16", [False, True])
def test_the_cached_loop_trains_all_heads(job, bf16):
    cells = [cell for cell in work.grid_cells("t", [1, 2]) if cell["phases"][0]["rate"] == 1e-2]
    found = cached_loop.main(job | {"cells": cells, "bf16": bf16}, Clock())["cells"]
    assert [(cell["head"], cell["seed"]) for cell in found] == [
        (head, seed) for head in ("linear", "mlp") for seed in (1, 2)
    ]
    assert min(cell["scores"]["test"] for cell in found) > 0.9


@pytest.mark.parametrize("bf16", [False, True])
def test_the_boundary_loop_trains_each_strategy_from_the_states_below_it(job, bf16):
    cells, clock = work.cells(["t"], work.table(3), [1], 3), Clock()
    for phase in (phase for cell in cells for phase in cell["phases"]):
        phase["rate"] = 5e-3  # a tiny encoder learns nothing at the rates of MiniLM
    given = {"cells": cells, "bf16": bf16, "compiled": False, "splits": ["validation", "test"]}
    found = boundary_loop.main(job | given, clock)["cells"]
    assert [cell["strategy"] for cell in found] == list(work.table(3)) and "features" in clock.parts
    assert max(cell["scores"]["test"] for cell in found) > 0.9


def test_each_cell_of_the_boundary_loop_starts_from_the_pretrained_weights(job):
    pretrained = boundary_loop.Pretrained(job["encoder"], compiled=False)
    loaded = models.build("pooler", job["encoder"], 2).bert.state_dict()
    first = {name: value.clone() for name, value in pretrained.start(1, 3).state_dict().items()}
    for parameter in pretrained.model.parameters():
        parameter.data += 1
        parameter.grad = parameter.data
    again, other = pretrained.start(1, 3).state_dict(), pretrained.start(2, 2)
    assert all(value.equal(first[name]) for name, value in again.items())
    assert all(value.equal(loaded[name]) for name, value in other.bert.state_dict().items())
    assert other.classifier.out_features == 2 and all(parameter.grad is None for parameter in other.parameters())


def test_the_compiled_loop_compiles_each_layer(job):
    for compiled in (False, True):
        layers = boundary_loop.Pretrained(job["encoder"], compiled).model.bert.encoder.layer
        assert {layer._compiled_call_impl is not None for layer in layers} == {compiled}


@pytest.mark.parametrize("compiled", [False, True])
def test_states_of_a_boundary_give_what_the_whole_model_gives(job, compiled):
    tokenizer = boundary_loop.AutoTokenizer.from_pretrained(job["encoder"])
    model = models.build("pooler", job["encoder"], 2).eval()
    rows = boundary_loop.Rows(job | {"bf16": False, "compiled": compiled}, job["tasks"]["t"], "test", tokenizer)
    rows.keep(model, {0, 2, 3})
    texts = boundary_loop.read_rows(job["tasks"]["t"], "test")[0][:4]
    with torch.no_grad():
        whole = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
        for below in (boundary_loop.TEXT, 0, 2, 3):
            states, mask = rows.batch(below, [0, 1, 2, 3])
            assert not compiled or states.shape[1] % boundary_loop.ROUNDED == 0
            found = boundary_loop.logits(model, below, states, mask)
            torch.testing.assert_close(found, whole, atol=1e-6, rtol=1e-5)


def test_a_phase_that_another_cell_has_trained_is_not_trained_again(job):
    strategies = {name: work.table(3)[name] for name in ("bench_frozen", "bench_stack")}
    frozen, stack = work.cells(["t"], strategies, [1], 3)
    reused, model = Reused([frozen, stack]), models.build("pooler", job["encoder"], 2)
    assert reused.start(stack, model) == 0
    model.classifier.bias.data.fill_(7.0)
    reused.keep(frozen, 1, model)
    other = models.build("pooler", job["encoder"], 2)
    assert reused.start(stack, other) == 1 and other.classifier.bias.tolist() == [7.0, 7.0]
    assert reused.start(frozen, other) == 0


def test_the_probe_loop_reads_what_is_computed_once(job):
    layer_states.main(job, Clock())
    found = probe_loop.main(job | {"strengths": [1e-3, 1e-1]}, Clock())["cells"]
    assert [(cell["layer"], cell["strength"]) for cell in found] == [(n, s) for n in range(4) for s in (1e-1, 1e-3)]
    assert found[-1]["scores"]["test"] > 0.9


def test_the_pipeline_on_all_layers_chooses_a_strength_for_each_cell(job):
    cells = [{"task": "t", "name": f"n{n}", "rows": list(range(n))} for n in (10, 40)]
    found = all_layers.main(
        job | {"cells": cells, "strengths": [1e-3, 1e3], "fit_threads": 1, "tolerance": 1e-4}, Clock()
    )["cells"]
    assert [cell["cell"] for cell in found] == ["n10", "n40"] and found[1]["scores"]["test"] == 1


def test_the_pipeline_has_the_least_objective_that_ours_has(job):
    given = {"cells": [{"task": "t", "name": "all", "rows": list(range(40))}], "strengths": [1e-1, 1.0]}
    loose, near = all_layers.main(job | given | {"tolerances": [1.0, 1e-7]}, Clock())["objectives"].values()
    vectors, labels = (np.load(f"{job['features']}/all.train.{name}.npy") for name in ("states", "labels"))
    (ours,) = fit_classes(torch.from_numpy(vectors), torch.from_numpy(labels), 2, given["strengths"], 1e-9)
    assert near == pytest.approx([one.objective for one in ours], rel=1e-4) and loose[0] > 1.01 * near[0]


def test_boosting_fits_the_rows_of_each_cell(job):
    cells = [{"task": "t", "name": f"n{n}", "seed": 1, "rows": list(range(n))} for n in (4, 40)]
    given = {"cells": cells, "boosting": True, "bf16": False}
    found = sentence_vectors.main(job | given, Clock())["cells"]
    assert [cell["cell"] for cell in found] == ["n4", "n40"] and found[1]["scores"]["test"] > found[0]["scores"]["test"]


def test_the_script_scores_a_file_that_one_word_decides(job, tmp_path):
    rows = [f"{'cat' if i % 2 else 'dog'} sings,{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "texts.csv").write_text("\n".join(["said,label", *rows]))
    assert script.main(job | {"file": str(tmp_path / "texts.csv"), "text": "said"}, Clock())["score"] == 1


def test_setfit_trains_on_the_rows_of_a_cell(job, tmp_path):
    pytest.importorskip("setfit", reason="benchmarks/requirements-setfit.txt is not installed")
    from benchmarks.peers import setfit_loop

    cells = [{"task": "t", "name": "n8", "seed": 1, "rows": list(range(8))}]
    found = setfit_loop.main(job | {"cells": cells, "out": str(tmp_path)}, Clock())["cells"]
    assert found[0]["scores"]["test"] > 0.9
