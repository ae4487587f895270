"""The folder of an encoder: how a published one is brought into it, whole or not at all, and what its card says."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from thaw.core.digests import canonical, file_sha256
from thaw.core.errors import UserError
from thaw.core.files import locked, read_json
from thaw.core.runtime import seeded
from thaw.declarations.encoders import ENCODER_KINDS
from thaw.encoders import conversion, names
from thaw.encoders.builtin_models import builtin_config, write_builtin
from thaw.encoders.loading import longest
from thaw.encoders.parity import MARKER, compare, write_marker
from thaw.encoders.registry import builtin_kind, load_tokenizer
from thaw.encoders.shortening import compact
from thaw.encoders.transformers import Encoder
from thaw.schema.encoder import EncoderConfig as Entry

FILES = (*names.SETTINGS, *names.TOKENIZER, names.WEIGHTS, MARKER)


@contextlib.contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Give an empty folder for a model's files; on success they take the place of those in `out`, whose card goes.

    The caller writes the new card, last of all. On any error `out` stays as it was. Two processes, of which one may be
    left over from a workflow that was killed, take turns.
    """
    out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        staging = out / ".staging"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        try:
            yield staging
            (out / "card.json").unlink(missing_ok=True)
            for name in FILES:
                (out / name).unlink(missing_ok=True)
                if (staging / name).is_file():
                    os.replace(staging / name, out / name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def verified(folder: Path, encoder: Encoder | None = None) -> dict:
    """Prove that the model of a folder resumes exactly at every layer, and return what a card says of it.

    Args: encoder, as the folder has it, where it was loaded already; it is used up.
    """
    encoder, tokenizer = encoder or Encoder.load(folder), load_tokenizer(folder)
    weights = file_sha256(folder / names.WEIGHTS)
    files = {file: file_sha256(folder / file) for file in names.TOKENIZER if (folder / file).is_file()}
    facts = {
        "sha256": weights,
        "tokenizer_sha256": hashlib.sha256(canonical(files).encode()).hexdigest(),
        "layers": encoder.layers,
        "width": encoder.width,
        "parameters": sum(parameter.numel() for parameter in encoder.parameters()),
        "architecture": type(encoder.model).__name__,
        "max_length": longest(encoder.model, tokenizer),
    }
    compare(encoder, folder)
    write_marker(folder, weights)
    return facts


def assemble(source: Path, target: Path, entry: Entry) -> None:
    """Bring the model of a catalogue entry into a folder: config.json, tokenizer files, model.safetensors.

    Where the entry asks for random weights they take the place of the published ones, always the same; of a truncated
    model the layers above those that it states are left out.
    """
    if entry.kind == "transformers":
        conversion.assemble(source, target, entry.sha256)
    else:
        ENCODER_KINDS[entry.kind].load().assemble(source, target, entry)
    if entry.weights == "random" and (kind := builtin_kind(target)):
        with seeded(0, "random weights"):
            write_builtin(kind.model(builtin_config(**read_json(target / "config.json"))), target)
    elif entry.weights == "random":
        conversion.randomise(target)
    if entry.truncated:
        truncate(target, entry.layers)


def truncate(folder: Path, layers: int) -> None:
    """Throw away all layers of an assembled model above the first so many. Raises UserError where there are none."""
    encoder = Encoder.load(folder)
    if layers >= encoder.layers:
        raise UserError(f"{folder} has {encoder.layers} layers; truncated: with layers: {layers} leaves out none")
    compact(encoder, range(1, layers + 1))
    encoder.model.save_pretrained(folder)
