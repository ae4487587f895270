"""Step `features`: token ids of a corpus, and the frozen encoder's hidden states: of tokens, of texts, or of words."""

from pathlib import Path

from thaw.core import layout
from thaw.core.boundaries import VECTORS
from thaw.core.devices import run_again_if_needed
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.files import check_digest, read_json
from thaw.core.processes import Processes
from thaw.core.runtime import run_step, set_threads
from thaw.core.step_arguments import CORES, DATA, ENCODER, GPU_MB, any_number, parse_arguments, read_word
from thaw.schema.experiment import threads_of


def main() -> None:
    """Write tokens.parquet and its card, then the payload and card of each part that is asked for."""
    arguments = parse_arguments(
        __doc__,
        # the rule gives cards, since it is made in a loop: what its command says of the loop's variable would be of the
        # last
        any_number("--boundaries", "0 to L, pooled, words, or their cards; or none", layout.part_named),
        ("--rows", {"type": read_word, "help": "what reads the states, as JSON: these rows are stored; default: all"}),
        CORES,
        DATA,
        ENCODER,
        GPU_MB,
        out="folder of the store",
    )
    from thaw.data.corpus import Corpus
    from thaw.evaluation.result_files import rows_of_all
    from thaw.features import new_store

    spec, out = arguments.spec, arguments.out
    corpus, encoder = _card(arguments.data, spec["data"]), _card(arguments.encoder, spec["encoder"])
    if beyond := [n for n in arguments.boundaries if n not in (*range(encoder["layers"] + 1), *VECTORS)]:
        raise UserError(f"{encoder['encoder']} has boundaries 0 to {encoder['layers']}, and no {beyond[0]}")
    if "words" in arguments.boundaries and not corpus.get("words"):
        raise UserError(f"{corpus['corpus']} has no column of words, and so no states of words; ask for pooled")
    threads = threads_of(spec)
    processes = Processes(threads, arguments.cores)
    set_threads(processes.own_threads)
    card = {
        "digest": digest(spec),
        "encoder": encoder["encoder"],
        "corpus": corpus["corpus"],
        "view": out.name,
        "settings": spec["view"],
        "weights": encoder["sha256"],
        "tokenizer": encoder["tokenizer_sha256"],
        "data": corpus["digest"],
        "threads": threads,
        **{key: spec[key] for key in ("dtype", "precision") if key in spec},
    }
    new_store.write_tokens(spec, arguments.data, corpus, arguments.encoder, encoder, out, card)
    drop_others(out, card["digest"], encoder["layers"])
    if arguments.boundaries:
        parts = sorted(set(arguments.boundaries), key=lambda part: (isinstance(part, str), part))
        wanted = rows_of_all(arguments.rows, Corpus(arguments.data)) if arguments.rows else None
        run_again_if_needed(lambda: new_store.write_parts(out, arguments.encoder, parts, spec, wanted, processes))


def drop_others(out: Path, ours: str, layers: int) -> None:
    """Delete parts that another spec left in the folder: nothing can read them any more."""
    for card in (Path(layout.stored_part(str(out), part)) for part in (*range(layers + 1), *VECTORS)):
        if card.is_file() and read_json(card).get("digest") != ours:
            card.with_suffix(".safetensors").unlink(missing_ok=True)
            card.unlink()


def _card(folder: Path, expected: str) -> dict:
    check_digest(folder / "card.json", expected)
    return read_json(folder / "card.json")


if __name__ == "__main__":
    run_step(main)
