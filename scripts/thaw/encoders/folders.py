"""The folder of an encoder: how it appears whole or not at all, and what its card says of the model in it."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from thaw.core.digests import canonical, file_sha256
from thaw.core.files import locked
from thaw.encoders import names
from thaw.encoders.loading import longest
from thaw.encoders.parity import MARKER, compare, write_marker
from thaw.encoders.registry import load_tokenizer
from thaw.encoders.transformers import Encoder

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
