"""Token ids of a corpus: each row of each split as an encoder will read it, in one Parquet file.

Columns: split, row (position in the split's Parquet file), input_ids, type_ids (empty where the tokenizer gives none),
first_pieces (position of each word's first piece, -1 where truncation or the tokenizer left none; empty without words).
"""

from pathlib import Path

from thaw.records import UserError, replacing
from thaw.runtime import progress
from thaw.settings import View

ROWS_AT_ONCE = 1000


def write_tokens(path: Path, corpus: Path, card: dict, tokenizer, view: View) -> dict[str, dict]:
    """Tokenise all splits of a corpus into `path`; returns for each its examples, tokens, truncated, max_length.

    A pair becomes one sequence, cut from its longer side (`longest_first`); a list of words keeps its words. The
    tokenizer must be fast. Memory does not grow with the corpus.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    names = [card["words"]] if card.get("words") else card["texts"]
    lists = {"input_ids": pyarrow.int32(), "type_ids": pyarrow.int8(), "first_pieces": pyarrow.int32()}
    fields = [("split", pyarrow.string()), ("row", pyarrow.int64())]
    schema = pyarrow.schema(fields + [(name, pyarrow.list_(kind)) for name, kind in lists.items()])
    found = {}
    with replacing(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:
        for split in card["splits"]:
            source = parquet.ParquetFile(corpus / f"{split}.parquet")
            facts = {"examples": 0, "tokens": 0, "truncated": 0, "max_length": 0}
            pieces = source.iter_batches(ROWS_AT_ONCE, columns=names)
            for piece in progress(pieces, f"tokens of {split}", -(-source.metadata.num_rows // ROWS_AT_ONCE)):
                texts = [piece.column(name).to_pylist() for name in names]
                columns, truncated = tokenise(texts, tokenizer, view, words=bool(card.get("words")))
                rows = range(facts["examples"], facts["examples"] + len(piece))
                writer.write_table(
                    pyarrow.table({"split": [split] * len(piece), "row": rows, **columns}, schema=schema)
                )
                lengths = [len(ids) for ids in columns["input_ids"]]
                facts["examples"] += len(piece)
                facts["tokens"] += sum(lengths)
                facts["truncated"] += truncated
                facts["max_length"] = max(facts["max_length"], *lengths)
            found[split] = facts
    return found


def tokenise(texts: list[list], tokenizer, view: View, words: bool) -> tuple[dict[str, list], int]:
    """Return input_ids, type_ids and first_pieces of some rows, and how many of the rows were cut.

    texts: one list of strings, two for pairs, or with `words` one list of lists of words.
    """
    encoded = tokenizer(
        *texts, is_split_into_words=words, truncation="longest_first", max_length=view.max_length, padding=False
    )
    rows = len(texts[0])
    columns = {
        "input_ids": encoded["input_ids"],
        "type_ids": encoded["token_type_ids"] if has_types(tokenizer) else [[]] * rows,
        "first_pieces": [[]] * rows,
    }
    if words:
        columns["first_pieces"] = [_first_pieces(encoded.word_ids(i), len(texts[0][i])) for i in range(rows)]
    return columns, sum(bool(encoding.overflowing) for encoding in encoded.encodings)


def has_types(tokenizer) -> bool:
    """Tell whether the tokenizer tells the first text of a pair from the second by type ids."""
    return "token_type_ids" in tokenizer.model_input_names


def check_length(view: View, longest: int, encoder: str) -> None:
    """Refuse a view that asks for more tokens than the encoder has positions."""
    if view.max_length > longest:
        raise UserError(
            f"the view's max_length is {view.max_length}, but {encoder} reads at most {longest} tokens; "
            "lower max_length in tasks.yaml"
        )


def _first_pieces(word_ids: list, count: int) -> list[int]:
    """Return the position of each word's first piece, -1 where it has none."""
    first = [-1] * count
    for position, word in enumerate(word_ids):
        if word is not None and first[word] < 0:
            first[word] = position
    return first
