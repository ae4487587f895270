"""Bringing a published encoder of any kind into the one form that Thaw reads, in a folder of its own."""

from pathlib import Path

from thaw.encoders import conversion, elmo_files, sentence_files, vector_files
from thaw.encoders.own import own_config, write_own
from thaw.encoders.registry import own_kind
from thaw.records import read_json
from thaw.runtime import seeded
from thaw.settings import Encoder as Entry

OWN = {
    "word_vectors": vector_files.assemble,
    "elmo": elmo_files.assemble,
    "sentence": sentence_files.assemble,
}


def assemble(source: Path, target: Path, entry: Entry) -> None:
    """Bring the model of a catalogue entry into a folder: config.json, tokenizer files, model.safetensors.

    Where the entry asks for random weights they take the place of the published ones, always the same.
    """
    if entry.kind == "transformers":
        conversion.assemble(source, target, entry.sha256)
    else:
        OWN[entry.kind](source, target, entry)
    if entry.weights == "random":
        randomise(target)


def randomise(folder: Path) -> None:
    """Put in the place of an assembled model's weights the random ones that its architecture begins with."""
    if kind := own_kind(folder):
        with seeded(0, "random weights"):
            write_own(kind.model(own_config(**read_json(folder / "config.json"))), folder)
    else:
        conversion.randomise(folder)
