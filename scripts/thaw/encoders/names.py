"""The files of an encoder: their names, and those that a user puts into place."""

from pathlib import Path

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError

SETTINGS = ("config.json",)
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json")
SENTENCEPIECE = ("spm.model", "spiece.model", "sentencepiece.bpe.model")
TOKENIZER = (
    *VOCABULARIES,
    *SENTENCEPIECE,
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"
MODULES = ("modules.json", "sentence_bert_config.json", "*/config.json")  # of sentence-transformers


def published(folder: Path, pattern: str, place: str, has_address: bool = False) -> Path:
    """Return the one file of a folder that has a name of this pattern; none or several are a UserError."""
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        count = "no file" if not files else f"{len(files)} files"
        raise UserError(f"{place}: {folder} holds {count} {pattern}, expected one{where_to_put(has_address)}")
    return files[0]


def where_to_put(has_address: bool) -> str:
    """Return how missing files are to be had, as the end of a sentence. Args: whether their entry has a `url:`."""
    return f"; {'`thaw fetch` downloads it' if has_address else 'it must be put there'}"


def check_sum(path: Path, expected: str | None) -> None:
    """Raise UserError where a published file has another sha256 than its entry states."""
    if expected and (actual := file_sha256(path)) != expected:
        raise UserError(f"{path} has sha256 {actual}, but encoders.yaml asks for {expected}: it is another file")
