"""Probes and extraction on a card, beside what the CPU says.

The numbers in the names are those of the list of smoke tests.
"""

import pytest
import torch
from cards import card, device
from safetensors.torch import load_file

import test_contract_probe as contract
from thaw.core.files import read_json, write_json
from thaw.encoders.transformers import Encoder
from thaw.features.extract import StatesFormat, extract, remake
from thaw.features.store import FeatureStore
from tiny_corpus import Bench, rows, tiny_corpus

pytestmark = pytest.mark.gpu
benches = contract.benches


@pytest.mark.parametrize("kind", sorted(set(contract.PROBES) - contract.OF_RUNS))
def test_9_every_probe_is_near_the_cpus(kind, benches, device):
    """Scores may differ by one example where a number is near the edge; the layers and the measures are the same."""
    for task_type in contract.types(kind):
        case = contract.Case(kind, task_type, benches(task_type), [])
        one, other = case.on(torch.device("cpu")), case.on(device)
        assert [end["layer"] for end in one[1]["layers"]] == [end["layer"] for end in other[1]["layers"]]
        assert len(one[0]) == len(other[0])
        if kind in (
            "linear",
            "logme",
            "domain_divergence",
        ):  # nothing is drawn on a device
            assert contract.numbers(other[1]) == pytest.approx(contract.numbers(one[1]), abs=0.2, nan_ok=True)


@pytest.fixture
def fresh(tmp_path):
    """Return a new bench, whose store a CPU has made, of a type of numbers."""

    def of(dtype: str) -> Bench:
        few = {"train": rows("classification", 16, 1), "validation": rows("classification", 8, 2)}
        corpus = tiny_corpus(tmp_path / "data", "classification", **few, test=rows("classification", 8, 3))
        return Bench(tmp_path, "bert", corpus, "classification", dtype=dtype)

    return of


def extracted(bench: Bench, dtype: str, device) -> dict[str, torch.Tensor]:
    """Extract boundary 3 on a device, write what its card then says, and return the payload."""
    facts = extract(FeatureStore(bench.features), Encoder.load(bench.encoder), [3], StatesFormat(dtype), device)
    card = bench.features / "b3.json"
    write_json(card, read_json(card) | facts[3])
    return load_file(bench.store.payload_path(3))


@pytest.mark.parametrize("dtype, apart", [("fp32", 1e-4), ("bf16", 5e-2)])
def test_11_what_is_extracted_is_near_the_cpus_and_is_made_again(dtype, apart, fresh, device):
    bench = fresh(dtype)
    here = load_file(bench.store.payload_path(3))
    there = extracted(bench, dtype, device)
    assert all(torch.allclose(there[split], here[split], atol=apart) for split in here)
    payload = bench.store.payload_path(3).read_bytes()
    bench.store.payload_path(3).unlink()
    remake(FeatureStore(bench.features), bench.encoder, [3], device)
    assert bench.store.payload_path(3).read_bytes() == payload


def test_11_a_store_of_the_cpu_is_made_again_on_a_card(fresh, card):
    """Not equal bytes, which no two kinds of device give, but states within the rounding."""
    bench = fresh("bf16")
    here = load_file(bench.store.payload_path(3))
    bench.store.payload_path(3).unlink()
    FeatureStore(bench.features).require(
        [3], lambda missing, rows: remake(FeatureStore(bench.features), bench.encoder, missing, card, rows)
    )
    there = load_file(bench.store.payload_path(3))
    assert all(torch.allclose(there[split].float(), here[split].float(), atol=5e-2) for split in here)
