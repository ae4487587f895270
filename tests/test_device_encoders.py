"""Every encoder on the pretended CUDA device (tests/pretended.py): read, resumed, trained; extraction; pretraining."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from pretended import pretended
from test_device_strategies import placed
from test_resume import padded_batch
from thaw.adaptation.peft_modules import Inserts
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.files import read_json
from thaw.encoders.parity import check_resume
from thaw.encoders.transformers import Encoder
from thaw.features.extract import StatesFormat, extract, remake
from thaw.features.store import FeatureStore
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.insert import InsertConfig
from thaw.training.further_training import Pretraining
from thaw.training.training_run import TrainingRun, train
from tiny import FAMILIES, tiny_encoder
from tiny_corpus import Bench, rows, tiny_corpus
from tiny_own import OWN


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    few = {"train": rows("classification", 8, 1), "validation": rows("classification", 4, 2)}
    torch.set_num_threads(1)
    return tiny_corpus(folder, "classification", **few, test=rows("classification", 4, 3))


@pytest.fixture(scope="module")
def bench(corpus, tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("bert"), "bert", corpus, "classification")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_read_and_resumed(family, tmp_path):
    encoder = Encoder.load(tiny_encoder(family, tmp_path))
    batch = padded_batch(encoder)
    here = encoder.boundaries(batch)
    with pretended() as device:
        batch, resumed = batch.to(device), Encoder.load(tmp_path).resume_at(1).to(device)
        there = encoder.to(device).boundaries(batch)
        for one, other in zip(here, there, strict=True):
            assert other.is_cuda and torch.allclose(one[batch.host.mask], other.cpu()[batch.host.mask], atol=1e-5)
        assert torch.equal(resumed(batch, there[1]).cpu(), there[-1].cpu())
        resumed.thaw({"layer.3"})
        resumed.train()
        resumed(batch, there[1]).sum().backward()
        assert all(p.grad.is_cuda for name in ("layer.3",) for _, p in resumed.components([name])[name])


@pytest.mark.parametrize("kind", OWN)
def test_every_kind_of_ours_is_read_and_has_a_head_trained(kind, corpus, tmp_path):
    bench = Bench(tmp_path, kind, corpus, "classification")
    encoder = Encoder.load(bench.encoder)
    batch = bench.store.batch("train", [0, 1, 2])
    here = encoder.boundaries(batch)
    with pretended() as device:
        there = encoder.to(device).boundaries(batch.to(device))
        assert all(torch.allclose(a, b.cpu(), atol=1e-5) for a, b in zip(here, there, strict=True))
        run = TrainingRun(bench.spec({"train": ["head"], "epochs": 1}), replace(bench.inputs(), device=device))
        train([placed(run, device)], Stopwatch())


@pytest.mark.parametrize("dtype, apart", [("fp32", 1e-5), ("bf16", 2e-2)])
def test_extraction_writes_what_the_cpu_writes(dtype, apart, corpus, tmp_path):
    bench = Bench(tmp_path, "bert", corpus, "classification", dtype=dtype)
    before = load_file(bench.store.payload_path(3))
    with pretended() as device:
        extract(FeatureStore(bench.features), Encoder.load(bench.encoder), [0, 3], StatesFormat(dtype), device)
    after = load_file(bench.store.payload_path(3))
    assert set(after) == set(before) and all(torch.allclose(after[n], before[n], atol=apart) for n in after)


def test_a_store_of_the_cpu_is_made_again_on_the_device(corpus, tmp_path):
    bench = Bench(tmp_path, "bert", corpus, "classification")
    before = load_file(bench.store.payload_path(3))
    bench.store.payload_path(3).unlink()
    with pretended() as device:
        store = FeatureStore(bench.features)
        store.require([3], lambda missing, rows: remake(store, bench.encoder, missing, device, rows))
    after = load_file(bench.store.payload_path(3))
    assert all(torch.allclose(after[name], before[name], atol=1e-5) for name in before)
    assert read_json(bench.features / "b3.json")["device"] == "pretended"


def test_a_resumed_encoder_is_proved_on_the_device(bench):
    with pretended() as device:
        check_resume(bench.encoder, device)


def test_further_pretraining(bench):
    entry = FurtherPretrainingConfig(phase={"rate": 3e-3, "batch_size": 4, "epochs": 1})
    said, _ = Pretraining(entry, bench.store, bench.encoder, torch.device("cpu")).train(Stopwatch())
    with pretended() as device:
        there, _ = Pretraining(entry, bench.store, bench.encoder, device).train(Stopwatch())
    assert there["held_out"]["loss"][0] == pytest.approx(said["held_out"]["loss"][0], abs=1e-4)


@pytest.mark.parametrize("kind", InsertConfig.model_fields["kind"].annotation.__args__)
def test_inserts_are_put_in_before_and_after_a_model_is_moved(kind, bench):
    with pretended() as device:
        encoder = Encoder.load(bench.encoder)
        Inserts(InsertConfig(kind=kind), (1, 3), 1).into(encoder)
        encoder.to(device)
        assert encoder.inserted() and all(parameter.is_cuda for _, parameter in encoder.inserted())
        assert encoder(bench.store.batch("train", [0, 1]).to(device)).is_cuda
