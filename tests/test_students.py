"""Students: an encoder that keeps some of its layers trains, is resumed, counted and exported like any other."""

import pytest
import torch

from thaw.encoders.shortening import compact
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from tiny import tiny_encoder
from tiny_corpus import small_berts
from trained import equal, losses, tensors

bench_of = pytest.fixture(scope="module")(small_berts)


def batch(encoder: Encoder) -> Batch:
    """Return two texts of five and three tokens."""
    ids = torch.randint(5, 40, (2, 5), generator=torch.Generator().manual_seed(3))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return Batch(ids, mask, None, None, torch.arange(2))


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet", "modernbert", "gpt2", "deberta_v2"])
def test_a_dropped_layer_is_as_if_it_was_not_there(family, tmp_path):
    """Layers that pass their input on compute what a model without them does, to the bit."""
    folder = tiny_encoder(family, tmp_path / family, layers=4)
    kept = [1, 2, 3] if family == "modernbert" else [1, 3]
    student, deleted = Encoder.load(folder).shorten(kept), Encoder.load(folder)
    compact(deleted, kept)
    given = batch(student)
    states, expected = student.boundaries(given), deleted.boundaries(given)
    assert torch.equal(states[4], expected[len(kept)])
    assert torch.equal(states[3], student.states(given, [3])[3])
    assert not torch.equal(states[4], Encoder.load(folder).boundaries(given)[4])


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_student_is_resumed_at_any_boundary(start, tmp_path):
    folder = tiny_encoder("bert", tmp_path / "bert", layers=4)
    whole = Encoder.load(folder).shorten([1, 2, 4])
    given = batch(whole)
    states = whole.boundaries(given)
    resumed = Encoder.load(folder).shorten([1, 2, 4]).resume_at(start)
    with torch.no_grad():
        assert torch.allclose(resumed(given, states[start]), states[4], atol=1e-6)


def test_keeping_all_layers_is_no_student_at_all(bench_of):
    bench = bench_of("classification")
    spec = bench.spec({"train": ["all"]})
    _, plain = bench.train(spec)
    _, student = bench.train(spec | {"student": {"layers": [1, 2, 3]}})
    assert equal(tensors(plain), tensors(student)) and losses(plain) == losses(student)
    assert plain.outcome == student.outcome and plain.cost["flops"] == student.cost["flops"]
    assert plain.cost["parameters"] == student.cost["parameters"]
