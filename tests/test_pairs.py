"""The two texts of a pair: in the store, taken out of either view; and what heads cost."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from corpora import PAIRS, pair, prepared
from thaw.compute_cost.flops import bilstm
from thaw.declarations.heads import HEAD_KINDS
from thaw.features.batch import Batch
from thaw.features.store import FeatureStore
from thaw.features.tokens import tokenise
from thaw.heads.registry import build
from thaw.papers.pairs import sizes, two_texts
from thaw.schema.corpora import ViewConfig
from thaw.schema.head import HeadConfig
from tiny import FAMILIES, tiny_encoder
from tiny_corpus import Bench


@pytest.fixture(scope="module", params=FAMILIES)
def tokenizer(request, tmp_path_factory):
    """The tokenizer of each family in turn."""
    from thaw.encoders.loading import load_tokenizer

    return load_tokenizer(tiny_encoder(request.param, tmp_path_factory.mktemp(request.param), layers=1))


@pytest.mark.parametrize("pairs", ["joint", "separate"])
def test_texts_are_the_tokens_between_special_ones(tokenizer, pairs):
    texts = [["the old cat sings", "cat"], ["a dog", "the bird sleeps"]]
    columns, _ = tokenise(texts, tokenizer, ViewConfig(pairs=pairs), words=False)
    for row, (ids, owners) in enumerate(zip(columns["input_ids"], columns["texts"], strict=True)):
        for number in (1, 2):
            found = [token for token, owner in zip(ids, owners, strict=True) if owner == number]
            alone = tokenizer(texts[number - 1][row], add_special_tokens=False)["input_ids"]
            assert found == alone, (row, number)


def test_a_store_gives_the_texts_of_both_views_padded_with_0(tmp_path):
    rows = [pair("the old cat sings", "a dog"), pair("cat", "the bird sleeps often", "no")]
    corpus = prepared(tmp_path, PAIRS, train=rows, validation=rows, test=rows)
    found = {}
    for view in ("joint", "separate"):
        bench = Bench(tmp_path / view, "bert", corpus, "pair_classification", layers=1, pairs=view)
        store = FeatureStore(bench.features)
        batch = store.batch("train", [0, 1])
        states = store.states(0, "train").gather([0, 1], batch)
        found[view] = two_texts(states, batch, store.separate_encoding), batch
    assert found["joint"][1].texts.tolist() == [[0, 1, 1, 1, 1, 0, 2, 2, 0], [0, 1, 0, 2, 2, 2, 2, 0, 0]]
    assert found["separate"][1].texts.tolist() == [
        [0, 1, 1, 1, 1, 0], [0, 2, 2, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 2, 2, 2, 2, 0]
    ]  # fmt: skip
    for joint, separate_encoding in zip(found["joint"][0][1::2], found["separate"][0][1::2], strict=True):
        assert torch.equal(joint, separate_encoding)
    assert [sizes(batch, view == "separate") for view, (_, batch) in found.items()] == [(4, 4, 11)] * 2


def test_a_text_without_a_token_reads_the_first():
    states = torch.arange(6.0).view(1, 3, 2)
    ids = torch.ones(1, 3, dtype=torch.int64)
    pair = two_texts(
        states, Batch(ids, ids > 0, None, None, ids[0], torch.tensor([[0, 1, 0]])), separate_encoding=False
    )
    assert (pair.u.tolist(), pair.v.tolist()) == ([[[2, 3]]], [[[0, 1]]])


def unpadded(task_type: str) -> Batch:
    """Return a batch without padding: four examples of ten tokens, six words, or two texts of five tokens."""
    ids = torch.ones(4, 10, dtype=torch.int64)
    words = task_type == "spans"
    texts = torch.tensor([1] * 5 + [2] * 5) if task_type.startswith("pair_") else torch.ones(10)
    pieces = torch.arange(6).expand(4, 6) if words else None
    return Batch(ids, ids > 0, None, pieces, torch.arange(4), texts.to(torch.int8).expand(4, 10))


def counted(head, batch: Batch, monkeypatch) -> float:
    """Return torch's count of a forward pass, with our own for the LSTMs, of which it counts nothing."""
    lstms = []
    whole = torch.nn.LSTM.forward

    def noted(lstm, packed, *rest):
        lstms.append(bilstm(lstm.input_size, lstm.hidden_size, lstm.num_layers, len(packed.data)))
        return whole(lstm, packed, *rest)

    monkeypatch.setattr(torch.nn.LSTM, "forward", noted)
    with FlopCounterMode(display=False) as counter:
        head(torch.randn(*batch.mask.shape, 32), batch)
    return counter.get_total_flops() + sum(lstms)


COUNTED = [
    (kind, task_type)
    for kind in HEAD_KINDS
    if kind not in ("cosine", "crf", "bilstm_crf")  # a pair read apart; sums over tags, of which torch counts nothing
    for task_type in ("classification", "pair_classification", "spans")
    if task_type in HEAD_KINDS[kind].task_types
]


@pytest.mark.parametrize("kind, task_type", COUNTED)
def test_operations_are_those_that_torch_counts(kind, task_type, monkeypatch):
    head = build(HeadConfig(kind=kind), 32, 3, task_type).train()
    batch = unpadded(task_type)
    assert head.flops(batch) == pytest.approx(counted(head, batch, monkeypatch), rel=0.02)


def test_operations_of_a_bilstm_are_those_of_its_gates():
    cells = [torch.nn.LSTMCell(width, 5) for width in (7, 10) for _ in range(2)]
    with FlopCounterMode(display=False) as counter:
        for cell in cells:
            cell(torch.randn(9, cell.input_size))
    assert bilstm(7, 5, 2, 9) == counter.get_total_flops()
