"""The step fit_heads on a small encoder: records of a run, the same whatever the seeds, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import load_file

from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.digests import canonical, digest
from thaw.core.errors import UserError
from thaw.evaluation.metrics import score
from thaw.training.head_fitting import HeadFit
from thaw.training.task_model import BatchLoader, TaskModel
from tiny_corpus import Bench, by_type

PATH = str(Path(__file__).parents[1] / "scripts")
FILES = {"metrics.json", "cost.json", "history.csv", "predictions.parquet", "head.safetensors", "folds.parquet"}
STEADY = sorted(FILES - {"cost.json"})
STRENGTHS = [1e-3, 1e-1]


benches = pytest.fixture(scope="module")(by_type)


def spec_of(bench: Bench, **changes) -> dict:
    """Return the spec of a fit, without a seed."""
    phase = {"components": ["head"], "boundary": bench.layers, "optimizer": "lbfgs", "l2": STRENGTHS}
    spec = bench.spec(**changes) | {"phases": [phase | changes.pop("phase", {})]}
    return {key: value for key, value in spec.items() if key not in ("seed", "phase")}


def fitted(bench: Bench, spec: dict):
    """Fit in-process; return the fit and what it leaves."""
    fit = HeadFit(spec, bench.inputs())
    return fit, fit.run(Stopwatch())


@pytest.mark.parametrize("kind", ["pair_classification", "regression", "spans"])
def test_the_records_of_each_seed_are_those_of_a_run(benches, kind, tmp_path):
    bench, spec = benches[kind], spec_of(benches[kind])
    both = bench.step("fit_heads", spec, tmp_path / "both", "--seeds", 1, 2)
    one = bench.step("fit_heads", spec, tmp_path / "one", "--seeds", 2)
    assert {path.name for path in (both / "seed1").iterdir()} == FILES
    for name in STEADY:
        assert (both / "seed2" / name).read_bytes() == (one / "seed2" / name).read_bytes()
    metrics = json.loads((both / "seed1" / "metrics.json").read_text())
    assert metrics["spec"] == spec | {"seed": 1} and metrics["digest"] == digest(spec | {"seed": 1})
    assert metrics["rows"].items() >= {"train": 24, "validation": 8, "test": 8}.items()
    assert metrics["chosen"]["l2"] in STRENGTHS
    cost = json.loads((both / "seed1" / "cost.json").read_text())
    head = load_file(both / "seed1" / "head.safetensors")
    assert cost["seeds_share_fit"] and cost["flops"] > 0
    assert cost["parameters"]["trained"] == sum(value.numel() for value in head.values())
    assert len(pandas.read_csv(both / "seed1" / "history.csv")) == len(STRENGTHS)


@pytest.mark.parametrize("kind", ["pair_classification", "regression", "spans"])
def test_the_head_gives_the_predictions_that_were_scored(benches, kind):
    bench = benches[kind]
    fit, found = fitted(bench, spec_of(bench))
    model, loader = TaskModel(None, found.head, "fp32"), BatchLoader(bench.store, [bench.layers], torch.device("cpu"))
    gold, ours = bench.corpus.targets(fit.context.task, "test"), found.predictions["test"]
    words = [len(tags) for tags in gold] if kind == "spans" else None
    theirs = model.predict(loader, "test", np.arange(len(gold)), words)
    if kind == "spans":
        assert theirs.values == ours.values
    else:
        assert np.asarray(theirs.values) == pytest.approx(np.asarray(ours.values), abs=1e-4)
    assert fit.outcome(found, 1)["scores"]["test"] == score(fit.context.task, gold, ours.values, fit.context.labels)


def test_the_strength_is_validations_choice_and_of_equals_the_strongest(benches):
    bench = benches["regression"]
    _, found = fitted(bench, spec_of(bench, phase={"l2": [1e-3, 1e-1, 10.0]}))
    scores = {note["l2"]: note["validation"] for note in found.history}
    assert found.solution.l2 == max(scores, key=lambda l2: (scores[l2], l2))
    bench = benches["pair_classification"]
    _, found = fitted(bench, spec_of(bench, phase={"l2": [0.2, 0.2001, 0.1999]}))
    assert len({note["validation"] for note in found.history}) == 1 and found.solution.l2 == 0.2001


@pytest.mark.parametrize("boundary", [None, 1])
def test_layers_that_are_not_in_the_store_are_computed(benches, boundary):
    bench = benches["pair_classification"]
    _, stored = fitted(bench, spec_of(bench))
    _, computed = fitted(bench, spec_of(bench, phase={"boundary": boundary}))
    assert computed.predictions["test"].probabilities == pytest.approx(
        stored.predictions["test"].probabilities, abs=1e-4
    )
    assert computed.cost["flops"] > stored.cost["flops"]


def test_learned_pooling_is_refused(benches):
    bench = benches["pair_classification"]
    with pytest.raises(UserError, match="lbfgs cannot fit a head with pooling: attention.*such as frozen_sgd"):
        fitted(bench, spec_of(bench, head={"pooling": "attention"}))


def test_another_corpus_than_planned_is_refused(benches, tmp_path):
    bench = benches["pair_classification"]
    with pytest.raises(UserError, match="but this job was planned for 0000; run the workflow again"):
        bench.step("fit_heads", spec_of(bench) | {"data": "0000"}, tmp_path / "out", "--seeds", 1)
    assert not (tmp_path / "out").exists()


def test_heads_that_are_trained_have_records_that_do_not_depend_on_the_other_seeds(benches, tmp_path):
    bench = benches["pair_classification"]
    spec = {key: value for key, value in bench.spec({"rate": 1e-2, "epochs": 3}).items() if key != "seed"}
    both = bench.step("fit_heads", spec, tmp_path / "both", "--seeds", 1, 2)
    one = bench.step("fit_heads", spec, tmp_path / "one", "--seeds", 2)
    alone = bench.step("train", spec | {"seed": 2}, tmp_path / "alone")
    assert {path.name for path in (both / "seed2").iterdir()} == FILES
    for name in STEADY:
        assert (both / "seed2" / name).read_bytes() == (one / "seed2" / name).read_bytes()
        assert name == "folds.parquet" or (both / "seed2" / name).read_bytes() == (alone / name).read_bytes()
    costs = [
        json.loads((folder / "cost.json").read_text()) for folder in (both / "seed1", both / "seed2", one / "seed2")
    ]
    assert [cost.get("runs_in_job") for cost in costs] == [2, 2, None]
    assert costs[0]["seconds"] == costs[1]["seconds"] and costs[1]["flops"] == costs[2]["flops"]


LEAN = """import sys
from thaw.steps.fit_heads import main
main()
print(*(name for name in ("transformers", "torch._dynamo", "sklearn", "scipy") if name in sys.modules))"""


def test_a_process_that_trains_heads_loads_no_more_than_it_needs(benches, tmp_path):
    """Neither models nor torch's compiler nor scikit-learn: each takes seconds, and so does the whole training."""
    bench = benches["pair_classification"]
    spec = {key: value for key, value in bench.spec({"rate": 1e-2}).items() if key != "seed"}
    folders = ("--data", bench.corpus.folder, "--encoder", bench.encoder, "--features", bench.features)
    command = [sys.executable, "-c", LEAN, "--spec", canonical(spec), *folders, "--seeds", 1, "--out", tmp_path / "run"]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=os.environ | {"PYTHONPATH": PATH}
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    assert (tmp_path / "run/seed1/metrics.json").is_file()
