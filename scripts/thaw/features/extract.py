"""Feature extraction: one pass of the frozen encoder over a dataset writes all requested parts of its store.

S sequences, T tokens of the longest, N tokens of a split, d width.
"""

import contextlib
from dataclasses import dataclass

import numpy as np
import torch

from thaw.core.boundaries import ATTENTION
from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.files import atomic_write, write_json
from thaw.core.runtime import hardware, log, progress, set_threads
from thaw.encoders.transformers import Encoder
from thaw.features.parts import AttentionInputs, Part, part_of
from thaw.features.payload import Payload, floats
from thaw.features.store import FeatureStore

TOKENS_PER_BATCH = 2048  # padding included; part of the result, since the batch's shape moves fp32 states by 2e-6

ROUNDING = 0.01  # of the largest value: bf16 keeps three digits


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


def extract(
    store: FeatureStore,
    encoder: Encoder,
    names: list[int | str],
    dtype: str,
    device,
    expected: dict[int | str, str] | None = None,
) -> dict[int | str, dict]:
    """Write the payloads of some parts, boundaries by number, in one pass per split; returns bytes and sha256 of each.

    States are computed in fp32 and stored as `dtype`, bf16 or fp32. Memory does not grow with the corpus. With
    `expected`, the sha256 of the payloads, no file is kept unless all of them agree. `device` may be a
    context that gives one: it ends with the last pass, before the payloads are hashed.
    """
    given = contextlib.nullcontext(device) if isinstance(device, torch.device) else device
    with contextlib.ExitStack() as stack:
        paths = {n: stack.enter_context(atomic_write(store.payload_path(n))) for n in names}
        written = {}
        for n, path in paths.items():
            part = part_of(n, encoder.layers)
            shapes = {split: part.shape(store, split, encoder.width) for split in store.splits}
            written[n] = Written(part, Payload.create(path, dtype, shapes))
        with given as place:
            encoder = encoder.to(place).eval()
            for split in store.splits:
                _pass(store, encoder, split, written, place)
            _check_against_second_pass(store, encoder, written, place)
            encoder.cpu()
        for one in written.values():
            one.payload.flush()
        facts = {n: {"bytes": path.stat().st_size, "sha256": file_sha256(path)} for n, path in paths.items()}
        for n, checksum in (expected or {}).items():
            if facts[n]["sha256"] != checksum:
                raise UserError(
                    f"{store.payload_path(n)}, made again on {hardware(device)['device']}, is not what its card "
                    "describes: this machine, its number of threads or its libraries differ from those that made it; "
                    f"delete {store.folder} and run again"
                )
        return facts


def remake(store: FeatureStore, encoder_folder, names: list[int | str], device) -> None:
    """Make payloads again that were freed, with the thread count of their cards; they must come out the same.

    Another kind of device than the card names gives other last bits, as do kernels that are not deterministic. What
    they write is compared with the encoder as each pass is, up to rounding, and gets a new card.
    """
    encoder, threads = Encoder.load(encoder_folder), torch.get_num_threads()
    cards, here = {n: store.part_card(n) for n in names}, hardware(device)["device"]
    log(f"making freed payloads again: boundaries {', '.join(map(str, names))} of {store.folder}")
    try:
        set_threads(store.card["threads"])
        expected = {n: card["sha256"] for n, card in cards.items() if _gives_the_same(card, here)}
        facts = extract(store, encoder, names, next(iter(cards.values()))["dtype"], device, expected)
    finally:
        set_threads(threads)
    for n in facts.keys() - expected.keys():
        log(f"boundary {n} was made on {cards[n]['device']} and now on {here}: its states may differ in rounding")
        write_json(store.card_path(n), cards[n] | facts[n] | {"device": here})


def _gives_the_same(card: dict, device: str) -> bool:
    """Return whether a device gives the bits that a card describes: of its kind, with kernels that repeat."""
    return card.get("device", device) == device and card.get("deterministic", True)


@dataclass(frozen=True)
class Written:
    """A part of a store that is being written."""

    part: Part
    payload: Payload


def _states(encoder: Encoder, batch, written: dict[int | str, Written]) -> dict[int, torch.Tensor]:
    """Return the states of a batch at all boundaries that some parts are made of."""
    recorded = sorted({one.part.layer for one in written.values() if isinstance(one.part, AttentionInputs)})
    with encoder.recording(recorded) if recorded else contextlib.nullcontext({}) as taken:
        states = encoder.states(batch, sorted({n for one in written.values() for n in one.part.reads}))
    return states | {f"{ATTENTION}{n}": inputs for n, inputs in taken.items()}


def _check_against_second_pass(
    store: FeatureStore, encoder: Encoder, written: dict[int | str, Written], device
) -> None:
    """Compare the written states with a second pass of the encoder, on the shortest training rows.

    Raises UserError where a boundary differs by more than its rounding: states of another layer, or random ones.
    """
    for rows in batches(store.sizes("train"))[-1:]:
        batch = store.batch("train", rows).to(device)
        again = _states(encoder, batch, written)
        for n, one in written.items():
            stored = floats(one.payload.take("train", one.part.places(store, "train", rows)), one.payload.dtype)
            recomputed = one.part.values(again, batch)
            if stored.numel() and _differ(stored, recomputed, len(one.part.reads)):
                place = f"at boundary {n}" if isinstance(n, int) else f"in part {n}"
                raise UserError(
                    f"{store.payload_path(n)}: what was written is not what {store.card['encoder']} gives {place} "
                    "when it reads the same texts again: states at random, or of another layer; nothing was kept"
                )


def _differ(stored: torch.Tensor, recomputed: torch.Tensor, boundaries: int) -> bool:
    """Return whether the values [n, ...] of any boundary differ by more than rounding, by its own largest value.

    Of several boundaries the values are [n, boundaries, ...].
    """
    stored, recomputed = (
        values.reshape(len(values), boundaries, -1).transpose(0, 1).flatten(1) for values in (stored, recomputed)
    )
    return bool(((stored - recomputed).abs().amax(1) > ROUNDING * recomputed.abs().amax(1)).any())


def _pass(store: FeatureStore, encoder: Encoder, split: str, written: dict[int | str, Written], device) -> None:
    """Run the encoder once over a split and put what each part holds into its payload."""
    card, sizes = store.card, store.sizes(split)
    log(
        f"encoder pass: {card['encoder']} {card['corpus']} {card['view']} {split}: "
        f"{np.count_nonzero(sizes)} examples, {store.tokens(split)} tokens"
    )
    for rows in progress(batches(sizes), f"{card['encoder']} reads {split}"):
        batch = store.batch(split, rows).to(device)
        states = _states(encoder, batch, written)
        for one in written.values():
            one.payload.put(split, one.part.places(store, split, rows), one.part.values(states, batch))
