"""The kinds of encoders: where each may come from, which files it has, and where the code that reads it is."""

from dataclasses import dataclass

from thaw.core import plugins
from thaw.declarations.lazy_import import LazyImport


@dataclass(frozen=True)
class EncoderKind(LazyImport):
    """A kind of encoder.

    source: its `thaw.encoders.builtin_models.BuiltinCode`; empty for what transformers reads. origins: the keys that
    may say where it is. form: what its folder holds, in words. model_types: what config.json calls its models. files:
    patterns of the files that its folder must have, each once. spelt: whether its tokens have no vocabulary. layered:
    whether it has layers.
    """

    origins: tuple[str, ...]
    form: str = ""
    model_types: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    spelt: bool = False
    layered: bool = True


ENCODER_KINDS = {
    "transformers": EncoderKind("", ("hub", "folder", "package"), "config.json, weights and tokenizer files"),
    "sentence": EncoderKind(
        "thaw.encoders.sentence:CODE",
        ("hub", "folder", "package", "file"),
        "modules.json and what it names, as sentence-transformers writes them",
        model_types=("sentence", "sentence_vectors"),
        spelt=True,
        layered=False,
    ),
    "word_vectors": EncoderKind(
        "thaw.encoders.word_vectors:CODE", ("file", "package"), model_types=("word_vectors",), layered=False
    ),
}
ENCODER_KINDS |= plugins.shipped("ENCODERS")
KIND_OF_MODEL = {name: kind for kind in ENCODER_KINDS.values() for name in kind.model_types}
