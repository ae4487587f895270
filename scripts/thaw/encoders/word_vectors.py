"""Static word vectors of a text file or a package: an encoder of no layers whose one boundary is 0 = L.

The matrix is `thaw.encoders.builtin_models.EmbeddingTable`. V words, d width.
"""

import re
from pathlib import Path

import numpy as np
import torch

from thaw.core.errors import UserError
from thaw.encoders.builtin_models import (
    BuiltinCode,
    BuiltinModel,
    EmbeddingTable,
    builtin_config,
    write_builtin,
)
from thaw.encoders.names import check_sum

PAD, UNKNOWN = "<pad>", "<unk>"


def tokenizer(words: list[str], cased: bool):
    """Return a tokenizer of whole words: text is split at whitespace and around punctuation.

    The ids of these words begin at 2, after padding and unknown.
    """
    from tokenizers import Tokenizer, models, normalizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: place for place, word in enumerate([PAD, UNKNOWN, *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    backend.pre_tokenizer = word_boundaries()
    if not cased:
        backend.normalizer = normalizers.Lowercase()
    names = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token=PAD, unk_token=UNKNOWN, model_input_names=names)


def word_boundaries():
    """Return the rule by which a text becomes words: at blanks and around each sign of punctuation."""
    from tokenizers.pre_tokenizers import Punctuation, Sequence, WhitespaceSplit

    return Sequence([WhitespaceSplit(), Punctuation()])


def load_tokenizer(folder, words: bool):
    """Return the tokenizer of a folder; `words`: it will be given lists of words, and takes each as it is."""
    from transformers import PreTrainedTokenizerFast

    loaded = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    if words:
        loaded.backend_tokenizer.pre_tokenizer = None
    return loaded


HEADER = re.compile(r"\d+ \d+")


def assemble(source: Path, target: Path, entry) -> None:
    """Read a file of vectors, or a package's folder, into a folder: the matrix, its words as a tokenizer, and a config.

    Padding is a vector of zeros. An unknown word reads the file's own <unk>, else the mean of all its vectors.
    """
    if source.is_dir():
        words, vectors = read_matrix(source, entry.vocabulary)
    elif source.is_file():
        check_sum(source, entry.sha256)
        words, vectors = read_vectors(source, entry.width, entry.vocabulary)
    else:
        raise UserError(f"there is no file {source}; file: takes a word2vec or GloVe text file")
    if entry.cased and not any(word != word.lower() for word in words):
        raise UserError(f"{source}: no word has an upper-case letter, so it is uncased; write cased: false")
    places = {word: place for place, word in enumerate(words)}
    unknown = vectors[places[UNKNOWN]] if UNKNOWN in places else vectors.mean(0)
    kept = [place for word, place in places.items() if word not in (PAD, UNKNOWN)]
    matrix = np.concatenate([np.zeros_like(vectors[:1]), unknown[None], vectors[kept]])
    sizes = {"num_hidden_layers": 0, "hidden_size": matrix.shape[1], "vocab_size": len(matrix), "pad_token_id": 0}
    model = EmbeddingTable(builtin_config(model_type="word_vectors", **sizes))
    model.embeddings.weight.data = torch.from_numpy(matrix)
    write_builtin(model, target)
    tokenizer([words[place] for place in kept], entry.cased).save_pretrained(target)


def read_matrix(folder: Path, most: int | None = None) -> tuple[list[str], np.ndarray]:
    """Return the words of a Parquet file with one column and their rows of a matrix in a .npy file, float32 [V, d].

    Args: the folder with both files; how many words from the top, None for all.
    """
    import pyarrow.parquet as parquet

    matrices, indices = sorted(folder.glob("*.npy")), sorted(folder.glob("*.parquet"))
    if len(matrices) != 1 or len(indices) != 1:
        raise UserError(f"{folder}: needs one .npy file of vectors and one .parquet file of their words")
    words, vectors = parquet.read_table(indices[0]).column(0).to_pylist(), np.load(matrices[0], mmap_mode="r")
    if len(words) != len(vectors) or len(set(words)) < len(words):
        raise UserError(f"{folder}: {len(words)} words for {len(vectors)} vectors, each word once; install it again")
    return words[:most], np.array(vectors[:most], dtype=np.float32)


def read_vectors(path: Path, width: int, most: int | None = None) -> tuple[list[str], np.ndarray]:
    """Return the words of a text file, each once, and their vectors, float32 [V, d]; the first so many, or all.

    A line is a word and d numbers, separated by single spaces; words may hold spaces (as in GloVe 840B). A first line
    of two numbers is the header of word2vec. Any other line is a UserError with its number.
    """
    vectors: dict[str, np.ndarray] = {}
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8").rstrip("\r\n ")
            except UnicodeDecodeError as error:
                raise UserError(f"{path}:{number}: not UTF-8 text") from error
            if number == 1 and HEADER.fullmatch(text):
                continue
            word, vector = _parsed(text, width, f"{path}:{number}")
            vectors.setdefault(word, vector)
            if len(vectors) == most:
                break
    if not vectors:
        raise UserError(f"{path}:1: no vector; a line is a word and its numbers")
    return list(vectors), np.stack(list(vectors.values()))


def _parsed(text: str, width: int, place: str) -> tuple[str, np.ndarray]:
    word, *numbers = text.rsplit(" ", width)
    more = [_is_number(piece) for piece in word.split(" ")[1:]]
    if len(numbers) < width or (more and all(more)):
        count = len(text.split(" ")) - 1
        raise UserError(f"{place}: expected a word and {width} numbers (width: {width}), but {count} follow the word")
    try:
        vector = np.array(numbers, dtype=np.float32)
    except ValueError as error:
        raise UserError(f"{place}: expected a word and {width} numbers; {error}") from error
    if not np.isfinite(vector).all():
        raise UserError(f"{place}: a number is not finite")
    return word, vector


def _is_number(piece: str) -> bool:
    try:
        float(piece)
    except ValueError:
        return False
    return True


CODE = BuiltinCode(assemble, {"word_vectors": BuiltinModel(EmbeddingTable, load_tokenizer)})
