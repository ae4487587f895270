"""Token ids of a corpus: each row of each split as an encoder will read it, in one Parquet file.

Columns: split, row (position in the split's Parquet file), input_ids, type_ids (empty where the tokenizer gives none),
first_pieces (position of each word's first piece, -1 where truncation or the tokenizer left none; empty without words).
"""

from pathlib import Path

from thaw.records import UserError, replacing
from thaw.runtime import progress
from thaw.settings import View

ROWS_AT_ONCE = 1000


def schema():
    """Return the Arrow schema of the file."""
    import pyarrow

    lists = {"input_ids": pyarrow.int32(), "type_ids": pyarrow.int8(), "first_pieces": pyarrow.int32()}
    plain = [("split", pyarrow.string()), ("row", pyarrow.int64())]
    return pyarrow.schema(plain + [(name, pyarrow.list_(kind)) for name, kind in lists.items()])


def write_tokens(path: Path, corpus: Path, card: dict, tokenizer, view: View) -> dict[str, dict]:
    """Tokenise all splits of a corpus into `path`; returns for each its examples, tokens, truncated, max_length.

    A pair becomes one sequence, cut from its longer side (`longest_first`); a list of words keeps its words. The
    tokenizer must be fast. Memory does not grow with the corpus.
    """
    import pyarrow.parquet as parquet

    words = card.get("words")
    names = [words] if words else card["texts"]
    with replacing(path) as temporary, parquet.ParquetWriter(temporary, schema()) as writer:
        found = {}
        for split in card["splits"]:
            source = parquet.ParquetFile(corpus / f"{split}.parquet")
            pieces = source.iter_batches(ROWS_AT_ONCE, columns=names)
            count = -(-source.metadata.num_rows // ROWS_AT_ONCE)
            texts = ([piece.column(name).to_pylist() for name in names] for piece in pieces)
            found[split] = _write_split(
                writer, split, progress(texts, f"tokens of {split}", count), tokenizer, view, bool(words)
            )
    return found


def _write_split(writer, split: str, pieces, tokenizer, view: View, words: bool) -> dict[str, int]:
    """Tokenise and write a split, some rows at a time; returns what was counted."""
    import pyarrow

    facts = {"examples": 0, "tokens": 0, "truncated": 0, "max_length": 0}
    for texts in pieces:
        columns, truncated = tokenise(texts, tokenizer, view, words)
        lengths = [len(ids) for ids in columns["input_ids"]]
        rows = range(facts["examples"], facts["examples"] + len(lengths))
        writer.write_table(pyarrow.table({"split": [split] * len(lengths), "row": rows, **columns}, schema=schema()))
        facts["examples"] += len(lengths)
        facts["tokens"] += sum(lengths)
        facts["truncated"] += truncated
        facts["max_length"] = max(facts["max_length"], *lengths)
    return facts


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
