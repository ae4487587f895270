"""The pretrained pooler: it comes with the encoder, belongs to the head and trains with it."""

import pytest
import torch
from transformers import AutoModel

from thaw.core.errors import UserError
from thaw.encoders.loading import load_pooler
from thaw.encoders.transformers import Encoder
from thaw.schema.head import HeadConfig
from tiny_corpus import Bench, tiny_corpus

POOLER = {"pooling": "pooler", "separate_pooling": "pooler"}
HEAD = {"train": ["head"], "epochs": 2}
LABELS = ["no", "yes"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return tiny_corpus(tmp_path_factory.mktemp("pooler"), "classification")


@pytest.fixture(scope="module")
def bench(tmp_path_factory, corpus):
    return Bench(tmp_path_factory.mktemp("bert"), "bert", corpus, "classification")


def test_it_begins_with_the_encoders_own_tensors_and_computes_what_transformers_does(bench):
    run = bench.run(bench.spec(HEAD, head=POOLER))
    model, batch = AutoModel.from_pretrained(bench.encoder).eval(), bench.store.batch("train", range(4))
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.mask.long(), "token_type_ids": batch.type_ids}
    due = model(**inputs).pooler_output
    found = run.head.pooling(Encoder.load(bench.encoder)(batch), batch.mask)
    assert torch.allclose(found, due, atol=1e-6)


def test_it_trains_with_the_head_while_the_encoder_is_frozen(bench):
    run, trained = bench.train(bench.spec(HEAD, head=POOLER))
    before, now = load_pooler(bench.encoder), trained.head.state_dict()
    assert all(not torch.equal(now[f"pooling.dense.{name}"], value) for name, value in before.items())
    assert run.evaluator.encoder is None and trained.encoder == {}
    assert trained.cost["parameters"]["trained"] == 32 * 32 + 32 + 2 * 32 + 2
    _, first = bench.train(bench.spec(HEAD))
    texts = 2 * len(bench.corpus.frame("train"))
    assert trained.cost["flops"] - first.cost["flops"] == 3 * texts * 2 * 32 * 32


def test_an_encoder_without_one_is_refused(tmp_path, corpus):
    bench = Bench(tmp_path, "distilbert", corpus, "classification")
    with pytest.raises(UserError, match="came without a pooler; choose pooling: first"):
        bench.run(bench.spec(HEAD, head=POOLER))
    with pytest.raises(ValueError, match="pooler is for kind linear on the last layer"):
        HeadConfig(kind="linear", pooling="pooler", layers={"layer": 1})
