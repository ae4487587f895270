"""Token ids of a corpus: each row of each split as an encoder will read it, in one Parquet file.

Columns: split, row (position in the split's Parquet file), input_ids, type_ids (empty where the tokenizer gives none),
first_pieces (position of each word's first piece, -1 where truncation or the tokenizer left none; empty without words),
texts (1 on tokens of the first text, 2 on those of the second, 0 on special ones).
Where the texts of pairs are read separately, a row's ids are those of both sequences, and a column `second` says where
the second begins. Where contexts are read in windows, they are those of all windows, with
columns windows (tokens of each), starts and ends (characters of the context before each token and up to its end, -1
for tokens that are not of the context).
"""

from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path

from thaw.core.errors import UserError
from thaw.core.files import atomic_write
from thaw.core.runtime import progress
from thaw.schema.corpora import ViewConfig

MAX_QUESTION = 64  # tokens of the longest question; the rest is cut off


def in_windows(questions: list[str], contexts: list[str], tokenizer, view: ViewConfig) -> tuple[dict, list[bool]]:
    """Return the columns of tokens.parquet for some rows, and in which of them the question was cut.

    Raises UserError for a view in which no token of the context fits next to a question, and for an encoder that has no
    tokenizer with offsets.
    """
    if not hasattr(tokenizer, "num_special_tokens_to_add"):
        raise UserError("an encoder that spells words by their characters reads no windows; take another encoder")
    short, cut = _shortened(questions, tokenizer)
    special = tokenizer.num_special_tokens_to_add(pair=True)
    by_room: dict[int, list[int]] = defaultdict(list)
    for row, ids in enumerate(tokenizer(short, add_special_tokens=False)["input_ids"]):
        by_room[view.max_length - special - len(ids)].append(row)
    if min(by_room) < 1:
        taken = view.max_length - min(by_room)
        raise UserError(
            f"the view's max_length is {view.max_length}, but a question takes {taken} tokens, so that no context "
            "fits; raise max_length in tasks.yaml"
        )
    rows: list = [None] * len(short)
    for room, chosen in by_room.items():
        encoded = tokenizer(
            [short[row] for row in chosen],
            [contexts[row] for row in chosen],
            truncation="only_second",
            max_length=view.max_length,
            stride=max(0, room - (view.stride or 0)),  # the library's stride is what two windows share
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=False,
        )
        windows = defaultdict(list)
        for window, place in enumerate(encoded["overflow_to_sample_mapping"]):
            windows[place].append(window)
        for place, row in enumerate(chosen):
            rows[row] = _row(encoded, windows[place])
    return {name: [row[name] for row in rows] for name in rows[0]}, cut


def _row(encoded, windows: list[int]) -> dict[str, list[int]]:
    columns: dict[str, list[int]] = {name: [] for name in ("input_ids", "type_ids", "first_pieces", "texts")}
    columns |= {"windows": [], "starts": [], "ends": []}
    for window in windows:
        texts = [0 if text is None else text + 1 for text in encoded.sequence_ids(window)]
        offsets = zip(encoded["offset_mapping"][window], texts, strict=True)
        places = [place if text == 2 else (-1, -1) for place, text in offsets]
        columns["windows"].append(len(texts))
        columns["input_ids"] += encoded["input_ids"][window]
        columns["type_ids"] += encoded["token_type_ids"][window] if "token_type_ids" in encoded else []
        columns["texts"] += texts
        columns["starts"] += [start for start, _ in places]
        columns["ends"] += [end for _, end in places]
    return columns


def _shortened(questions: list[str], tokenizer) -> tuple[list[str], list[bool]]:
    places = tokenizer(questions, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    cut = [len(tokens) > MAX_QUESTION for tokens in places]
    return [
        question[: tokens[MAX_QUESTION - 1][1]] if short else question
        for question, tokens, short in zip(questions, places, cut, strict=True)
    ], cut


ROWS_AT_ONCE = 1000


def schema(separate_encoding: bool = False, windows: bool = False):
    import pyarrow

    lists = {"input_ids": pyarrow.int32(), "type_ids": pyarrow.int8()}
    lists |= {"first_pieces": pyarrow.int32(), "texts": pyarrow.int8()}
    plain = [("split", pyarrow.string()), ("row", pyarrow.int64())]
    plain += [("second", pyarrow.int32())] if separate_encoding else []
    lists |= dict.fromkeys(("windows", "starts", "ends"), pyarrow.int32()) if windows else {}
    return pyarrow.schema(plain + [(name, pyarrow.list_(kind)) for name, kind in lists.items()])


def write_tokens(path: Path, corpus: Path, card: dict, tokenizer, view: ViewConfig) -> dict[str, dict]:
    """Tokenise all splits of a corpus into `path`; returns for each its examples, tokens, truncated, max_length.

    `truncated` counts examples that were cut, `truncated_labels` by target their labels, or the tags of the words that
    were cut off. A joint pair becomes one sequence, cut from its longer side (`longest_first`); a list of words keeps
    its words. The tokenizer must be fast. Memory does not grow with the corpus.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    words = card.get("words")
    names = [words] if words else card["texts"]
    labels = [target for target, kind in card["targets"].items() if kind in ("label", "label_set", "tags")]
    if view.pairs == "separate" and len(names) != 2:
        raise UserError(f"a view with pairs: separate is for pairs of texts; {card['corpus']} has none")
    if view.stride and "answers" not in card["targets"].values():
        raise UserError(f"a view with stride: is for questions with answers; {card['corpus']} has none")
    form = schema(view.pairs == "separate", view.stride is not None)
    with atomic_write(path) as temporary, parquet.ParquetWriter(temporary, form) as writer:
        facts = {}
        for split in card["splits"]:
            source = parquet.ParquetFile(corpus / f"{split}.parquet")
            pieces = source.iter_batches(ROWS_AT_ONCE, columns=[*names, *labels])
            count = -(-source.metadata.num_rows // ROWS_AT_ONCE)
            pieces = progress(pieces, f"tokens of {split}", count)
            counted = Counted(labels)
            for piece in pieces:
                texts = [piece.column(name).to_pylist() for name in names]
                columns, cut = tokenise(texts, tokenizer, view, bool(words))
                rows = range(counted.examples, counted.examples + len(piece))
                table = {"split": [split] * len(piece), "row": rows, **columns}
                writer.write_table(pyarrow.table(table, schema=form))
                counted.add(columns, cut, piece)
            facts[split] = counted.facts()
    return facts


class Counted:
    """What is counted while a split is written."""

    def __init__(self, labels: list[str]):
        self.examples = self.tokens = self.truncated = self.longest = 0
        self.labels: dict[str, Counter] = {target: Counter() for target in labels}

    def add(self, columns: dict[str, list], cut: list[bool], piece) -> None:
        """Count some rows: their token ids, whether each was cut, and the piece of the corpus with their targets."""
        lengths = [len(ids) for ids in columns["input_ids"]]
        self.examples += len(lengths)
        self.tokens += sum(lengths)
        self.truncated += sum(cut)
        self.longest = max(self.longest, *chain.from_iterable(columns.get("windows", [lengths])))
        for target, counter in self.labels.items():
            rows = zip(piece.column(target).to_pylist(), cut, columns["first_pieces"], strict=True)
            for value, short, pieces in rows:
                if short and isinstance(value, list) and not pieces:  # the labels of a text
                    counter.update(value)
                elif short and isinstance(value, list):
                    counter.update(tag for tag, place in zip(value, pieces, strict=True) if place < 0)
                elif short:
                    counter[value] += 1

    def facts(self) -> dict:
        facts = {"examples": self.examples, "tokens": self.tokens, "truncated": self.truncated}
        labels = {target: dict(sorted(counter.items())) for target, counter in self.labels.items()}
        return facts | {"max_length": self.longest, "truncated_labels": labels}


def tokenise(texts: list[list], tokenizer, view: ViewConfig, words: bool) -> tuple[dict[str, list], list[bool]]:
    """Return input_ids, type_ids, first_pieces, texts (and second) of some rows, and which of the rows were cut.

    texts: one list of strings, two for pairs, or with `words` one list of lists of words. A text without a token, such
    as an empty one where the tokenizer adds none, is one padding token.
    """
    if view.pairs == "separate":
        first, second = (
            tokenise([column], tokenizer, view.model_copy(update={"pairs": "joint"}), False) for column in texts
        )
        second[0]["texts"] = [[2 * text for text in texts] for texts in second[0]["texts"]]
        both = {name: [a + b for a, b in zip(first[0][name], second[0][name], strict=True)] for name in first[0]}
        cut = [a or b for a, b in zip(first[1], second[1], strict=True)]
        return both | {"second": [len(ids) for ids in first[0]["input_ids"]]}, cut
    if view.stride:
        return in_windows(texts[0], texts[1], tokenizer, view)
    encoded = tokenizer(
        *texts, is_split_into_words=words, truncation="longest_first", max_length=view.max_length, padding=False
    )
    rows = len(texts[0])
    columns = {
        "input_ids": [ids or [tokenizer.pad_token_id] for ids in encoded["input_ids"]],
        "type_ids": [types or [0] for types in encoded["token_type_ids"]] if has_types(tokenizer) else [[]] * rows,
        "first_pieces": [[]] * rows,
        "texts": [[0 if n is None else n + 1 for n in one.sequence_ids] or [0] for one in encoded.encodings],
    }
    if words:
        columns["first_pieces"] = [_first_pieces(encoded.word_ids(i), len(texts[0][i])) for i in range(rows)]
    return columns, [bool(encoding.overflowing) for encoding in encoded.encodings]


def has_types(tokenizer) -> bool:
    """Tell whether the tokenizer marks the second text of a pair by type ids."""
    return "token_type_ids" in tokenizer.model_input_names


def _first_pieces(word_ids: list, count: int) -> list[int]:
    first = [-1] * count
    for position, word in enumerate(word_ids):
        if word is not None and first[word] < 0:
            first[word] = position
    return first
