"""A store of features as it is made: the tokens of a corpus, then the states of each part."""

from pathlib import Path

from thaw.compute_cost.stopwatch import Stopwatch, claimed
from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.files import locked, write_json
from thaw.core.phrases import plural
from thaw.core.processes import Processes
from thaw.core.runtime import log
from thaw.encoders.registry import load_tokenizer
from thaw.encoders.spelling import SpellingTokenizer
from thaw.encoders.transformers import Encoder
from thaw.features import tokens
from thaw.features.extract import StatesFormat, extract, made_on, pass_seconds, write_cards
from thaw.features.row_sets import masks_of
from thaw.features.sequences import write_spellings
from thaw.features.store import FeatureStore
from thaw.schema.corpora import ViewConfig


def write_tokens(spec: dict, data: Path, corpus: dict, folder: Path, encoder: dict, out: Path, card: dict) -> None:
    """Tokenise the corpus and write the card that says what the folder holds."""
    view = ViewConfig.model_validate(spec["view"])
    if view.max_length > encoder["max_length"]:
        raise UserError(
            f"the view's max_length is {view.max_length}, but {encoder['encoder']} reads at most "
            f"{encoder['max_length']} tokens; lower max_length in tasks.yaml"
        )
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


def write_parts(
    out: Path, folder: Path, parts: list[int | str], spec: dict, wanted: dict | None, processes: Processes
) -> None:
    """Run the encoder once over each split and write a card for each part, after its payload.

    Args: wanted, by split the rows that are stored, None for all. The seconds on the card are those of all processes,
    about what one would take, so that they compare with those of a training.
    """
    store, encoder, form = FeatureStore(out), Encoder.load(folder), StatesFormat.of(spec)
    store.sizes("train")  # reads the tokens before a device is claimed
    watch = Stopwatch()
    masks = None if wanted is None else masks_of(store, wanted)
    with locked(out):
        with watch("extract"):
            facts = extract(store, encoder, parts, form, claimed(watch), rows=masks, processes=processes)
        seconds = watch.seconds()["total"] + processes.spared
        spent = pass_seconds(seconds, watch.processor + processes.worked, watch.device)
        write_cards(store, encoder, form, facts, made_on(watch.device, spent))
    log(f"{plural(len(parts), 'part')}, {sum(f['bytes'] for f in facts.values()) / 2**20:.1f} MiB, {seconds:.1f} s")
