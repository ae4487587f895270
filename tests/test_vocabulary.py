"""Embeddings cut to the tokens that a corpus has, and quick dropout: neither changes what is learned."""

import pytest
import torch

from thaw.encoders.dropout import FastDropout, noise
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from tiny import FAMILIES, tiny_encoder
from tiny_corpus import small_bert

bench = pytest.fixture(scope="module")(small_bert)


@pytest.fixture
def whole(monkeypatch):
    """Trainings with the whole table."""

    def switch():
        monkeypatch.setattr(Encoder, "keep_rows", lambda self, used: None)

    return switch


def test_training_with_the_whole_table_gives_the_same(bench, whole):
    """Same losses, scores and rows of the table, to the rounding of a norm's sum; the other rows stay pretrained."""
    spec = bench.spec({"train": ["all"]})
    run, cut = bench.train(spec)
    whole()
    _, full = bench.train(spec)
    assert cut.cost["parameters"] == full.cost["parameters"]
    assert [n["loss"] for n in cut.history] == pytest.approx([n["loss"] for n in full.history], rel=1e-5)
    name = "embeddings.word_embeddings.weight"
    used = run.inputs.tokens()
    assert len(used) < len(cut.encoder[name]), "the corpus has all tokens: nothing is tested"
    assert cut.encoder[name].shape == full.encoder[name].shape
    assert torch.allclose(cut.encoder[name][used], full.encoder[name][used], atol=1e-6)
    before = dict(Encoder.load(bench.encoder).components()["embeddings"])[name]
    others = torch.ones(len(before), dtype=torch.bool)
    others[used] = False
    assert torch.equal(cut.encoder[name][others], before[others])
    assert not torch.equal(cut.encoder[name][used], before[used])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_reads_used_tokens_as_before(family, tmp_path):
    """Outputs do not change by a bit, and a token that was not kept is no silent zero."""
    encoder = Encoder.load(tiny_encoder(family, tmp_path))
    ids = torch.tensor([[2, 7, 9, 3], [2, 8, 3, 1]])
    types = torch.zeros_like(ids) if family in ("bert", "electra") else None
    batch = Batch(ids, ids != 1, types, None, torch.arange(2))
    before = encoder(batch)
    encoder.keep_rows(torch.tensor([0, 1, 2, 3, 7, 8, 9]))
    assert encoder.unused > 0
    assert torch.equal(encoder(batch), before)
    with pytest.raises(IndexError):
        encoder(Batch(ids + 3, batch.mask, batch.type_ids, None, batch.rows))


def test_dropout_has_the_distribution_of_torch():
    """The share of zeros is p within four deviations, what is kept is scaled, the gradient has the same mask."""
    torch.manual_seed(3)
    values = torch.ones(300, 1001, requires_grad=True)
    for share in (0.1, 0.5, 0.9):
        dropped = FastDropout(share)(values)
        zeros = (dropped == 0).double().mean().item()
        assert abs(zeros - share) < 4 * (share * (1 - share) / values.numel()) ** 0.5
        assert set(dropped.unique().tolist()) == {0.0, torch.tensor(1 / (1 - share)).item()}
        assert torch.equal(torch.autograd.grad(dropped.sum(), values)[0], dropped)
        columns = (dropped == 0).double().mean(0)
        assert columns.std() < 1.2 * (share * (1 - share) / 300) ** 0.5, "columns drop together"
    assert torch.equal(FastDropout(0.3).eval()(values), values) and torch.equal(FastDropout(0.0)(values), values)
    torch.manual_seed(3)
    assert torch.equal(FastDropout(0.1)(values), (torch.manual_seed(3), FastDropout(0.1)(values))[1])


@pytest.mark.parametrize("share", [0.1, 0.33, 0.5])
def test_dropout_in_bf16_has_the_bits_of_a_cast_of_float32(share):
    values, found = torch.linspace(-3, 3, 4001), []
    for dropped in (lambda: FastDropout(share)(values.bfloat16()), lambda: noise(values.shape, share)):
        torch.manual_seed(5)
        found.append(dropped())
    assert found[0].dtype == torch.bfloat16 and torch.equal(found[0], values.bfloat16() * found[1].bfloat16())


def test_encoders_have_no_other_dropout(tmp_path):
    """Every dropout module of a transformer is the quick one, with the share of its config."""
    encoder = Encoder.load(tiny_encoder("bert", tmp_path))
    found = [module for module in encoder.modules() if isinstance(module, torch.nn.Dropout)]
    assert found and all(type(module) is FastDropout and module.p == 0.1 for module in found)
