"""Every probe on the pretended CUDA device (tests/pretended.py): it runs there, and gives what it gives on the CPU."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from corpora import prepared
from pretended import pretended
from test_domains import named
from test_probes import spec_of
from thaw.declarations.probes import PROBES
from thaw.probes.registry import run
from thaw.training.adapted import AdaptedEncoder
from tiny_corpus import Bench, rows, tiny_corpus
from tiny_trees import TreeBench, row, tree_corpus

COMPARISONS = [kind for kind in PROBES if PROBES[kind].reads.runs]
FEW = {"l2": [1e-1]}
SMALL = {"projection": 6, "hidden": 5, "epochs": 2, "rate": 1e-2}
# Of each probe: on which benches it is tried, and its entry.
TRIED = {
    "linear": (("classification", "regression", "spans"), FEW),
    "mutual_information": (("classification",), {"rows": 20, "clusters": [2], "components": 2} | FEW),
    "logme": (("classification", "regression"), {}),
    "head_importance": (("classification", "spans", "regression"), {"examples": 4} | FEW),
    "domain_divergence": (("domains",), {"domain": "genre"} | FEW),
    "edge": (("arcs", "upos"), SMALL),
}


def few(kind: str) -> dict:
    """Return few rows of each split."""
    return {split: rows(kind, count, seed) for split, count, seed in (("train", 12, 1), ("validation", 6, 2))}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Return the bench of a name, made once."""
    folder, made = tmp_path_factory.mktemp("probes"), {}
    torch.set_num_threads(1)

    def of(name: str) -> Bench:
        name = {"upos": "arcs"}.get(name, name)
        if name not in made:
            data = folder / name / "data"
            data.mkdir(parents=True)
            made[name] = _made(name, folder / name, data)
        return made[name]

    return of


def _made(name: str, folder, data) -> Bench:
    if name == "arcs":
        import random

        train = [row(random.Random(seed)) for seed in range(12)]
        return TreeBench(folder, "bert", tree_corpus(data, train=train, validation=train[:6], test=train[6:]), "spans")
    if name == "domains":
        entry = {"texts": ["text"], "targets": {"score": "score", "genre": "label"}}
        splits = {"train": named(72, 1), "validation": named(9, 2), "test": named(9, 3)}
        return Bench(folder, "bert", prepared(data, entry, **splits), "regression")
    return Bench(folder, "bert", tiny_corpus(data, name, **few(name), test=rows(name, 6, 3)), name)


def specs(bench, kind: str) -> list[tuple[Bench, dict]]:
    """Return the benches that a probe is tried on, each with the spec of it there."""
    where, entry = TRIED[kind]
    found = []
    for name in where:
        here = bench(name)
        if isinstance(here, TreeBench):
            found.append((here, here.probe_spec(kind, name, **entry)))
        else:
            spec = spec_of(here, kind) | {"seeds": [1]}
            found.append((here, spec | {"probe": {"kind": kind, **entry}}))
    return found


def numbers(found) -> list[float]:
    """Return all numbers in what a probe gives, in their order; what is none, or undefined, as nan."""
    if isinstance(found, dict):
        return [number for key in found for number in numbers(found[key])]
    if isinstance(found, list | tuple):
        return [number for each in found for number in numbers(each)]
    return [float(found) if isinstance(found, int | float | np.number) else float("nan")]


def same_on_both(spec: dict, inputs, adapted=lambda inputs: {}) -> None:
    """Run a probe on the CPU and on the device, and compare all its numbers."""
    here = run(spec, inputs, adapted(inputs))
    with pretended() as device:
        there = replace(inputs, device=device, vectors={})
        there = run(spec, there, adapted(there))
    assert numbers(there) == pytest.approx(numbers(here), abs=2e-3, nan_ok=True)
    assert here[0] and here[1]["layers"]


@pytest.mark.parametrize("kind", TRIED)
def test_every_probe(kind, bench):
    for here, spec in specs(bench, kind):
        same_on_both(spec, here.inputs())


@pytest.fixture(scope="module")
def pretraining(bench, tmp_path_factory):
    """A bench on pairs, and its encoder with all that BERT was pretrained with."""
    from transformers import BertConfig, BertForPreTraining

    here, folder = bench("pair_classification"), tmp_path_factory.mktemp("whole") / "encoder"
    shutil.copytree(here.encoder, folder)
    BertForPreTraining(BertConfig.from_pretrained(here.encoder)).save_pretrained(folder)
    return here, folder


@pytest.mark.parametrize("kind", COMPARISONS)
def test_every_comparison(kind, pretraining):
    here, folder = pretraining
    spec = here.spec() | {"of": {"probe": kind}, "probe": {"kind": kind}, "read": [0, 1, 2, 3], "seeds": [1, 2]}
    name = "encoder.layer.2.output.dense.weight"
    weight = next(value for key, value in load_file(folder / "model.safetensors").items() if key.endswith(name))
    sides = {seed: AdaptedEncoder(folder, {name: seed * weight}, None) for seed in (1, 2)}
    base = replace(here.inputs(), encoder=folder)
    same_on_both(spec, base, lambda base: {seed: replace(base, adapted=one) for seed, one in sides.items()})


def test_every_kind_is_tried():
    assert {*TRIED, *COMPARISONS, "head_removal", "adapter_removal"} == set(PROBES), "tests of their own"
