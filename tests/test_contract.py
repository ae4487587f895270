"""The contract that every encoder family, head and strategy keeps, whoever adds one.

What a phase declares moves, everything else stays as it was to the bit, the loss on the training rows falls, and the
same seed gives the same numbers. Families come from tiny.py, heads and strategies from the shipped catalogues.
"""

import json
from pathlib import Path

import pytest
import torch

from conftest import HOME
from thaw.catalogue import Catalogue, read_yaml
from thaw.encoders.transformers import Encoder
from thaw.records import digest
from thaw.settings import After
from thaw.steps.train import start
from thaw.training.model import Feed, Model, resumed
from tiny import FAMILIES
from tiny_corpus import Bench, tiny_corpus

CATALOGUE = Catalogue([HOME / "config"])
HEADS = list(read_yaml(HOME / "config" / "heads.yaml").content["heads"])
STRATEGIES = list(read_yaml(HOME / "config" / "strategies.yaml").content["strategies"])
TRAINS = {"frozen": ["head"], "top_k": ["head", {"top": "k"}], "full": ["all"]}
QUICK = {"rate": 1e-3, "head_rate": 1e-2, "epochs": 2, "batch_size": 4}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """The small corpora by task type."""
    folder = tmp_path_factory.mktemp("corpora")
    return {kind: tiny_corpus(folder / kind, kind) for kind in ("classification", "spans")}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory, corpora):
    """A bench with an encoder of each family in turn."""
    return Bench(tmp_path_factory.mktemp(request.param), request.param, corpora["classification"], "classification")


@pytest.fixture(scope="module")
def bert(tmp_path_factory, corpora):
    """Benches with a small BERT, by task type."""
    return {kind: Bench(tmp_path_factory.mktemp(kind), "bert", corpus, kind) for kind, corpus in corpora.items()}


def loss(run, model: Model, feed: Feed) -> float:
    """Return the loss on all training rows, in eval mode."""
    model.eval()
    with torch.no_grad():
        batch, state = feed("train", run.rows)
        return model.head.loss(model(batch, state), run.targets(run.rows, batch)).item()


def loss_before(bench: Bench, spec: dict, start) -> float:
    """Return the loss of a run that has not begun."""
    run, boundary = bench.run(spec, start), spec["phases"][0]["boundary"]
    model = Model(resumed(bench.encoder, boundary, bench.layers, run.trained, run.device), run.head, "fp32")
    return loss(run, model, Feed(bench.store, boundary, run.device))


def check(bench: Bench, spec: dict, start=None) -> None:
    """Train twice and check the contract."""
    fresh = {name: value.clone() for name, value in bench.run(spec, start).head.state_dict().items()}
    run, trained = bench.train(spec, start)
    declared = {part for phase in spec["phases"] for part in phase["components"]}
    moved = {name: not torch.equal(value, fresh[name]) for name, value in trained.head.state_dict().items()}
    assert [name for name, found in moved.items() if not found] == []
    pretrained = Encoder.load(bench.encoder).components()
    if run.model.encoder is None:
        assert declared == {"head"}
    else:
        now = {part: dict(named) for part, named in run.model.encoder.components().items()}
        for part, named in pretrained.items():
            same = {name: torch.equal(value, now[part][name]) for name, value in named if name in now.get(part, {})}
            stuck = [name for name, equal in same.items() if equal]
            assert (stuck == []) if part in declared else (stuck == list(same)), part
    assert loss(run, run.model, run.feed) < loss_before(bench, spec, start)
    _, again = bench.train(spec, start)
    assert again.outcome == trained.outcome
    assert again.history == trained.history


@pytest.mark.parametrize("name", TRAINS)
def test_every_family(family, name):
    check(family, family.spec({"train": TRAINS[name], "k": 1}))


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("kind", ["classification", "spans"])
def test_every_head(bert, kind, name):
    entry = CATALOGUE.get("heads", name, "test").model_dump(exclude={"label"})
    check(bert[kind], bert[kind].spec({"train": TRAINS["top_k"], "k": 1}, head=entry))


def strategy_spec(bench: Bench, name: str, **changes) -> tuple[str, dict]:
    """Return the step that executes a catalogue's strategy, and its spec with quick phases; a sweep's k is 1."""
    phases = []
    for phase in CATALOGUE.get("strategies", name, "test").phases:
        settings = phase.model_dump(exclude_defaults=True, exclude={"train"})
        quick = QUICK if phase.optimizer == "adamw" else {}
        phases.append({"train": phase.train, "k": 1} | settings | quick)
    step = "fit_heads" if phases[0].get("optimizer") == "lbfgs" else "train"
    return step, bench.spec(*phases, **changes)


def executed(bench: Bench, name: str, out) -> tuple[dict, Path, list[Path]]:
    """Execute a strategy through its step, and first the one that it starts after.

    Returns its spec, the folder of the run, and the metrics.json of the earlier run, if there is one.
    """
    entry = CATALOGUE.get("strategies", name, "test")
    after, earlier = None, []
    if entry.after:
        before = After(strategy=entry.after) if isinstance(entry.after, str) else entry.after
        spec, folder, _ = executed(bench, before.strategy, out / "before")
        after, earlier = {"run": digest(spec), "epoch": before.epoch}, [folder / "metrics.json"]
    step, spec = strategy_spec(bench, name, after=after, keep=entry.keep)
    if step == "fit_heads":
        bare = {key: value for key, value in spec.items() if key != "seed"}
        return spec, bench.step(step, bare, out, "--seeds", 1) / "seed1", earlier
    return spec, bench.step(step, spec, out, "--after", *earlier), earlier


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy(bert, name, tmp_path):
    bench = bert["classification"]
    spec, first, earlier = executed(bench, name, tmp_path / "first")
    _, second, _ = executed(bench, name, tmp_path / "second")
    for file in ("metrics.json", "history.csv", "head.safetensors", "predictions.parquet"):
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    metrics = json.loads((first / "metrics.json").read_text())
    assert (metrics["spec"], metrics["digest"]) == (spec, digest(spec))
    assert set(metrics["scores"]) >= {"train", "validation", "test"}
    assert set(json.loads((first / "cost.json").read_text())) >= {"seconds", "flops", "parameters", "hardware"}
    if strategy_spec(bench, name)[0] == "train":
        check(bench, spec, start(spec, earlier))
