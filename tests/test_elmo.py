"""ELMo: the published outputs, the published format, equal passes, resuming, and training from each boundary."""

import json
import shutil

import numpy as np
import pytest
import torch

from thaw.core.errors import UserError
from thaw.encoders.parity import check_resume
from thaw.encoders.registry import load_model, load_tokenizer
from thaw.encoders.transformers import Encoder
from thaw.features.tokens import tokenise
from thaw.papers.elmo import assemble, spelling
from thaw.schema.corpora import ViewConfig
from thaw.schema.encoder import EncoderConfig as Entry
from tiny_corpus import Bench, tiny_corpus
from tiny_own import OWN, STATED
from trained import TRAINS, check_training

ENTRY = {"kind": "elmo", "folder": "f", "layers": 2} | STATED


@pytest.fixture(scope="module")
def published(shared_data):
    """The folder of the published fixtures."""
    folder = shared_data / "elmo_fixtures"
    if not folder.is_dir():
        pytest.skip("needs the published ELMo fixtures in ../shared/data/elmo_fixtures")
    return folder


@pytest.fixture(scope="module")
def fixture_model(published, tmp_path_factory):
    """Their model as fetch brings it in."""
    folder = tmp_path_factory.mktemp("published")
    assemble(published, folder, Entry.model_validate(ENTRY))
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A small random ELMo in the published format."""
    folder = tmp_path_factory.mktemp("source")
    OWN["elmo"](folder)
    return folder


@pytest.fixture(scope="module", params=["classification", "spans"])
def bench(request, tmp_path_factory):
    """A bench with it, by type of task."""
    folder = tmp_path_factory.mktemp(request.param)
    return Bench(folder, "elmo", tiny_corpus(folder / "data", request.param), request.param)


def characters(tokenizer, sentences: list[list[str]]):
    """Return characters [B, T, 50] and mask [B, T] of sentences in words."""
    ids = tokenizer(sentences, is_split_into_words=True)["input_ids"]
    longest, table = max(map(len, ids)), torch.from_numpy(tokenizer.spellings()).long()
    mask = torch.tensor([[place < len(row) for place in range(longest)] for row in ids])
    return table[torch.tensor([row + [0] * (longest - len(row)) for row in ids])], mask


def test_published_outputs_on_all_sentences(published, fixture_model):
    """Both directions of the last layer, to 1e-5: three texts of ten sentences, the state carried on as theirs was."""
    import h5py

    model, tokenizer, carried, seen = load_model(fixture_model), load_tokenizer(fixture_model), None, 0
    texts = json.loads((published / "sentences.json").read_text())
    due = [h5py.File(published / f"lm_embeddings_{text}.hdf5") for text in range(3)]
    for number in range(10):
        batch, mask = characters(tokenizer, [text[number].split() for text in texts])
        with torch.no_grad():
            boundaries, carried = model.read(batch, mask, carried)
        for text in range(3):
            found = boundaries[-1][text][mask[text]][1:-1].unflatten(1, (2, 16)).transpose(0, 1)
            np.testing.assert_allclose(found.numpy(), due[text][str(number)][...], atol=1e-5, rtol=0)
            seen += 1
    assert seen == 30 and all(set(file) == {str(number) for number in range(10)} for file in due)


def test_published_vectors_of_single_words(published, fixture_model):
    """The character convolution's output, to 1e-5, for each word of the fixture; it is given to both directions."""
    import h5py

    words = (published / "vocab_test.txt").read_text().split("\n")
    due = h5py.File(published / "elmo_token_embeddings.hdf5")["embedding"][...]
    with torch.no_grad():
        found = load_model(fixture_model).embeddings(torch.tensor([[spelling(word) for word in words]]))[0]
    assert len(words) == 458 and torch.equal(found[:, :16], found[:, 16:])
    np.testing.assert_allclose(found[:, :16].numpy(), due, atol=1e-5, rtol=0)


def test_characters_of_a_word():
    """Bytes plus one between the marks of a word; 0 is padding; a long word is cut to 48 bytes."""
    assert spelling("aé")[:6] == [259, 98, 196, 170, 260, 261] and spelling("aé")[-1] == 261
    assert spelling("<S>")[:4] == [259, 257, 260, 261] and spelling("</S>")[:3] == [259, 258, 260]
    assert len(spelling("x" * 99)) == 50 and spelling("x" * 99)[-1] == 260


def test_words_between_marks(bench):
    """Words are tokens, framed by the marks; first pieces are the words; a pair is two sentences."""
    tokenizer = load_tokenizer(bench.encoder, words=True)
    columns, cut = tokenise([[["the", "cat", "sleeps"], ["the"]]], tokenizer, ViewConfig(max_length=4), True)
    assert columns["input_ids"] == [[1, 3, 4, 2], [1, 3, 2]] and cut == [True, False]
    assert columns["first_pieces"] == [[1, 2, -1], [1]]
    pair, _ = tokenise([["a cat!", ""], ["dogs", "dogs"]], load_tokenizer(bench.encoder), ViewConfig(), False)
    assert pair["input_ids"] == [[1, 3, 4, 5, 2, 1, 6, 2], [1, 2, 1, 6, 2]]


def test_every_pass_is_equal_and_padding_changes_nothing(bench):
    """Each sentence begins at the one warmed-up state: whatever was read before, and however padded, it is the same."""
    encoder, rows = Encoder.load(bench.encoder), [0, 1, 2, 3]
    batch = bench.store.batch("train", rows)
    assert not batch.mask.all() and batch.input_ids.shape[2] == 50
    together = encoder.boundaries(batch)
    assert all(torch.equal(first, second) for first, second in zip(together, encoder.boundaries(batch), strict=True))
    for boundary in range(3):
        stored = bench.store.states(boundary, "train").gather(rows, batch)
        for row in rows:
            single = bench.store.batch("train", [row])
            alone, length = encoder.boundaries(single)[boundary], single.mask.shape[1]
            torch.testing.assert_close(together[boundary][row : row + 1, :length], alone, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(stored[row : row + 1, :length], alone, rtol=1e-5, atol=1e-5)
    start = encoder.model.layers[0].directions[0].start_state
    assert start.abs().max() > 0.01  # warmed up


def test_resumed_is_full(bench):
    check_resume(bench.encoder)
    names = {part: [name for name, _ in named] for part, named in Encoder.load(bench.encoder).components().items()}
    assert list(names) == ["embeddings", "layer.1", "layer.2"]
    assert all(name.startswith("layers.1.") for name in names["layer.2"])


def test_training(bench):
    """All of it with its head; on texts the largest value of each dimension, as Peters et al."""
    check_training(bench, bench.spec({"train": TRAINS["full"], "epochs": 4}, head={"pooling": "max"}))


def drop(folder, name):
    """Take a tensor out of the weights."""
    import h5py

    with h5py.File(folder / "tiny_weights.hdf5", "a") as file:
        del file[name]


SPOILT = {
    "no weights": (lambda f: (f / "tiny_weights.hdf5").unlink(), r"holds no file \*weights\.hdf5, expected one"),
    "two options": (lambda f: (f / "more_options.json").write_text("{}"), r"holds 2 files \*options\.json"),
    "no options": (lambda f: (f / "options.json").write_text("{}"), r"is no options\.json of ELMo: it lacks 'lstm'"),
    "no HDF5": (lambda f: (f / "tiny_weights.hdf5").write_bytes(b"weights"), "is no HDF5 file"),
    "a tensor less": (lambda f: drop(f, "CNN_proj/W_proj"), "has no tensor CNN_proj/W_proj, which options.json asks"),
    "other sizes": (
        lambda f: (f / "options.json").write_text((f / "options.json").read_text().replace('"dim": 24', '"dim": 20')),
        r"RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0 has the shape \[96, 16\] where options.json asks for \[80, 16\]",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_is_wrong_with_the_files_is_one_sentence(source, tmp_path, what):
    spoil, message = SPOILT[what]
    folder = shutil.copytree(source, tmp_path / "source")
    spoil(folder)
    with pytest.raises(UserError, match=message) as caught:
        assemble(folder, tmp_path, Entry.model_validate(ENTRY))
    assert "\n" not in str(caught.value)
