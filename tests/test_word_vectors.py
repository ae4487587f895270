"""Word vectors: files as word2vec and GloVe write them, words as the encoder's tokens, frozen and tuned."""

import numpy as np
import pandas as pd
import pytest
import torch

from thaw.core.errors import UserError
from thaw.encoders.registry import load_model, load_tokenizer
from thaw.encoders.transformers import Encoder
from thaw.encoders.word_vectors import assemble, read_matrix, read_vectors
from thaw.features.tokens import tokenise
from thaw.schema.corpora import ViewConfig
from thaw.schema.encoder import EncoderConfig as Entry
from tiny import KNOWN
from tiny_corpus import Bench, tiny_corpus
from tiny_own import STATED, vector_lines
from trained import TRAINS, check_training

LINES = ["the 1 2 3", ". . 4 5 6", "Anna 7 8 9e-1", "the 0 0 0"]


def written(folder, lines, ending="\n"):
    path = folder / "vectors.txt"
    path.write_bytes((ending.join(lines) + ending).encode())
    return path


def assembled(folder, lines, **changes):
    """Bring a file into an encoder's folder."""
    entry = {"kind": "word_vectors", "file": "f", "layers": 0} | STATED | {"width": 3, "cased": True} | changes
    assemble(written(folder, lines), folder, Entry.model_validate(entry))
    return folder


@pytest.mark.parametrize("header", [[], ["4 3"]])
@pytest.mark.parametrize("ending", ["\n", "\r\n", " \n"])
def test_a_file_with_and_without_a_header(tmp_path, header, ending):
    words, vectors = read_vectors(written(tmp_path, [*header, *LINES], ending), 3)
    assert words == ["the", ". .", "Anna"] and vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 0.9]]))
    assert read_vectors(written(tmp_path, [*header, *LINES], ending), 3, 2)[0] == ["the", ". ."]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["the 1 2 3", "cat 1 2"],
            r"vectors\.txt:2: expected a word and 3 numbers \(width: 3\), but 2 follow the word",
        ),
        (["the 1 2 3 4"], r"vectors\.txt:1: expected a word and 3 numbers \(width: 3\), but 4 follow the word"),
        (["the 1 2 3", "cat 1 x 2"], r"vectors\.txt:2: expected a word and 3 numbers.*could not convert.*'x'"),
        (["the 1 2 nan"], r"vectors\.txt:1: a number is not finite"),
        (["the 1 2 3", ""], r"vectors\.txt:2: expected a word and 3 numbers"),
        (["1 3"], r"vectors\.txt:1: no vector"),
    ],
)
def test_a_broken_line_is_named(tmp_path, lines, message):
    with pytest.raises(UserError, match=message):
        read_vectors(written(tmp_path, lines), 3)


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"the 1 2 3\n\xff\xfe 1 2 3\n")
    with pytest.raises(UserError, match=r"vectors\.txt:2: not UTF-8 text"):
        read_vectors(path, 3)


def test_unknown_words_and_padding(tmp_path):
    """Padding is 0; an unknown word is the mean of all vectors, or the file's own <unk>; known ones are the file's."""
    matrix = load_model(assembled(tmp_path, LINES)).embeddings.weight.tolist()
    assert matrix[0] == [0, 0, 0] and matrix[2:] == np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 0.9]]).tolist()
    assert matrix[1] == pytest.approx([4, 5, 3.3])
    matrix = load_model(assembled(tmp_path, [*LINES, "<unk> 9 9 9"])).embeddings.weight.tolist()
    assert matrix[1] == [9, 9, 9] and len(matrix) == 5


def test_a_file_that_its_entry_does_not_describe(tmp_path):
    with pytest.raises(UserError, match="no word has an upper-case letter, so it is uncased; write cased: false"):
        assembled(tmp_path, LINES[:1])
    with pytest.raises(UserError, match="has sha256"):
        assembled(tmp_path, LINES, sha256="0" * 64)


def test_words_of_a_text_and_words_as_given(tmp_path):
    """A text is parted at blanks and punctuation; given words are taken as they are; what is cut off has no piece."""
    folder = assembled(tmp_path, [*LINES, "don't 0 0 1", "don 0 1 0", "' 1 0 0", "t 1 1 1"])
    places = load_tokenizer(folder).get_vocab()
    columns, cut = tokenise(
        [["the don't", "", "Anna the the"]], load_tokenizer(folder), ViewConfig(max_length=4), False
    )
    assert columns["input_ids"] == [
        [places["the"], places["don"], places["'"], places["t"]],
        [0],
        [places["Anna"], places["the"], places["the"]],
    ]
    assert cut == [False, False, False]
    words = [["the", "don't", "nobody", "the", "Anna"]]
    columns, cut = tokenise([words], load_tokenizer(folder, words=True), ViewConfig(max_length=4), True)
    assert columns["input_ids"] == [[places["the"], places["don't"], 1, places["the"]]] and cut == [True]
    assert columns["first_pieces"] == [[0, 1, 2, 3, -1]]


def test_case(tmp_path):
    """An uncased file is read in lower case."""
    folder = assembled(tmp_path, ["the 1 2 3", "anna 4 5 6"], cased=False)
    assert load_tokenizer(folder)(["The ANNA"])["input_ids"] == [[2, 3]]


@pytest.mark.parametrize("kind", ["classification", "spans"])
def test_it_is_tuned(tmp_path, kind):
    """An encoder of no layers: full moves the vectors."""
    bench = Bench(tmp_path, "word_vectors", tiny_corpus(tmp_path / "data", kind), kind)
    check_training(bench, bench.spec({"train": TRAINS["full"], "k": 0}, head={"pooling": "mean"}))


def test_stored_states_are_the_vectors(tmp_path):
    """Boundary 0 is boundary L: what a frozen head reads are the file's vectors."""
    bench = Bench(tmp_path, "word_vectors", tiny_corpus(tmp_path / "data", "classification"), "classification")
    batch = bench.store.batch("train", [2, 1])
    stored = bench.store.states(0, "train").gather([2, 1], batch)
    encoder = Encoder.load(bench.encoder)
    torch.testing.assert_close(stored, encoder(batch).detach(), rtol=0, atol=0)
    assert list(encoder.components()) == ["embeddings"] and encoder.layers == 0
    place = load_tokenizer(bench.encoder).get_vocab()["river"]
    line = next(line for line in vector_lines([word.lower() for word in KNOWN]) if line.startswith("river "))
    due = [float(number) for number in line.split()[1:]]
    assert (batch.input_ids[0] == place).sum() >= 4  # rows of an even number are about rivers
    at = stored[0][batch.input_ids[0] == place][0]
    torch.testing.assert_close(at, torch.tensor(due))


def test_a_package_has_a_matrix_and_an_index(tmp_path):
    """The vectors are those of a text file with the same numbers."""
    package, folder = tmp_path / "package", tmp_path / "one"
    package.mkdir()
    vectors = np.float32([[1, 2, 3], [7, 8, 0.9]])
    np.save(package / "vectors.npy", vectors)
    pd.DataFrame({"index": ["the", "Anna"]}).to_parquet(package / "words.parquet")
    words, found = read_matrix(package)
    assert words == ["the", "Anna"] and found.dtype == np.float32
    np.testing.assert_array_equal(found, vectors)
    assert read_matrix(package, 1)[0] == ["the"]
    folder.mkdir()
    assembled(folder, ["the 1 2 3", "Anna 7 8 0.9"])
    entry = {"kind": "word_vectors", "package": "p", "layers": 0} | STATED | {"width": 3, "cased": True}
    assemble(package, tmp_path / "other", Entry.model_validate(entry))
    assert (tmp_path / "other/model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    pd.DataFrame({"index": ["the", "the"]}).to_parquet(package / "words.parquet")
    with pytest.raises(UserError, match="2 words for 2 vectors, each word once"):
        read_matrix(package)
    (package / "words.parquet").unlink()
    with pytest.raises(UserError, match=r"needs one \.npy file of vectors and one \.parquet file"):
        read_matrix(package)
