"""Step `features`: token ids of a corpus, and the frozen encoder's hidden states: of tokens, of texts, or of words."""

from pathlib import Path

from thaw.core import layout
from thaw.core.boundaries import VECTORS
from thaw.core.devices import deterministic_is_required, run_nondeterministic_if_needed
from thaw.core.digests import digest, file_sha256
from thaw.core.errors import UserError
from thaw.core.files import check_digest, locked, read_json, write_json
from thaw.core.phrases import plural
from thaw.core.processes import Processes
from thaw.core.runtime import hardware, log, run_step, set_threads
from thaw.core.step_arguments import CORES, DATA, ENCODER, any_number, parse_arguments, read_word
from thaw.schema.corpora import ViewConfig
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
        out="folder of the store",
    )
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
    write_tokens(spec, arguments.data, corpus, arguments.encoder, encoder, out, card)
    drop_others(out, card["digest"], encoder["layers"])
    if arguments.boundaries:
        parts = sorted(set(arguments.boundaries), key=lambda part: (isinstance(part, str), part))
        wanted = rows(arguments.rows, arguments.data)
        run_nondeterministic_if_needed(lambda: write_parts(out, arguments.encoder, parts, spec, wanted, processes))


def write_tokens(spec: dict, data: Path, corpus: dict, folder: Path, encoder: dict, out: Path, card: dict) -> None:
    """Tokenise the corpus and write the card that says what the folder holds."""
    from thaw.encoders.registry import load_tokenizer
    from thaw.encoders.spelling import SpellingTokenizer
    from thaw.features import tokens
    from thaw.features.sequences import write_spellings

    view = ViewConfig.model_validate(spec["view"])
    tokens.check_length(view, encoder["max_length"], encoder["encoder"])
    pairs = len(corpus.get("texts") or []) == 2 and view.pairs == "joint"
    tokenizer = load_tokenizer(folder, bool(corpus.get("words")), pairs)
    path = out / "tokens.parquet"
    splits = tokens.write_tokens(path, data, corpus, tokenizer, view)
    facts = {"splits": splits, "sha256": file_sha256(path), "pad": tokenizer.pad_token_id}
    facts |= {"types": tokens.has_types(tokenizer), "words": bool(corpus.get("words"))}
    facts |= {"apart": True} if view.pairs == "separate" else {}
    facts |= {"windows": True} if view.stride else {}
    if isinstance(tokenizer, SpellingTokenizer):
        write_spellings(out, tokenizer.spellings())
        facts["spelt"] = True
    write_json(out / "tokens.json", card | facts)


def rows(selections: list[dict] | None, data: Path) -> dict | None:
    """Return by split the rows that some selections of a corpus read, None where all are stored."""
    from thaw.data.corpus import Corpus
    from thaw.training.rows_read import rows_of_all

    return rows_of_all(selections, Corpus(data)) if selections else None


def write_parts(
    out: Path, folder: Path, parts: list[int | str], spec: dict, wanted: dict | None, processes: Processes
) -> None:
    """Run the encoder once over each split and write a card for each part, after its payload.

    Args: wanted, by split the rows that are stored, None for all. The seconds on the card are those of all processes,
    about what one would take, so that they compare with those of a training.
    """
    from thaw.compute_cost.stopwatch import Stopwatch, claimed
    from thaw.encoders.transformers import Encoder
    from thaw.features.extract import StatesFormat, extract, write_cards
    from thaw.features.row_sets import masks_of
    from thaw.features.store import FeatureStore

    store, encoder, form = FeatureStore(out), Encoder.load(folder), StatesFormat.of(spec)
    store.sizes("train")  # reads the tokens before a device is claimed
    watch = Stopwatch()
    masks = None if wanted is None else masks_of(store, wanted)
    with locked(out):
        facts = extract(store, encoder, parts, form, claimed(watch), rows=masks, processes=processes)
        seconds = round(watch.seconds()["total"] + processes.spared, 3)
        shared = {"seconds": seconds, "device": hardware(watch.device)["device"]}
        shared |= {"deterministic": False} if watch.device.type == "cuda" and not deterministic_is_required() else {}
        write_cards(store, encoder, form, facts, shared)
    log(f"{plural(len(parts), 'part')}, {sum(f['bytes'] for f in facts.values()) / 2**20:.1f} MiB, {seconds:.1f} s")


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
