"""The contract of a probe.

Every declared kind is tried, on each type of task that it is for among TRIED; or the given plugin.
"""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pretended import pretended
from thaw.core.errors import UserError
from thaw.declarations.probes import PROBES, VECTORS
from thaw.probes.registry import fit_probe, kind_of, run
from tiny_probes import CONSTANT, SUBSET, ProbeBench, entry_of

TRIED = ("pair_classification", "regression", "spans", "edges")
SPLITS = {"train", "validation", "test"}
FEW = (1, 2, 9)  # training rows
FEWEST = {"tokens": 4, "examples": 1}
OF_RUNS = {word for word, kind in PROBES.items() if kind.of_runs}  # they read a finished run with its head
USUAL = {}  # by entry and type of task
ONE_ENCODER, VECTORS_ONLY, COMPARISONS = "one encoder", "vectors", "comparisons"


def pytest_generate_tests(metafunc):
    """Try each kind, or the given plugin, on each type of task; a test may be for some kinds alone."""
    given, only = metafunc.config.getoption("part"), getattr(metafunc.function, "only", None)
    cases = [
        (word, task_type)
        for word in ([given] if given else sorted(set(PROBES) - OF_RUNS))
        for task_type in types(word)
        if only in (None, *groups(word))
    ]
    if metafunc.function is not test_few_rows:
        return metafunc.parametrize("probe, task_type", cases)
    every = [(*case, count) for case in cases for count in FEW]
    metafunc.parametrize("probe, task_type, count", [case for case in every if given or in_turn(*case)])


def in_turn(word: str, task_type: str, count: int) -> bool:
    """Return whether a number of rows is tried on a type of task: one row on each, others in turn if there are many."""
    tried = types(word)
    return count == 1 or len(tried) < len(FEW) or FEW[tried.index(task_type) % len(FEW)] == count


def groups(word: str) -> list[str]:
    """Return what a kind is, as tests name it that are for some alone."""
    reads = kind_of(word).reads
    return [COMPARISONS] if reads.runs else [ONE_ENCODER] + [VECTORS_ONLY] * (reads == VECTORS)


def types(word: str) -> list[str]:
    """Return the types of task on which a kind is tried; a comparison of encoders reads no labels, so one will do."""
    kind = kind_of(word)
    found = [name for name in TRIED if name in kind.types] or list(kind.types[:1])
    return found[:1] if kind.reads.runs else found


def only(group: str):
    """Let a test be for some kinds alone."""

    def mark(test):
        test.only = group
        return test

    return mark


class Case:
    """A probe on a bench."""

    def __init__(self, word: str, task_type: str, bench: ProbeBench, folders):
        """Keep what is tried."""
        self.kind, self.bench, self.task_type = kind_of(word), bench, task_type
        self.entry = entry_of(word, self.kind, folders)

    def spec(self, options=(), **changes) -> dict:
        """Return the probe's spec, with options (where its kind has them) and keys of the spec changed."""
        known = {key: value for key, value in dict(options).items() if key in self.kind.options.model_fields}
        return self.bench.probe_spec(self.entry | known, self.task_type, **changes)

    def run(self, options=(), **changes) -> tuple[list[dict], dict]:
        """Return rows and record of the probe: of the pretrained encoder, or of that beside two runs."""
        spec = self.spec(options, **changes)
        adapted = self.bench.adapted(spec) if self.kind.reads.runs else {}
        return run(spec, self.bench.inputs(), adapted)

    def on(self, device) -> tuple[list[dict], dict]:
        """Return rows and record of a quick form of the probe, computed on a device."""
        of_runs, inputs = self.kind.reads.runs, replace(self.bench.inputs(), device=device)
        spec = self.spec({"l2": [1e-1]}, seeds=[1, 2] if of_runs else [1])
        return run(spec, inputs, self.bench.adapted(spec, inputs) if of_runs else {})

    def usual(self) -> tuple[list[dict], dict]:
        """Return rows and record of the probe as it is, computed once for the clauses that look at them."""
        name = f"{self.entry} {self.task_type}"
        if name not in USUAL:
            USUAL[name] = self.run()
        return USUAL[name]

    def reading(self):
        """Return what the probe reads of the pretrained encoder."""
        return self.kind.reads.load()(self.spec(), self.bench.inputs())


@pytest.fixture(scope="module")
def benches(tmp_path_factory, pytestconfig):
    """A bench for each type of task, made when it is asked for."""
    found = {}

    def bench(task_type: str) -> ProbeBench:
        if task_type not in found:
            torch.set_num_threads(1)
            folder = tmp_path_factory.mktemp(task_type)
            found[task_type] = ProbeBench(folder, task_type, pytestconfig.getoption("catalogues", []))
        return found[task_type]

    return bench


@pytest.fixture
def case(benches, probe, task_type, pytestconfig) -> Case:
    """What is tried."""
    folders = [name for name in pytestconfig.getoption("catalogues") if Path(name, "probes.yaml").is_file()]
    return Case(probe, task_type, benches(task_type), folders)


def check_form(rows: list[dict], record: dict, spec: dict) -> None:
    """Check that rows and scores have their documented form, and numbers that can be written."""
    json.dumps([rows, record], allow_nan=False)
    assert rows and all({"layer", "seed"} <= row.keys() for row in rows), "a row without layer or seed"
    places = [(one["layer"], one["seed"]) for one in record["layers"]]
    assert places and len(set(places)) == len(places), f"layers and seeds {places}"
    assert {layer for layer, _ in places} <= set(spec["read"]) and {seed for _, seed in places} == set(spec["seeds"])
    for one in record["layers"]:
        assert one["scores"] and one["scores"].keys() <= SPLITS, f"splits {list(one['scores'])}"
        for scores in one["scores"].values():
            assert record["main"] in scores, f"{record['main']} is not among {list(scores)}"
            assert all(value is None or math.isfinite(value) for value in scores.values())


def test_form(case):
    """for each layer and seed there are scores by split, its measure among them, and rows that name layer and seed"""
    check_form(*case.usual(), case.spec())


def test_same_seed(case):
    """one seed gives one result, and each seed one of its own rows"""
    first, second = case.usual(), case.run()
    assert json.dumps(first) == json.dumps(second), "two results of the same seeds"


def test_device(case):
    """on a device, here a pretended one, it gives what it gives on the CPU"""
    here = case.on(torch.device("cpu"))
    with pretended() as device:
        there = case.on(device)
    assert numbers(there) == pytest.approx(numbers(here), abs=2e-3, nan_ok=True)


def numbers(found) -> list[float]:
    """Return all numbers in what a probe gives, in their order; what is none, or undefined, as nan."""
    if isinstance(found, dict | list | tuple):
        return [number for each in (found.values() if isinstance(found, dict) else found) for number in numbers(each)]
    return [float(found) if isinstance(found, int | float | np.number) else float("nan")]


@only(ONE_ENCODER)
def test_seeds(case):
    """what a seed gives does not depend on the seeds before it, which read the same"""
    both, second = case.usual(), case.run(seeds=[2])
    for together, alone in ((both[0], second[0]), (both[1]["layers"], second[1]["layers"])):
        assert [row for row in together if row["seed"] == 2] == alone


@only(VECTORS_ONLY)
def test_nothing_is_changed(case):
    """it changes neither vectors nor targets, which other seeds read too"""
    reading = case.reading()
    before = {name: [layer.values.clone() for layer in split.layers] for name, split in reading.splits.items()}
    gold = {name: split.targets().copy() for name, split in reading.splits.items()}
    fit_probe(reading, 1)
    for name, split in reading.splits.items():
        for layer, values in zip(split.layers, before[name], strict=True):
            assert torch.equal(layer.values, values), f"vectors of {name}"
        assert (split.targets() == gold[name]).all(), f"targets of {name}"


def test_constant_features(case):
    """a feature that is constant gives numbers, and so does a layer at which all vectors are the same"""
    states = case.bench.store.states(1, "train").at(range(50))
    assert (states[:, CONSTANT] == states[0, CONSTANT]).all(), "one feature is constant"
    pools = "pooling" in case.kind.options.model_fields
    options = {"pooling": "first"}  # the first token is the same in each text, and so is its embedding
    check_form(*(case.run(options) if pools else case.usual()), case.spec())


def test_a_label_that_is_missing(case):
    """a label that validation and test lack gives scores there"""
    corpus, task = case.bench.corpus, case.bench.task(case.task_type)
    if labels := corpus.labels(task["target"]):
        assert len(labels) > len({label for row in corpus.targets(task, "test") for label in seen(row)}), "none lacks"
    rows, record = case.usual()
    for one in record["layers"]:
        for split, scores in one["scores"].items():
            assert scores[record["main"]] is not None or case.entry["kind"] == "domain_divergence", (
                f"no score on {split}"
            )


def seen(target) -> list[int]:
    """Return the labels of a row: its class, its tags, or those of its edges."""
    if isinstance(target, list) and target and isinstance(target[0], tuple | list):
        return [label for *_, labels in target for label in labels]
    return list(target) if isinstance(target, list) else [int(target)]


def test_few_rows(case, count):
    """few rows give scores, or one sentence that says how many are missing"""
    try:
        check_form(*case.run(FEWEST, subset={"rows": count}), case.spec())
    except UserError as error:
        assert str(error) and "\n" not in str(error)


@only(ONE_ENCODER)
def test_adapted_encoders(case):
    """of encoders that runs have adapted each seed reads its own"""
    if case.task_type not in ("pair_classification", "spans"):
        pytest.skip("runs of one type of task will do")
    spec = case.spec(phases=[], subset=SUBSET, rows="outside")
    rows, record = run(spec, case.bench.inputs(), case.bench.adapted(spec))
    check_form(rows, record, spec)


@only(COMPARISONS)
def test_an_encoder_and_itself(case):
    """an encoder that nothing was changed of is alike (1), not far (0), or has the loss that it had before"""
    same = case.bench.inputs()
    rows, record = run(case.spec(), same, {1: same, 2: same})
    check_form(rows, record, case.spec())
    for one in record["layers"]:
        for scores in one["scores"].values():
            value = scores[record["main"]]
            assert any(abs(value - equal) < 1e-5 for equal in (0.0, 1.0, scores.get("before", 0.0))), scores


@only(COMPARISONS)
def test_an_encoder_and_what_a_run_made_of_it(case):
    """an encoder of which a run has trained the last layer differs there"""
    _, record = case.usual()
    last = [one for one in record["layers"] if one["layer"] == case.bench.layers]
    for one in last:
        for scores in one["scores"].values():
            value = scores[record["main"]]
            assert all(abs(value - equal) > 1e-6 for equal in (0.0, 1.0, scores.get("before", 0.0))), scores
