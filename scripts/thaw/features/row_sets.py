"""Rows of a store: those that a part holds, and the batches in which some are read with the bits that all would have.

A part holds the rows that some job read, and more are added when a job asks for them. A state's last bits follow from
the length that its batch is padded to, and from whether any padding is there; on a GPU also from the number of rows.
All of this is therefore taken from the batch in which the row is when all rows of its split are read.

N rows of a split.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thaw.declarations.splits import stored_split

TOKENS_PER_BATCH = 2048  # padding included; part of the result, since the batch's shape moves fp32 states by 2e-6
LEAST_TOKENS = 256  # of a batch on a CPU: with fewer its threads divide a product in another way
NEARLY_ALL = 0.9  # of the tokens of a split: where so many would be read, all are

RowMasks = dict[str, np.ndarray]  # by split which rows, bool [N]


class RowBatch(NamedTuple):
    """Rows that are read together; only the first `wanted` are stored. Sequences are padded to `length` tokens."""

    rows: np.ndarray
    wanted: int
    length: int


def batches(sizes: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each batch of the extraction: sorted by length, longest first, at most 2,048 tokens.

    sizes: what each row takes in a batch that it sets the length of, [N]. Every row is in one batch, or in none
    where it is empty; equal sizes keep their order.
    """
    order, rows_by_batch = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)], []
    start = 0
    while start < len(order):
        count = max(1, TOKENS_PER_BATCH // int(sizes[order[start]]))
        rows_by_batch.append(order[start : start + count])
        start += count
    return rows_by_batch


def batches_of(store, split: str, wanted: np.ndarray | None = None, full: bool = False) -> list[RowBatch]:
    """Return batches of all rows of a split, or of some that have the bits which they have among all.

    Args: wanted, bool [N]; full, whether each batch must have as many rows as it has among all.
    """
    sizes, tokens, longest, each = store.sizes(split), store.lengths(split), store.longest(split), store.counts(split)
    whole = [RowBatch(rows, len(rows), int(longest[rows].max())) for rows in batches(sizes)]
    if wanted is None or wanted.all():
        return whole
    groups: dict[tuple[int, int, bool], tuple[list[np.ndarray], int]] = {}
    for rows, count, length in whole:
        padding = length * each[rows] - tokens[rows]
        shortest = int(rows[padding.argmax()])
        key = (count, length, bool(padding.max() > 0))
        if wanted[rows].any():
            groups.setdefault(key, ([], shortest))[0].append(rows[wanted[rows]])
    filled: list = []
    for (count, length, padded), (chosen, shortest) in groups.items():
        least = count if full else min(count, -(-LEAST_TOKENS // (length * max(1, int(each.min())))))
        filled += _filled(np.concatenate(chosen), count, least, length, shortest if padded else None)
    return filled


def _filled(rows: np.ndarray, count: int, least: int, length: int, padded: int | None) -> Iterator[RowBatch]:
    """Yield batches of some rows, at most `count` and at least `least` in each.

    Args: padded, a row with padding that each batch must have, since attention is computed in another way without any.
    """
    room = count - (padded is not None and count > 1)
    for start in range(0, len(rows), room):
        piece = rows[start : start + room]
        missing = max(least - len(piece), int(padded is not None and count > 1))
        filler = np.full(missing, piece[0] if padded is None else padded)
        yield RowBatch(np.concatenate([piece, filler]), len(piece), length)


def widened(store, masks: RowMasks, full: bool) -> RowMasks:
    """Return masks with all rows of a split where reading those of its mask would read nearly as many tokens."""

    def read(split: str, wanted: np.ndarray | None = None) -> int:
        return sum(len(batch.rows) * batch.length for batch in batches_of(store, split, wanted, full))

    enough = {split: read(split, wanted) > NEARLY_ALL * read(split) for split, wanted in masks.items()}
    return {split: np.ones_like(wanted) if enough[split] else wanted for split, wanted in masks.items()}


def all_rows(store) -> RowMasks:
    return {split: np.ones(len(store.lengths(split)), bool) for split in store.splits}


def masks_of(store, rows: dict[str, np.ndarray]) -> RowMasks:
    """Return masks of some rows by split, which may be a part of train."""
    masks = {split: np.zeros(len(store.lengths(split)), bool) for split in store.splits}
    for split, chosen in rows.items():
        masks[stored_split(split, store.splits)][chosen] = True
    return masks


def union(first: RowMasks, *others: RowMasks) -> RowMasks:
    return {split: np.logical_or.reduce([first[split], *(mask[split] for mask in others)]) for split in first}


def without(masks: RowMasks, others: RowMasks) -> RowMasks:
    return {split: mask & ~others[split] for split, mask in masks.items()}


def to_card(masks: RowMasks) -> dict:
    """Return what the card of a part says of its rows: nothing where it holds all, else bits in hexadecimal digits."""
    some = {split: mask for split, mask in masks.items() if not mask.all()}
    entry = {
        split: {"held": int(mask.sum()), "bits": np.packbits(mask).tobytes().hex()} for split, mask in some.items()
    }
    return {"rows": entry} if entry else {}


def of_card(store, card: dict) -> RowMasks:
    """Return the rows that a part of a store holds. Args: its card."""
    masks = all_rows(store)
    for split, entry in card.get("rows", {}).items():
        packed = np.frombuffer(bytes.fromhex(entry["bits"]), np.uint8)
        masks[split] = np.unpackbits(packed, count=len(masks[split])).astype(bool)
    return masks
