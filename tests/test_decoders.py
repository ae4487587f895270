"""Decoders: they read from left to right, have no padding token, and their last token has read the whole text."""

import pytest
import torch

from thaw.encoders.registry import load_tokenizer
from thaw.encoders.transformers import Encoder
from thaw.features.tokens import tokenise
from thaw.schema.corpora import ViewConfig
from tiny import DECODERS, tiny_encoder
from tiny_corpus import Bench, tiny_corpus


@pytest.fixture(scope="module", params=DECODERS)
def folder(request, tmp_path_factory):
    """A small decoder of each shape."""
    return tiny_encoder(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module", params=DECODERS)
def bench(request, tmp_path_factory):
    """A bench with each of them."""
    folder = tmp_path_factory.mktemp(request.param)
    return Bench(folder, request.param, tiny_corpus(folder / "data", "classification"), "classification")


def test_padded_is_single(bench):
    """Each text alone gives the states that it has in a padded batch, and in the store."""
    rows = [0, 1, 2, 3]
    encoder, batch = Encoder.load(bench.encoder), bench.store.batch("train", rows)
    assert not batch.mask.all()
    together = encoder.boundaries(batch)[-1]
    stored = bench.store.states(bench.layers, "train").gather(rows, batch)
    for row in rows:
        single = bench.store.batch("train", [row])
        alone, length = encoder.boundaries(single)[-1], single.mask.shape[1]
        torch.testing.assert_close(together[row : row + 1, :length], alone, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(stored[row : row + 1, :length], alone, rtol=1e-5, atol=1e-5)


def test_the_end_mark_is_padding_and_parts_pairs_where_nothing_else_does(folder):
    tokenizer = load_tokenizer(folder)
    assert tokenizer.pad_token == ("<unk>" if "openai_gpt" in str(folder) else "</s>")
    columns, _ = tokenise([["the cat", ""], ["a dog", "a dog"]], tokenizer, ViewConfig(), False)
    parted, alone = columns["input_ids"]
    second = tokenizer("a dog", add_special_tokens=False)["input_ids"]
    mark = tokenizer.pad_token_id if "gpt" in str(folder) else tokenizer.bos_token_id
    assert parted[-len(second) - 1 :] == alone[-len(second) - 1 :] == [mark, *second]
    single, _ = tokenise([["the cat", ""]], tokenizer, ViewConfig(), False)
    assert len(single["input_ids"][1]) == 1 and parted[: len(single["input_ids"][0])] == single["input_ids"][0]
    words, _ = tokenise([[["the", "cat"]]], load_tokenizer(folder, words=True), ViewConfig(), True)
    assert all(place >= 0 for place in words["first_pieces"][0])
