"""The contract of a probe. The first line of each test is the clause as `scripts/contract.py` prints it."""

import json

import numpy as np
import pytest
import torch

from test_probes import spec_of
from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.probes.reading import Reading
from thaw.probes.registry import fitted, measure
from tiny_corpus import Bench, tiny_corpus

TYPES = ("pair_classification", "regression", "spans")
OURS = {"linear": {}, "control": {}, "mdl": {"portions": [0.5]}, "logme": {}}
FOR_LABELS = ("control", "mdl")


def pytest_generate_tests(metafunc):
    """Try each of Thaw's quick probes, or the given one, on each type of task that it takes."""
    given = metafunc.config.getoption("part")
    cases = [(probe, task_type) for probe in ([given] if given else OURS) for task_type in types(probe)]
    metafunc.parametrize("probe, task_type", cases)


def types(probe: str) -> list[str]:
    """Return the types of task that a probe takes, among those that are tried."""
    stated = plugins.parse_plugin(probe).stated("task_types", TYPES) if plugins.is_plugin(probe) else TYPES
    return [name for name in TYPES if name in stated and not (name == "regression" and probe in FOR_LABELS)]


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    """Return a new reading of a small encoder's layers, for a probe and a type of task."""
    benches = {}

    def of(probe: str, task_type: str) -> Reading:
        if task_type not in benches:
            folder = tmp_path_factory.mktemp(task_type)
            benches[task_type] = Bench(folder, "bert", tiny_corpus(folder / "data", task_type), task_type)
        torch.set_num_threads(1)
        spec = spec_of(benches[task_type], probe)
        spec["probe"] = {"kind": probe} | OURS.get(probe, {})
        return Reading(spec, benches[task_type].inputs())

    return of


def test_every_layer(reading, probe, task_type):
    """it gives each layer that is read one end, whose scores are numbers, and rows"""
    given = reading(probe, task_type)
    rows, ends = fitted(given, 1)
    assert [end["layer"] for end in ends] == given.numbers, f"{task_type}: layers {[end['layer'] for end in ends]}"
    assert rows, f"{task_type}: it has no rows"
    assert all(measure(given) in score for end in ends for score in end["scores"].values())


def test_same_seed(reading, probe, task_type):
    """one seed gives one result"""
    first, second = (fitted(reading(probe, task_type), 3) for _ in range(2))
    assert json.dumps(first) == json.dumps(second), f"{task_type}: two results of seed 3"


def test_nothing_is_changed(reading, probe, task_type):
    """it changes neither vectors nor targets, which other seeds read too"""
    given = reading(probe, task_type)
    before = {name: [layer.values.clone() for layer in split.layers] for name, split in given.splits.items()}
    gold = {name: np.array(split.targets()) for name, split in given.splits.items()}
    fitted(given, 1)
    for name, split in given.splits.items():
        for layer, values in zip(split.layers, before[name], strict=True):
            assert torch.equal(layer.values, values), f"{task_type}: vectors of {name}"
        assert np.array_equal(split.targets(), gold[name]), f"{task_type}: targets of {name}"


def test_written(reading, probe, task_type):
    """what it returns can be written as JSON, without infinities"""
    try:
        json.dumps(fitted(reading(probe, task_type), 1), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(f"{task_type}: {error}") from error
