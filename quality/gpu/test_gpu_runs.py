"""Whole runs on a card: every strategy, equal bits, what was killed, and what a CPU and a card say of one run.

The numbers in the names are those of the list of smoke tests.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from cards import PATH, card, device

from test_device_runs import (
    SHIPPED,
    WAYS,
    finished,
    going_on,
    inputs_of,
    kept_run,
    placed,
    seen_after_resume,
    stopped,
    trained_by,
)
from test_progress import WAYS as STOPPED
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.digests import canonical
from thaw.core.files import read_json
from thaw.encoders.parity import check_resume
from thaw.encoders.transformers import Encoder
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.training.further_training import Pretraining
from thaw.training.training_run import TrainingRun, train
from tiny_corpus import Bench, rows, tiny_corpus
from tiny_students import with_transfer_set
from trained import equal, losses, tensors

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    few = {"train": rows("classification", 16, 1), "validation": rows("classification", 8, 2)}
    corpus = tiny_corpus(folder / "data", "classification", **few, test=rows("classification", 8, 3))
    made = Bench(folder, "bert", corpus, "classification")
    with_transfer_set(made, folder / "stsb", "stsb")
    return made


@pytest.fixture(scope="module")
def teacher(bench, tmp_path_factory):
    """A run of all of the encoder that was kept."""
    return kept_run(bench, tmp_path_factory.mktemp("teacher"))


@pytest.mark.parametrize("name", [*SHIPPED, *WAYS])
def test_2_every_kind_of_strategy(name, bench, teacher, tmp_path, device):
    left = trained_by(name, bench, teacher, tmp_path, device)
    assert all(parameter.device.type == device.type for parameter in left.head.parameters())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("train", [["head"], ["head", {"top": "k"}], ["all"]], ids=str)
def test_3_the_same_spec_twice_has_the_same_bits(train, precision, bench, device):
    spec = bench.spec({"train": train, "epochs": 2, "precision": precision})
    one, other = finished(bench, spec, device), finished(bench, spec, device)
    assert equal(tensors(one), tensors(other)) and one.outcome == other.outcome and losses(one) == losses(other)


def test_3_the_step_writes_the_same_bytes(bench, tmp_path, card):
    spec = bench.spec({"train": ["all"], "epochs": 2})
    for name in ("one", "other"):
        bench.step("train", spec, tmp_path / name)
    for file in ("metrics.json", "head.safetensors", "history.csv", "predictions.parquet"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes(), file
    cost = read_json(tmp_path / "one" / "cost.json")
    assert cost["deterministic"] is True and cost["peak_memory_mb"] > 0 and "driver" in cost["versions"]


@pytest.mark.parametrize("way", ["l2_to_start", "best", "gradual", "lora"])
def test_4_what_goes_on_ends_with_the_bits_of_what_was_never_stopped(way, bench, tmp_path, device, monkeypatch):
    spec = bench.spec(*STOPPED[way])
    whole = going_on(bench, spec, tmp_path / "whole", device)
    stopped(bench, spec, tmp_path / "stopped", device, monkeypatch)
    seen = seen_after_resume(monkeypatch)
    again = going_on(bench, spec, tmp_path / "stopped", device)
    assert seen["optimizer"] and all(value.device.type == device.type for value in seen["optimizer"])
    assert equal(tensors(again), tensors(whole)) and losses(again) == losses(whole)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_5_resumed_is_full_at_every_boundary(precision, bench, device):
    batch = bench.store.batch("train", list(range(8))).to(device)
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
        states = Encoder.load(bench.encoder).to(device).boundaries(batch)
        for boundary in range(bench.layers):
            resumed = Encoder.load(bench.encoder).resume_at(boundary).to(device)
            assert torch.equal(resumed(batch, states[boundary])[batch.mask], states[-1][batch.mask]), boundary
    check_resume(bench.encoder, device)


def without_dropout(bench: Bench, folder, device) -> list[float]:
    """Return the losses of twenty updates of all layers, with every dropout at 0."""
    run = placed(
        TrainingRun(bench.spec({"train": ["all"], "epochs": 5}), replace(inputs_of(bench, device), encoder=folder)),
        device,
    )
    return losses(train([run], Stopwatch())[0])


def test_6_states_and_losses_are_near_the_cpus(bench, tmp_path, device):
    import shutil

    folder = tmp_path / "encoder"
    shutil.copytree(bench.encoder, folder)
    config = json.loads((folder / "config.json").read_text())
    dropouts = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config | dropouts))
    cpu, batch = torch.device("cpu"), bench.store.batch("train", list(range(8)))
    here = Encoder.load(folder).boundaries(batch)
    there = Encoder.load(folder).to(device).boundaries(batch.to(device))
    for one, other in zip(here, there, strict=True):
        assert torch.allclose(one[batch.mask], other.cpu()[batch.mask], atol=1e-4)
    assert without_dropout(bench, folder, device) == pytest.approx(without_dropout(bench, folder, cpu), abs=1e-3)


def test_16_memory_that_is_not_enough_is_named_and_the_next_run_works(bench, card):
    from thaw.core.runtime import explain_error

    torch.cuda.set_per_process_memory_fraction(1e-4)
    try:
        with pytest.raises(torch.OutOfMemoryError) as caught:
            torch.empty(2**32, device=card)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "GPU out of memory" in explain_error(caught.value)
    torch.cuda.empty_cache()
    assert finished(bench, bench.spec({"train": ["all"], "epochs": 1}), card).outcome["scores"]


def test_18_bf16_computes_in_bf16(bench, card):
    from thaw.training.task_model import TaskModel, resumed

    if torch.cuda.get_device_capability() < (8, 0):
        trained = finished(bench, bench.spec({"train": ["all"], "precision": "bf16", "epochs": 1}), card)
        assert trained.cost["precision"] == "fp32"
        return
    spec, kinds = bench.spec({"train": ["all"], "precision": "bf16"}), set()
    run = placed(TrainingRun(spec, inputs_of(bench, card)), card)
    encoder = resumed(bench.encoder, None, run.highest, {}, card)
    for name, module in encoder.named_modules():
        if isinstance(module, torch.nn.Linear) and ".pooler." not in f".{name}.":
            module.register_forward_hook(lambda module, given, made: kinds.add(made.dtype))
    TaskModel(encoder, run.head, "bf16")(bench.store.batch("train", [0, 1]).to(card), {})
    assert kinds == {torch.bfloat16}


def test_19_further_pretraining(bench, device):
    entry = FurtherPretrainingConfig(phase={"rate": 3e-3, "batch_size": 4, "epochs": 2})
    here, _ = Pretraining(entry, bench.store, bench.encoder, torch.device("cpu")).train(Stopwatch())
    there, _ = Pretraining(entry, bench.store, bench.encoder, device).train(Stopwatch())
    assert there["held_out"]["loss"][0] == pytest.approx(here["held_out"]["loss"][0], abs=1e-3)
    assert there["held_out"]["loss"][-1] != there["held_out"]["loss"][0]


def test_20_what_a_card_left_is_read_on_a_cpu(bench, tmp_path, card):
    """States of the adapted encoder, and the predictions of an export, by processes that see no card."""
    subset = {"rows": 10}
    spec = bench.spec({"train": ["head", {"top": 1}], "epochs": 1}, subset=subset, keep=True)
    run = bench.step("train", spec, tmp_path / "run")
    read = {"version": 1, "task": spec["task"], "subset": subset, "rows": "outside", "layers": 3, "dtype": "fp32"}
    read |= {"compute": {"threads": 1}, **bench.upstream, "run": read_json(run / "metrics.json")["digest"]}
    command = [sys.executable, "-m", "thaw.steps.features_adapted", "--spec", canonical(read)]
    command += ["--data", bench.corpus.folder, "--encoder", bench.encoder, "--features", bench.features]
    command += ["--run", run / "metrics.json", "--out", tmp_path / "adapted"]
    hidden = os.environ | {"PYTHONPATH": PATH, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(list(map(str, command)), env=hidden, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "adapted" / "card.json").is_file()
