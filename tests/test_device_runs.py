"""Every kind of strategy, every encoder, and what was stopped, on the pretended CUDA device of pretended.py."""

import functools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, load_file, save

from conftest import HOME
from pretended import OnCuda, pretended
from test_progress import WAYS as STOPPED
from test_progress import Stopped, stop_after
from test_resume import padded_batch
from thaw.adaptation.selectors import PARTS
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.boundaries import taught_parts
from thaw.core.files import read_json
from thaw.core.processes import Processes
from thaw.encoders.parity import check_resume
from thaw.encoders.transformers import Encoder
from thaw.features.extract import StatesFormat, extract, meanwhile, remake
from thaw.features.store import FeatureStore, write_excerpt
from thaw.schema.catalogue import Catalogue
from thaw.schema.further_pretraining import FurtherPretrainingConfig
from thaw.schema.phases import InsertConfig, PhaseConfig
from thaw.schema.strategy import StrategyConfig
from thaw.schema.yaml_files import read_yaml
from thaw.training import progress
from thaw.training.further_training import Pretraining
from thaw.training.head_fitting import HeadFit
from thaw.training.progress import Progress
from thaw.training.seeds_together import train_heads
from thaw.training.taught import LOGITS, Teacher, TeacherOutputs
from thaw.training.training_run import Start, TrainingRun, train
from tiny import FAMILIES, tiny_encoder
from tiny_corpus import Bench, quick, rows, tiny_corpus
from tiny_own import OWN
from tiny_students import teach, with_parts, with_transfer_set

CATALOGUE = Catalogue([HOME / "config"])
KINDS = InsertConfig.model_fields["kind"].annotation.__args__

# What a phase may say that no shipped strategy says, or only beside other things; these are tried as they are.
WAYS = {
    "embeddings": {"train": ["embeddings"]},
    **{f"only {part}": {"train": ["head", {"top": "k", "only": part}]} for part in PARTS},
    "only two heads": {"train": ["head", {"top": "k", "only": {"heads": [0, 1]}}]},
    "only bias, all": {"train": [{"only": "bias"}]},
    **{f"insert {kind}": {"train": ["head"], "insert": {"kind": kind}} for kind in KINDS},
    "insert into all": {"train": ["head"], "insert": {"kind": "lora", "targets": "all", "top": 1}},
    "bert_adam": {"train": ["all"], "optimizer": "bert_adam", "betas": [0.8, 0.99], "order": 3},
    "l2_to_start": {"train": ["all"], "l2_to_start": 0.01, "layer_decay": 0.9},
    "slanted": {"train": ["all"], "schedule": "slanted_triangular"},
    "stop, with a layer": {"train": ["head", {"top": "k"}], "stop": {"gap": 0.02}, "patience": 1, "pick": "best"},
    "no clip": {"train": ["head", {"top": "k"}], "clip": None, "schedule": "cosine", "batches": "random"},
    "clip_over": {"train": ["head", {"top": "k"}], "frozen_dropout": True, "clip_over": "all"},
    "insert_size": {"train": ["head"], "insert": {"kind": "adapters"}, "insert_size": 2},
    "bf16": {"train": ["head", {"top": "k"}], "precision": "bf16", "batch_gib": 0.001},
    "updates": {"train": ["head", {"top": "k"}], "updates": 4, "judge": 2, "unfreeze": {}},
}
# Numbers, which are the same on all devices.
NOT_TRIED = set("rate head_rate epochs warmup warmup_of batch_size weight_decay l2".split())
STRENGTHS = {"l2": [1.0, 10.0]}  # of a head that is fitted; each is one fit more, and strong ones end soon


def said(entry: StrategyConfig) -> str:
    """Return what a strategy says but for numbers, by which strategies are told apart here."""
    kept = [
        phase.model_dump(mode="json", exclude_defaults=True, exclude=NOT_TRIED | {"updates", "judge"})
        | {"counts_updates": phase.updates is not None}
        for phase in entry.phases
    ]
    return json.dumps([kept, entry.after is not None, entry.student is not None, entry.teacher is not None])


def few_updates(phase: PhaseConfig) -> dict:
    """Return how long a phase lasts here: each stage has an update, and the last one more."""
    if phase.optimizer == "lbfgs":
        return STRENGTHS
    staged = phase.unfreeze is not None or phase.one_by_one
    return {"epochs": 1} if phase.updates is None else {"updates": 10 if staged else 2, "judge": 2}


def shipped() -> dict[str, list[dict]]:
    """Return by name the phases of the shipped strategies, one strategy of each kind, with numbers that are quick."""
    found = {}
    for name in read_yaml(HOME / "config" / "strategies.yaml").content["strategies"]:
        entry = CATALOGUE.get("strategies", name, "test")
        phases = [quick(phase) | few_updates(phase) for phase in entry.phases]
        for later in phases[1:]:
            if later["train"] == ["head"]:  # on layers that an earlier phase has trained: as planned, from text
                later["boundary"] = None
        found.setdefault(said(entry), (name, phases))
    return dict(found.values())


SHIPPED = shipped()


def words(value, path=()):
    """Yield what a strategy says: each key by its way there, with its value where that is a word."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from words(one, (*path, key) if isinstance(value, dict) else path)
    yield (*path, value) if isinstance(value, str | bool) else path


def few_that_say_all() -> list[str]:
    """Return shipped strategies that together say whatever one of them says."""
    said_by = {name: {*words(json.loads(said(CATALOGUE.get("strategies", name, "test"))))} for name in SHIPPED}
    left, chosen = set().union(*said_by.values()), []
    while left:
        chosen.append(max(said_by, key=lambda name: len(said_by[name] & left)))
        left -= said_by[chosen[-1]]
    return chosen


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """Benches with a small BERT and few rows, by task type."""
    folder, found = tmp_path_factory.mktemp("benches"), {}
    for kind in ("classification", "spans"):
        few = {split: rows(kind, count, seed) for split, count, seed in (("train", 8, 1), ("validation", 4, 2))}
        corpus = tiny_corpus(folder / kind / "data", kind, **few, test=rows(kind, 4, 3))
        found[kind] = Bench(folder / kind, "bert", corpus, kind)
    with_transfer_set(found["classification"], folder / "stsb", "stsb")
    torch.set_num_threads(1)
    return found


@pytest.fixture(scope="module")
def bench(benches):
    """The one whose rows are texts with a class."""
    return benches["classification"]


def kept_run(bench: Bench, folder: Path) -> Path:
    """Return the metrics.json of a run of all of the encoder that was kept: a teacher."""
    return bench.step("train", bench.spec({"train": ["all"]}, keep=True), folder) / "metrics.json"


@pytest.fixture(scope="module")
def teacher(benches, tmp_path_factory):
    """A teacher on the classification bench."""
    return kept_run(benches["classification"], tmp_path_factory.mktemp("teacher"))


def inputs_of(bench: Bench, device, spec: dict | None = None):
    """Return what a run reads, on a device."""
    return replace(bench.inputs(spec=spec), device=device)


def placed(run: TrainingRun | HeadFit, device) -> TrainingRun | HeadFit:
    """Let a run compute on a device, as the steps do when its turn has come; what it reads is there already."""
    run.head.to(device)
    return run


def finished(bench: Bench, spec: dict, device, start: Start | None = None, taught=None):
    """Train a run on a device, by the code of the steps train and fit_heads; return what it leaves."""
    if spec["phases"][0].get("optimizer") == "lbfgs":
        bare = {key: value for key, value in spec.items() if key != "seed"}
        return placed(HeadFit(bare, inputs_of(bench, device)), device).run(Stopwatch())
    return train(
        [placed(TrainingRun(spec, inputs_of(bench, device, spec), start, taught=taught), device)], Stopwatch()
    )[0]


def on_cpu(tensors: dict) -> dict:
    """Return tensors as a file gives them back."""
    return load(save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}))


def trained_by(name: str, bench: Bench, teacher: Path, folder: Path, device):
    """Train by a shipped strategy, or in one of the WAYS, on a device; return what the run leaves."""
    if name in WAYS:
        return finished(bench, bench.spec(WAYS[name]), device)
    entry, start, taught = CATALOGUE.get("strategies", name, "test"), None, None
    spec = with_parts(bench, entry, bench.spec(*SHIPPED[name]))
    if entry.teacher:
        taught = TeacherOutputs(teach(bench, teacher, spec["phases"], folder / "taught"), taught_parts(spec["phases"]))
    if entry.after:
        before = finished(bench, bench.spec({"train": ["head", {"top": "k"}]}), device)
        start = Start(on_cpu(before.head.state_dict()), on_cpu(before.encoder))
    return finished(bench, spec, device, start, taught)


@pytest.mark.parametrize("name", [*few_that_say_all(), *WAYS])
def test_every_kind_of_strategy(name, benches, teacher, tmp_path):
    with pretended() as device:
        left = trained_by(name, benches["classification"], teacher, tmp_path, device)
        assert all(parameter.is_cuda for parameter in left.head.parameters())
        assert set(left.predictions) >= {"train", "validation", "test"}


def test_a_teacher_gives_the_cpus_logits(benches, teacher, tmp_path):
    bench, rows_read = benches["classification"], np.arange(8)
    folders = [tmp_path / "here", tmp_path / "there"]
    stores = [write_excerpt(bench.store, folder, {"train": rows_read}, {}) for folder in folders]
    digest, form = read_json(teacher)["digest"], StatesFormat("fp32")
    Teacher(bench.inputs(), teacher, digest).write(stores[0], rows_read, [], form, torch.device("cpu"))
    with pretended() as device:
        Teacher(inputs_of(bench, device), teacher, digest).write(stores[1], rows_read, [], form, device)
    here, there = (load_file(folder / LOGITS)["logits"] for folder in folders)
    assert torch.allclose(here, there, atol=1e-5)


def test_every_key_of_a_phase_is_tried():
    tried = {key for phases in [*SHIPPED.values(), list(WAYS.values())] for phase in phases for key in phase}
    assert set(PhaseConfig.model_fields) - tried - NOT_TRIED == set()


def test_words_with_a_layer(benches):
    bench = benches["spans"]
    spec = bench.spec({"train": ["head", {"top": "k"}]}, head={"kind": "crf"})
    with pretended() as device:
        assert finished(bench, spec, device).history[-1]["loss"] > 0


@pytest.mark.parametrize("kind", ["classification", "spans"])
def test_heads_side_by_side_have_the_cpus_losses(kind, benches):
    bench = benches[kind]
    specs = [bench.spec({"train": ["head"]}, seed=seed) for seed in (1, 2, 3)]
    here = train_heads([TrainingRun(spec, bench.inputs()) for spec in specs], Stopwatch(), Processes(1))
    with pretended() as device:
        shared = inputs_of(bench, device)
        there = train_heads([placed(TrainingRun(spec, shared), device) for spec in specs], Stopwatch(), Processes(1))
    for one, other in zip(here, there, strict=True):
        losses = [[note["loss"] for note in left.history] for left in (one, other)]
        assert losses[0] == pytest.approx(losses[1], abs=1e-4)
        assert one.outcome["rows"] == other.outcome["rows"]


# --- encoders, extraction and pretraining ---------------------------------------------------------------------------


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
def test_every_kind_of_ours_is_read_and_has_a_head_trained(kind, bench, tmp_path):
    own = Bench(tmp_path, kind, bench.corpus, "classification")
    encoder = Encoder.load(own.encoder)
    batch = own.store.batch("train", [0, 1, 2])
    here = encoder.boundaries(batch)
    with pretended() as device:
        there = encoder.to(device).boundaries(batch.to(device))
        assert all(torch.allclose(a, b.cpu(), atol=1e-5) for a, b in zip(here, there, strict=True))
        finished(own, own.spec({"train": ["head"], "epochs": 1}), device)


@pytest.mark.parametrize("dtype, apart", [("fp32", 1e-5), ("bf16", 2e-2)])
@pytest.mark.parametrize("kind", ["classification", "spans"])
def test_extraction_writes_what_the_cpu_writes(kind, dtype, apart, benches, tmp_path):
    own = Bench(tmp_path, "bert", benches[kind].corpus, kind, dtype=dtype)
    parts = [0, 3, "pooled", "attention2", *(["words"] if kind == "spans" else [])]

    def written(device) -> dict:
        store = FeatureStore(own.features)
        extract(store, Encoder.load(own.encoder), parts, StatesFormat(dtype), device)
        return {part: load_file(store.payload_path(part)) for part in parts}

    here = written(torch.device("cpu"))
    with pretended() as device:
        there = written(device)
    for part in parts:
        assert set(here[part]) == set(there[part]) >= {"train", "validation", "test"}
        assert all(torch.allclose(there[part][split], here[part][split], atol=apart) for split in here[part]), part


def test_what_fails_in_the_thread_that_writes_is_raised():
    def full() -> None:
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"), meanwhile(torch.device("cuda")) as call:
        call(full)
    written = []
    with meanwhile(torch.device("cuda")) as call:
        for number in range(20):
            call(functools.partial(written.append, number))
    assert written == list(range(20))


def test_a_store_of_the_cpu_is_made_again_on_the_device(bench, tmp_path):
    own = Bench(tmp_path, "bert", bench.corpus, "classification")
    before = load_file(own.store.payload_path(3))
    own.store.payload_path(3).unlink()
    with pretended() as device:
        store = FeatureStore(own.features)
        store.require([3], lambda missing, rows: remake(store, own.encoder, missing, device, rows))
    after = load_file(own.store.payload_path(3))
    assert all(torch.allclose(after[name], before[name], atol=1e-5) for name in before)
    assert read_json(own.features / "b3.json")["device"] == "pretended"


def test_a_resumed_encoder_is_proved_on_the_device(bench):
    with pretended() as device:
        check_resume(bench.encoder, device)


def test_further_pretraining(bench):
    entry = FurtherPretrainingConfig(phase={"rate": 3e-3, "batch_size": 4, "epochs": 1})
    said, _ = Pretraining(entry, bench.store, bench.encoder, torch.device("cpu")).train(Stopwatch())
    with pretended() as device:
        there, _ = Pretraining(entry, bench.store, bench.encoder, device).train(Stopwatch())
    assert there["held_out"]["loss"][0] == pytest.approx(said["held_out"]["loss"][0], abs=1e-4)


# --- what was stopped and goes on ------------------------------------------------------------------------------------


def going_on(bench: Bench, spec: dict, folder, device):
    """Begin a run that keeps its progress in a folder, or go on with it; return what it leaves."""
    watch = Stopwatch()
    run = placed(TrainingRun(spec, inputs_of(bench, device)), device)
    return train([run], watch, Progress(folder, spec, watch, device))[0]


def stopped(bench: Bench, spec: dict, folder, device, monkeypatch, count: int = 1) -> None:
    """Let a run be stopped after so many epochs."""
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        patched.setattr(progress, "SPACING", 0.0)
        stop_after(patched, count)
        going_on(bench, spec, folder, device)


def seen_after_resume(monkeypatch) -> dict:
    """Note where the state of a phase is as it goes on: start, kept weights, what the optimizer knows.

    Of a later stage the start may wait on the CPU until it trains.
    """
    resume, seen = Progress.resume, {}

    def noting(self, training):
        resume(self, training)
        (run_state,) = training.states
        known = [value for held in training.optimizer.state.values() for value in held.values()]
        seen["start"] = [start for name, start in run_state.start.items() if name in run_state.parameters]
        seen["kept"] = [*(run_state.kept or (None, {}))[1].values()]
        seen["optimizer"] = [value for value in known if torch.is_tensor(value)]

    monkeypatch.setattr(Progress, "resume", noting)
    return seen


@pytest.mark.parametrize("way", ["best", "l2_to_start", "lora_then_the_top", "gradual"])
def test_what_goes_on_is_on_the_device(way, bench, tmp_path, monkeypatch):
    spec = bench.spec(*STOPPED[way])
    with pretended() as device:
        stopped(bench, spec, tmp_path, device, monkeypatch)
        seen = seen_after_resume(monkeypatch)
        left = going_on(bench, spec, tmp_path, device)
    assert len(left.outcome["chosen"]["epochs"]) == len(spec["phases"])
    assert seen["optimizer"] and all(isinstance(value, OnCuda) for value in seen["optimizer"])
    phase = STOPPED[way][0]
    assert bool(seen["start"]) == ("l2_to_start" in phase or "unfreeze" in phase)
    assert bool(seen["kept"]) == (phase.get("pick") == "best")
    assert all(isinstance(value, OnCuda) for value in seen["start"] + seen["kept"])


def test_what_is_written_is_copied_to_the_cpu_alone(bench, tmp_path, monkeypatch):
    """A copy on the device would be three to five times the trained tensors, at the end of each epoch."""
    write, cloned = Progress.write, []

    def watched(self, run, training):
        with monkeypatch.context() as patched:
            patched.setattr(OnCuda, "clone", lambda tensor: cloned.append(tensor) or torch.Tensor.clone(tensor))
            write(self, run, training)

    monkeypatch.setattr(Progress, "write", watched)
    monkeypatch.setattr(progress, "SPACING", 0.0)
    with pretended() as device:
        going_on(bench, bench.spec(*STOPPED["best"]), tmp_path, device)
    assert cloned == []
