"""Feature extraction: one pass of the frozen encoder over a dataset writes all requested boundaries.

S sequences, T tokens of the longest, N tokens of a split, d width.
"""

import contextlib

import numpy as np
import torch

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.files import atomic_write, write_json
from thaw.core.runtime import hardware, log, progress, set_threads
from thaw.encoders.transformers import Encoder
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
    boundaries: list[int],
    dtype: str,
    device,
    expected: dict[int, str] | None = None,
) -> dict[int, dict]:
    """Write the payloads of some boundaries in one pass per split; returns bytes and sha256 of each.

    States are computed in fp32 and stored as `dtype`, bf16 or fp32. Memory does not grow with the corpus. With
    `expected`, the sha256 of the payloads, no file is kept unless all of them agree. `device` may be a
    context that gives one: it ends with the last pass, before the payloads are hashed.
    """
    given = contextlib.nullcontext(device) if isinstance(device, torch.device) else device
    with contextlib.ExitStack() as stack:
        paths = {n: stack.enter_context(atomic_write(store.payload_path(n))) for n in boundaries}
        shapes = {split: (store.tokens(split), encoder.width) for split in store.splits}
        payloads = {n: Payload.create(path, dtype, shapes) for n, path in paths.items()}
        with given as place:
            encoder = encoder.to(place).eval()
            for split in store.splits:
                _pass(store, encoder, split, payloads, place)
            _look_again(store, encoder, payloads, place)
            encoder.cpu()
        for payload in payloads.values():
            payload.flush()
        facts = {n: {"bytes": path.stat().st_size, "sha256": file_sha256(path)} for n, path in paths.items()}
        for n, checksum in (expected or {}).items():
            if facts[n]["sha256"] != checksum:
                raise UserError(
                    f"{store.payload_path(n)}, made again on {hardware(device)['device']}, is not what its card "
                    "describes: this machine, its number of threads or its libraries differ from those that made it; "
                    f"delete {store.folder} and run again"
                )
        return facts


def remake(store: FeatureStore, encoder_folder, boundaries: list[int], device) -> None:
    """Make payloads again that were freed, with the thread count of their cards; they must come out the same.

    Another kind of device than the card names gives other last bits, as do kernels that are not deterministic. What
    they write is compared with the encoder as each pass is, up to rounding, and gets a new card.
    """
    encoder, threads = Encoder.load(encoder_folder), torch.get_num_threads()
    cards, here = {n: store.boundary_card(n) for n in boundaries}, hardware(device)["device"]
    log(f"making freed payloads again: boundaries {', '.join(map(str, boundaries))} of {store.folder}")
    try:
        set_threads(store.card["threads"])
        expected = {n: card["sha256"] for n, card in cards.items() if _gives_the_same(card, here)}
        facts = extract(store, encoder, boundaries, next(iter(cards.values()))["dtype"], device, expected)
    finally:
        set_threads(threads)
    for n in facts.keys() - expected.keys():
        log(f"boundary {n} was made on {cards[n]['device']} and now on {here}: its states may differ in rounding")
        write_json(store.card_path(n), cards[n] | facts[n] | {"device": here})


def _gives_the_same(card: dict, device: str) -> bool:
    """Return whether a device gives the bits that a card describes: of its kind, with kernels that repeat."""
    return card.get("device", device) == device and card.get("deterministic", True)


def _look_again(store: FeatureStore, encoder: Encoder, payloads: dict[int, Payload], device) -> None:
    """Compare the written states with a second pass of the encoder, on the shortest training rows.

    Raises UserError where a boundary differs by more than its rounding: states of another layer, or random ones.
    """
    for rows in batches(store.sizes("train"))[-1:]:
        batch, places = store.batch("train", rows), store.places("train", rows)
        again = encoder.states(batch.to(device), list(payloads))
        for n, payload in payloads.items():
            stored, recomputed = floats(payload.take("train", places), payload.dtype), again[n].cpu()[batch.mask]
            if (stored - recomputed).abs().max() > ROUNDING * recomputed.abs().max():
                raise UserError(
                    f"{store.payload_path(n)}: what was written is not what {store.card['encoder']} gives at boundary "
                    f"{n} when it reads the same texts again: states at random, or of another layer; nothing was kept"
                )


def _pass(store: FeatureStore, encoder: Encoder, split: str, payloads: dict[int, Payload], device) -> None:
    """Run the encoder once over a split and put each boundary's states into its payload."""
    card, sizes = store.card, store.sizes(split)
    log(
        f"encoder pass: {card['encoder']} {card['corpus']} {card['view']} {split}: "
        f"{np.count_nonzero(sizes)} examples, {store.tokens(split)} tokens"
    )
    for rows in progress(batches(sizes), f"{card['encoder']} reads {split}"):
        batch = store.batch(split, rows)
        places = store.places(split, rows)
        states = encoder.states(batch.to(device), list(payloads))
        for n, payload in payloads.items():
            payload.put(split, places, states[n].cpu()[batch.mask])
