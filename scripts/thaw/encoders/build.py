"""Bringing a published encoder of any kind into the one form that Thaw reads, in a folder of its own."""

from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.runtime import seeded
from thaw.declarations.encoders import ENCODER_KINDS
from thaw.encoders import conversion
from thaw.encoders.builtin_models import builtin_config, write_builtin
from thaw.encoders.registry import builtin_kind
from thaw.encoders.shortening import compact
from thaw.encoders.transformers import Encoder
from thaw.schema.encoder import EncoderConfig as Entry


def assemble(source: Path, target: Path, entry: Entry) -> None:
    """Bring the model of a catalogue entry into a folder: config.json, tokenizer files, model.safetensors.

    Where the entry asks for random weights they take the place of the published ones, always the same; of a truncated
    model the layers above those that it states are left out.
    """
    if entry.kind == "transformers":
        conversion.assemble(source, target, entry.sha256)
    else:
        ENCODER_KINDS[entry.kind].load().assemble(source, target, entry)
    if entry.weights == "random":
        randomise(target)
    if entry.truncated:
        truncate(target, entry.layers)


def randomise(folder: Path) -> None:
    """Put in the place of an assembled model's weights the random ones that its architecture begins with."""
    if kind := builtin_kind(folder):
        with seeded(0, "random weights"):
            write_builtin(kind.model(builtin_config(**read_json(folder / "config.json"))), folder)
    else:
        conversion.randomise(folder)


def truncate(folder: Path, layers: int) -> None:
    """Throw away all layers of an assembled model above the first so many. Raises UserError where there are none."""
    encoder = Encoder.load(folder)
    if layers >= encoder.layers:
        raise UserError(f"{folder} has {encoder.layers} layers; truncated: with layers: {layers} leaves out none")
    compact(encoder, range(1, layers + 1))
    encoder.model.save_pretrained(folder)
