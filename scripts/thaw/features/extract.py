"""Feature extraction: one pass of the frozen encoder over a dataset writes all requested parts of its store.

S sequences, T tokens of the longest, N tokens of a split, d width.
"""

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from thaw.core.boundaries import ATTENTION, VECTORS
from thaw.core.devices import check_precision, deterministic_is_required
from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.files import atomic_write, drop_unfinished, write_json
from thaw.core.processes import Processes
from thaw.core.runtime import hardware, log, progress, set_threads
from thaw.encoders.transformers import Encoder
from thaw.features import row_sets
from thaw.features.batch import pieces, tensors_to_host
from thaw.features.parts import AttentionInputs, Part, part_of
from thaw.features.payload import Payload, floats
from thaw.features.row_sets import RowBatch, RowMasks, batches_of
from thaw.features.store import FeatureStore

ROUNDING = 0.01  # of the largest value: bf16 keeps three digits


class StatesFormat(NamedTuple):
    """How states are stored and computed: each "fp32" or "bf16", the latter computed under autocast."""

    dtype: str
    precision: str = "fp32"

    @classmethod
    def of(cls, entry: dict) -> "StatesFormat":
        return cls(entry["dtype"], entry.get("precision", "fp32"))


@dataclass(frozen=True)
class Listener:
    """What else is made of the states of a pass: `take(rows, batch, states)`, with those at the boundaries `reads`."""

    reads: list[int]
    take: Callable


def extract(
    store: FeatureStore,
    encoder: Encoder,
    names: list[int | str],
    form: StatesFormat,
    device,
    *,
    expected: dict[int | str, dict] | None = None,
    rows: RowMasks | None = None,
    kept: dict[int | str, RowMasks] | None = None,
    listener: Listener | None = None,
    processes: Processes | None = None,
) -> dict[int | str, dict]:
    """Write the payloads of some parts, boundaries by number, in one pass per split; returns bytes and sha256 of each.

    The caller holds the store's lock until the cards are written too. The encoder keeps the precision of `form`.
    Memory does not grow with the corpus.
    With `expected`, their cards, no file is kept unless all that have the rows on their card agree with it.
    `device` may be a context that gives one: it ends with the last pass, before the payloads are hashed.
    With `rows` only these are read, and it is returned too which rows a part holds: these, and those of `kept`, by
    part, which are copied from the payload that is there. A listener takes its states even where no part is written.
    On the CPU `processes` share the batches, which are the same; a listener is of this process, and so they do not.
    """
    drop_unfinished(map(store.payload_path, names))
    given = contextlib.nullcontext(device) if isinstance(device, torch.device) else device
    with contextlib.ExitStack() as stack:
        paths = {n: stack.enter_context(atomic_write(store.payload_path(n))) for n in names}
        with given as place:
            check_precision(form.precision, place, "store:")
            encoder.states_precision = form.precision
            encoder = encoder.to(place).eval()
            shared = None if listener else processes
            processes = shared.on(place) if shared else Processes(torch.get_num_threads())
            read, by_split = _batches_to_read(store, encoder, rows, place, processes)
            kept, dtype = kept or {}, form.dtype
            written = {n: Written.open(store, encoder, n, paths[n], dtype, read, kept.get(n)) for n in names}
            one_pass = Pass(store, encoder, place, by_split, written, listener)
            one_pass.run(processes)
            torch.set_num_threads(processes.threads)
            one_pass.check_against_second()
            encoder.cpu()
        for one in written.values():
            one.payload.flush()
        facts = {n: one.facts | {"sha256": file_sha256(paths[n])} for n, one in written.items()}
        for n, card in (expected or {}).items():
            if facts[n].get("rows") == card.get("rows") and facts[n]["sha256"] != card["sha256"]:
                raise UserError(
                    f"{store.payload_path(n)}, made again on {hardware(device)['device']}, is not what its card "
                    "describes; this machine, its number of threads or its libraries differ from those that made it; "
                    f"delete {store.folder} and run again"
                )
    store.forget(names)
    return facts


def write_cards(
    store: FeatureStore, encoder: Encoder, form: StatesFormat, facts: dict[int | str, dict], shared: dict
) -> None:
    """Write the cards of some parts. Args: what `extract` returned for them; what each card has in addition."""
    shared = {key: store.card[key] for key in ("digest", "weights", "tokenizer", "data")} | shared
    shared |= {"dtype": form.dtype, "width": encoder.width}
    shared |= {"precision": form.precision} if form.precision != "fp32" else {}
    for part, own in facts.items():
        which: dict[str, int | str] = {"boundary": part} if isinstance(part, int) else {"part": part}
        which |= {"layers": encoder.layers} if part in VECTORS else {}
        write_json(store.card_path(part), which | shared | own)


def pass_seconds(seconds: float, worked: float, device) -> list[float]:
    """Return the seconds of a pass as its cards have them: by the clock, and as a price counts them.

    Those are of the processor on a CPU. Args: by the clock; of the processor; the device.
    """
    return [round(seconds, 3), round(worked if device.type == "cpu" else seconds, 3)]


def made_on(device, spent: list[float]) -> dict:
    """Return what all cards of a first pass say of it. Args: the device; its seconds, as `pass_seconds` gives them."""
    repeats = device.type != "cuda" or deterministic_is_required()
    facts = {"seconds": spent[0], "passes": [spent], "device": hardware(device)["device"]}
    return facts if repeats else facts | {"deterministic": False}


@dataclass(frozen=True)
class Written:
    """A part of a store that is being written."""

    part: Part
    payload: Payload
    facts: dict  # of its card: bytes, and which rows it holds where some are missing

    @classmethod
    def open(cls, store, encoder, name: int | str, path, dtype: str, read: RowMasks, kept: RowMasks | None):
        """Create the file of a part for rows that will be read, and copy those of the payload that is there."""
        part = part_of(name, encoder.layers)
        shapes = {split: part.shape(store, split, encoder.width) for split in store.splits}
        held = row_sets.union(read, kept) if kept else read
        rows = row_sets.to_card(held)
        payload = Payload.create(path, dtype, shapes, whole=not rows)
        size = path.stat().st_size
        if rows:
            claimed = [
                payload.claim(split, part.places(store, split, piece))
                for split in store.splits
                for piece in pieces(np.flatnonzero(held[split]))
            ]
            size = sum(claimed)
        for split, mask in (kept or {}).items():
            for piece in pieces(np.flatnonzero(mask & ~read[split])):
                payload.copy(store.payload(name), split, part.places(store, split, piece))
        return cls(part, payload, {"bytes": size} | rows)


def _batches_to_read(
    store: FeatureStore, encoder: Encoder, rows: RowMasks | None, device, processes: Processes
) -> tuple[RowMasks, dict[str, list[RowBatch]]]:
    """Return the rows that are read and by split their batches; all rows where some would have other bits than in all.

    Args: the rows that are wanted, None for all.
    """
    full = device.type != "cpu"
    # a batch of so many rows may have any number of windows
    read = row_sets.all_rows(store) if not rows or (full and store.windowed) else row_sets.widened(store, rows, full)
    by_split = {split: batches_of(store, split, read[split], full) for split in store.splits}
    partly = [
        (split, batch) for split, row_batches in by_split.items() if not read[split].all() for batch in row_batches
    ]
    least = min(partly, key=lambda one: one[1].rows.size * one[1].length) if partly else None
    if least and not processes.run(lambda _: _same_bits(store, encoder, least[0], least[1], device), 1)[0]:
        log("some rows alone have other bits here than among all rows: all are read")
        read = row_sets.all_rows(store)
        by_split = {split: batches_of(store, split) for split in store.splits}
    return read, by_split


def _same_bits(store: FeatureStore, encoder: Encoder, split: str, few: RowBatch, device) -> bool:
    """Return whether rows have the same states, bit for bit, as in the batches that they are in among all rows."""

    def states(batch: RowBatch) -> dict[int, torch.Tensor]:
        tokens = store.batch(split, batch.rows, batch.length)
        values = encoder.states(tokens.to(device), [encoder.layers])[encoder.layers].cpu()
        ends = np.cumsum(store.counts(split)[batch.rows])
        places = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        return {row: values[i][tokens.mask[i]] for row, i in zip(batch.rows.tolist(), places, strict=True)}

    whole = next(batch for batch in batches_of(store, split) if few.rows[0] in batch.rows)
    alone, among = states(few), states(whole)
    return all(torch.equal(alone[row], among[row]) for row in alone.keys() & among.keys())


@dataclass(frozen=True)
class Pass:
    """An encoder that reads batches of rows, by split, once: the parts that are written, and who else takes states."""

    store: FeatureStore
    encoder: Encoder
    device: torch.device
    by_split: dict[str, list[RowBatch]]
    written: dict[int | str, Written]
    listener: Listener | None

    def run(self, processes: Processes) -> None:
        """Read all batches and put what each part holds into its payload. Args: what shares the batches."""
        card = self.store.card
        for split, row_batches in self.by_split.items():
            rows = np.concatenate([np.zeros(0, int), *(batch.rows[: batch.wanted] for batch in row_batches)])
            log(
                f"encoder pass: {card['encoder']} {card['corpus']} {card['view']} {split}: "
                f"{len(rows)} examples, {int(self.store.lengths(split)[rows].sum())} tokens"
            )
        batches = [(split, batch) for split, row_batches in self.by_split.items() for batch in row_batches]
        shares = min(processes.count, len(batches))

        def read(share: int) -> None:
            with meanwhile(self.device) as call:
                for split, batch in progress(batches[share::shares], f"{card['encoder']} reads {card['corpus']}"):
                    call(self._read(split, batch))

        processes.run(read, shares)

    def _read(self, split: str, one_batch: RowBatch) -> Callable[[], None]:
        """Run the encoder over a batch; return a function that puts what each part holds of it into its payload.

        What is stored is chosen and rounded on the device, and one copy brings it to the CPU.
        """
        rows = one_batch.rows[: one_batch.wanted]
        batch = self.store.batch(split, one_batch.rows, one_batch.length).to(self.device)
        states = self._states(batch, self.listener.reads if self.listener else [])
        if self.listener:
            self.listener.take(rows, batch, states)
        written = list(self.written.values())
        places = [one.part.places(self.store, split, rows) for one in written]
        pairs = zip(written, places, strict=True)
        rounded = [one.payload.rounded(one.part.values(states, batch)[: len(where)]) for one, where in pairs]
        stored = list(zip(written, places, tensors_to_host(rounded), strict=True))

        def write() -> None:
            for one, where, value in stored:
                one.payload.put(split, where, value)

        return write

    def _states(self, batch, more: list[int]) -> dict[int | str, torch.Tensor]:
        """Return the states of a batch at all boundaries that some parts are made of, and at some more."""
        parts = [one.part for one in self.written.values()]
        recorded = sorted({part.layer for part in parts if isinstance(part, AttentionInputs)})
        watched: Any = self.encoder.recording(recorded) if recorded else contextlib.nullcontext({})
        with watched as taken:
            states = self.encoder.states(batch, sorted({*more, *(n for part in parts for n in part.reads)}))
        return states | {f"{ATTENTION}{n}": inputs for n, inputs in taken.items()}

    def check_against_second(self) -> None:
        """Compare the written states with a second pass of the encoder, on the shortest training rows that were read.

        Raises UserError where a boundary differs by more than its rounding: states of another layer, or random ones.
        """
        split = next((split for split in ("train", *self.by_split) if self.by_split.get(split)), "train")
        for one_batch in self.by_split.get(split, [])[-1:] if self.written else ():
            batch = self.store.batch(split, one_batch.rows, one_batch.length).to(self.device)
            again = self._states(batch, [])
            for n, one in self.written.items():
                places = one.part.places(self.store, split, one_batch.rows[: one_batch.wanted])
                stored = floats(one.payload.take(split, places), one.payload.dtype)
                recomputed = one.part.values(again, batch)[: len(places)].cpu()
                if stored.numel() and _differ(stored, recomputed, len(one.part.reads)):
                    place = f"at boundary {n}" if isinstance(n, int) else f"in part {n}"
                    raise UserError(
                        f"{self.store.payload_path(n)}: what was written is not what {self.store.card['encoder']} "
                        f"gives {place} when it reads the same texts again: states at random, or of another layer; "
                        "nothing was kept"
                    )


@contextlib.contextmanager
def meanwhile(device):
    """Give a function that calls what it is given: on the CPU at once, else in a thread while the GPU goes on.

    Of the calls in the thread one at most is not over; what it raises is raised here, with the next one or at the end.
    """
    if device.type == "cpu":
        yield lambda write: write()
        return
    with ThreadPoolExecutor(1) as thread:
        last = thread.submit(lambda: None)

        def call(write: Callable[[], None]) -> None:
            nonlocal last
            last.result()
            last = thread.submit(write)

        yield call
        last.result()


def _differ(stored: torch.Tensor, recomputed: torch.Tensor, boundaries: int) -> bool:
    """Return whether the values [n, ...] of any boundary differ by more than rounding, by its own largest value.

    Of several boundaries the values are [n, boundaries, ...].
    """
    stored, recomputed = (
        values.reshape(len(values), boundaries, -1).transpose(0, 1).flatten(1) for values in (stored, recomputed)
    )
    return bool(((stored - recomputed).abs().amax(1) > ROUNDING * recomputed.abs().amax(1)).any())


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
    encoder = Encoder.load(encoder_folder)
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
    # a device of the card's kind, with kernels that repeat, gives the bits that the card describes
    alike = {n for n, c in cards.items() if c.get("device", here) == here and c.get("deterministic", True)}
    expected = {n: card for n, card in cards.items() if n not in kept and n in alike}
    form = StatesFormat.of(next(iter(cards.values())))
    which = {"expected": expected, "rows": row_sets.union(*missing), "kept": kept}
    facts, spent = _extracted(store, encoder, names, form, device, **which)
    for n, card in cards.items():
        if facts[n].get("rows") != card.get("rows"):
            passes = [*card.get("passes", [card["seconds"]] if "seconds" in card else []), spent]
            clock = [one[0] if isinstance(one, list) else one for one in passes]  # older cards have no others
            more = {"seconds": round(sum(clock), 3), "passes": passes}
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
    form = StatesFormat.of(store.card)
    facts, spent = _extracted(store, encoder, names, form, device, rows=rows)
    write_cards(store, encoder, form, facts, made_on(device, spent))


def _extracted(store: FeatureStore, encoder: Encoder, names, form: StatesFormat, device, **which) -> tuple[dict, list]:
    """Extract with the thread count of the store's card; return what `extract` does, and the seconds of the pass."""
    threads, begin = torch.get_num_threads(), (time.monotonic(), time.process_time())
    try:
        if device.type == "cpu":  # on a GPU they change nothing
            set_threads(store.card["threads"])
        facts = extract(store, encoder, names, form, device, **which)
    finally:
        set_threads(threads)
    return facts, pass_seconds(time.monotonic() - begin[0], time.process_time() - begin[1], device)
