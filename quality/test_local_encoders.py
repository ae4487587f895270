"""Encoders made of local texts: the numbers below the word vectors against a loop, and a decoder that learns."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
import torch

import local_encoders
from test_elmo import ENTRY, characters
from thaw.encoders.registry import load_model, load_tokenizer
from thaw.encoders.transformers import Encoder
from thaw.papers.elmo import assemble
from thaw.schema.encoder import EncoderConfig

TEXTS = ["a cat sees a dog", "a dog sees a bird", "the bird sings", "the cat sings, the dog sleeps", "a cat sleeps"]


def test_information_is_that_of_a_loop_over_all_pairs_of_words(monkeypatch):
    monkeypatch.setattr(local_encoders, "WINDOW", 1)  # neighbours alone
    monkeypatch.setattr(local_encoders, "LEAST", 2)
    words, found = local_encoders.information(TEXTS)
    assert set(words) == {"a", "the", "cat", "dog", "bird", "sees", "sings", "sleeps"}
    count = dict.fromkeys(product(words, words), 0)
    for text in TEXTS:
        known = [word for word in text.replace(",", " ,").split() if word in words]
        for one, other in pairwise(known):
            count[one, other] += 1
            count[other, one] += 1
    of_word = {word: sum(count[word, other] for other in words) for word in words}
    smoothed = {word: of_word[word] ** 0.75 for word in words}
    for (row, word), (column, other) in product(enumerate(words), enumerate(words)):
        together = count[word, other] / sum(of_word.values())
        apart = of_word[word] / sum(of_word.values()) * smoothed[other] / sum(smoothed.values())
        expected = max(0.0, math.log(together / apart)) if together else 0.0
        assert found[row, column] == pytest.approx(expected, abs=1e-12), (word, other)


@pytest.fixture
def texts(monkeypatch) -> list[str]:
    """Texts of the same five sentences, for small batches."""
    monkeypatch.setattr(local_encoders, "BATCH", 4)
    random = np.random.default_rng(0)
    return [" ".join(random.permutation(TEXTS)) for _ in range(120)]


def test_a_decoder_learns_the_texts_and_is_an_encoder_of_four_layers(texts, tmp_path):
    said = local_encoders.decoder(texts, tmp_path / "decoder", epochs=5)
    assert said["after"] < 0.5 * said["before"]
    encoder = Encoder.load(tmp_path / "decoder")
    assert encoder.layers == 4


def test_a_recurrent_model_learns_the_texts_and_its_files_give_its_states(texts, tmp_path, monkeypatch):
    monkeypatch.setitem(local_encoders.ELMO["lstm"], "dim", 64)
    monkeypatch.setattr(local_encoders, "VOCABULARY", 10)
    model, ids = local_encoders.recurrent(texts)
    assert model.words.out_features == 10 and len(model.spellings) > 10, "rarer words are one class"
    said = local_encoders.fit(model, ids, epochs=12)
    assert said["after"] < 0.5 * said["before"]
    local_encoders.publish(model.elmo, tmp_path / "source")
    (tmp_path / "read").mkdir()
    assemble(tmp_path / "source", tmp_path / "read", EncoderConfig.model_validate(ENTRY))
    batch, mask = characters(load_tokenizer(tmp_path / "read", words=True), [["a", "bird", "sleeps"], ["unheard"]])
    with torch.no_grad():
        expected, found = (one.read(batch, mask)[0] for one in (model.elmo.eval(), load_model(tmp_path / "read")))
    torch.testing.assert_close(found, expected)
