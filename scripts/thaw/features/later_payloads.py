"""Payloads that are made later: parts that were never stored or were freed, and rows that no job read so far."""

import time

import torch

from thaw.core.devices import deterministic_is_required
from thaw.core.files import drop_unfinished, write_json
from thaw.core.processes import Processes
from thaw.core.runtime import hardware, log, set_threads
from thaw.encoders.transformers import Encoder
from thaw.features import row_sets
from thaw.features.extract import StatesFormat, extract, write_cards
from thaw.features.row_sets import RowMasks
from thaw.features.store import FeatureStore


def remake(store: FeatureStore, encoder_folder, names: list[int | str], device, wanted: RowMasks | None = None) -> None:
    """Make payloads again that were freed, with the thread count of their cards, and add rows that no job read so far.

    What was freed must come out the same. Another kind of device than the card names gives other last bits, as do
    kernels that are not deterministic. What they write is compared with the encoder as each pass is, up to rounding,
    and gets a new card. The rows of a payload that is there are copied. Args: wanted, rows that each part must hold.

    A process of one thread may be about to fork, which it no longer can once several threads have computed in it
    (`thaw.core.processes`): where the cards name several, a fork computes.
    """
    if device.type == "cpu" and torch.get_num_threads() == 1 < store.card["threads"]:
        try:
            Processes(1, 2).run(lambda _: _remake(store, encoder_folder, names, device, wanted), 1)
        except BaseException:  # the fork may have been killed while it wrote; the store is locked
            drop_unfinished(map(store.payload_path, names))
            raise
        store.forget(names)
    else:
        _remake(store, encoder_folder, names, device, wanted)


def _remake(store: FeatureStore, encoder_folder, names: list[int | str], device, wanted: RowMasks | None) -> None:
    """Do so in this process."""
    encoder, threads, begin = Encoder.load(encoder_folder), torch.get_num_threads(), time.monotonic()
    if new := [n for n in names if not store.card_path(n).is_file()]:
        _make(store, encoder, new, device, wanted)
        names = [n for n in names if n not in new]
    if not names:
        return
    cards, here = {n: store.part_card(n) for n in names}, hardware(device)["device"]
    held = {n: store.held(n) for n in names}
    kept = {n: held[n] for n in names if store.payload_path(n).is_file()}
    missing = [row_sets.union(held[n], wanted or held[n]) for n in names if n not in kept]
    missing += [row_sets.without(wanted or held[n], held[n]) for n in kept]
    what = "adding rows that are read for the first time" if kept else "making freed payloads again"
    log(f"{what}: boundaries {', '.join(map(str, names))} of {store.folder}")
    try:
        if device.type == "cpu":  # on a GPU they change nothing
            set_threads(store.card["threads"])
        expected = {n: card for n, card in cards.items() if n not in kept and _gives_the_same(card, here)}
        card, rows = next(iter(cards.values())), row_sets.union(*missing)
        form = StatesFormat.of(card)
        facts = extract(store, encoder, names, form, device, expected=expected, rows=rows, kept=kept)
    finally:
        set_threads(threads)
    seconds = round(time.monotonic() - begin, 3)
    for n, card in cards.items():
        if facts[n].get("rows") != card.get("rows"):
            passes = [*card.get("passes", [card["seconds"]]), seconds] if "seconds" in card else [seconds]
            more = {"seconds": round(sum(passes), 3), "passes": passes}
            if "device" in card and here not in card["device"]:
                more["device"] = f"{card['device']}, {here}"
        elif n not in expected:
            log(f"boundary {n} was made on {card['device']} and now on {here}: its states may differ in rounding")
            more = {"device": here}
        else:
            continue
        old = {key: value for key, value in card.items() if key != "rows"}
        write_json(store.card_path(n), old | facts[n] | more)


def _make(store: FeatureStore, encoder: Encoder, names: list[int | str], device, rows: RowMasks | None) -> None:
    """Make parts that have no card: as the step `features` does, in the form that the card of the tokens states."""
    if "dtype" not in store.card:
        store.part_card(names[0])  # of a version that did not state it: an error that says what to run
    log(f"storing {', '.join(map(str, names))} of {store.folder}")
    threads, begin, form = torch.get_num_threads(), time.monotonic(), StatesFormat.of(store.card)
    try:
        if device.type == "cpu":
            set_threads(store.card["threads"])
        facts = extract(store, encoder, names, form, device, rows=rows)
    finally:
        set_threads(threads)
    shared = {"seconds": round(time.monotonic() - begin, 3), "device": hardware(device)["device"]}
    shared |= {"deterministic": False} if device.type == "cuda" and not deterministic_is_required() else {}
    write_cards(store, encoder, form, facts, shared)


def _gives_the_same(card: dict, device: str) -> bool:
    """Return whether a device gives the bits that a card describes: of its kind, with kernels that repeat."""
    return card.get("device", device) == device and card.get("deterministic", True)
