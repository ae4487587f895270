"""Questions and contexts as windows: a context that is too long for one sequence is read in several that overlap.

As in google-research/bert, run_squad.py (Devlin et al. 2019): the question comes first, cut to `max_question` tokens,
then as much of the context as fits; the next window begins `stride` tokens of the context later, and the last is the
first one that reaches the end. What differs: tokens are those of the tokenizer on the whole context, and characters are
its own offsets.
"""

from collections import defaultdict

from thaw.core.errors import UserError
from thaw.schema.corpora import ViewConfig

MAX_QUESTION = 64


def in_windows(questions: list[str], contexts: list[str], tokenizer, view: ViewConfig) -> tuple[dict, list[bool]]:
    """Return the columns of tokens.parquet for some rows, and in which of them the question was cut.

    Raises UserError for a view in which no token of the context fits next to a question, and for an encoder that has no
    tokenizer with offsets.
    """
    if not hasattr(tokenizer, "num_special_tokens_to_add"):
        raise UserError("an encoder that spells words by their characters reads no windows; take another encoder")
    short, cut = _shortened(questions, tokenizer, view.max_question or MAX_QUESTION)
    special = tokenizer.num_special_tokens_to_add(pair=True)
    by_room: dict[int, list[int]] = defaultdict(list)
    for row, ids in enumerate(tokenizer(short, add_special_tokens=False)["input_ids"]):
        by_room[view.max_length - special - len(ids)].append(row)
    if min(by_room) < 1:
        taken = view.max_length - min(by_room)
        raise UserError(
            f"the view's max_length is {view.max_length}, but a question takes {taken} tokens, so that no context "
            "fits; raise max_length, or lower max_question, in tasks.yaml"
        )
    rows: list = [None] * len(short)
    for room, chosen in by_room.items():
        encoded = tokenizer(
            [short[row] for row in chosen],
            [contexts[row] for row in chosen],
            truncation="only_second",
            max_length=view.max_length,
            stride=max(0, room - view.stride),  # the library's stride is what two windows share
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
    """Return the columns of one row, of its windows in the tokenizer's answer."""
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


def _shortened(questions: list[str], tokenizer, longest: int) -> tuple[list[str], list[bool]]:
    """Return questions without what is beyond so many tokens, and which of them were cut."""
    places = tokenizer(questions, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    cut = [len(tokens) > longest for tokens in places]
    return [
        question[: tokens[longest - 1][1]] if short else question
        for question, tokens, short in zip(questions, places, cut, strict=True)
    ], cut
