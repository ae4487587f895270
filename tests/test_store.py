"""The store: whatever is put in comes out again, in both types, and a damaged payload is found."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from thaw.core.digests import file_sha256
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.features.payload import Payload
from thaw.features.row_sets import TOKENS_PER_BATCH, batches
from thaw.features.sequences import read_spellings, write_spellings
from thaw.features.store import FeatureStore
from thaw.features.tokens import schema

SHARED = {"digest": "d", "weights": "w", "tokenizer": "t", "data": "c"}
ragged = st.dictionaries(
    st.sampled_from(["train", "validation", "test"]), st.lists(st.integers(1, 9), max_size=12), min_size=1
)
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def write_store(folder: Path, splits: dict[str, list[int]], width: int, dtype: str, words: bool = True):
    """Write a store of random rows of the given lengths; returns its ids and its states at boundary 2."""
    random, splits = np.random.default_rng(7), dict(sorted(splits.items()))
    ids = {name: [random.integers(0, 99, n).tolist() for n in lengths] for name, lengths in splits.items()}
    rows = [(name, row, values) for name, lists in ids.items() for row, values in enumerate(lists)]
    columns = {
        "split": [row[0] for row in rows],
        "row": [row[1] for row in rows],
        "input_ids": [row[2] for row in rows],
    }
    columns["type_ids"] = [[0] * len(row[2]) for row in rows]
    columns["first_pieces"] = [list(range(len(row[2]) // 2)) for row in rows]
    columns["texts"] = [[1] * len(row[2]) for row in rows]
    parquet.write_table(pyarrow.table(columns, schema=schema()), folder / "tokens.parquet")
    facts = {name: {"examples": len(rows)} for name, rows in ids.items()}
    facts = {"splits": facts, "sha256": file_sha256(folder / "tokens.parquet")}
    write_json(folder / "tokens.json", SHARED | facts | {"pad": 99, "types": True, "words": words})
    states = {name: torch.randn(sum(lengths), width) for name, lengths in splits.items()}
    path = folder / "b2.safetensors"
    payload = Payload.create(path, dtype, {name: tuple(values.shape) for name, values in states.items()})
    for name, values in states.items():
        payload.put(name, np.arange(len(values)), values)
    payload.flush()
    write_card(folder, dtype, width)
    return ids, states


def write_card(folder: Path, dtype: str, width: int, **changes):
    """Write the card of boundary 2."""
    card = SHARED | {"boundary": 2, "dtype": dtype, "width": width, "sha256": file_sha256(folder / "b2.safetensors")}
    write_json(folder / "b2.json", card | changes)


@few
@given(splits=ragged, width=st.sampled_from([1, 3, 32]), dtype=st.sampled_from(["bf16", "fp32"]), data=st.data())
def test_round_trip(splits, width, dtype, data):
    """Ids, masks and states of any rows, in any order, are what was written; padding is pad, False and 0."""
    with tempfile.TemporaryDirectory() as name:
        ids, states = write_store(Path(name), splits, width, dtype)
        store = FeatureStore(name)
        assert store.splits == sorted(splits) and 2 in store.boundaries() and 3 not in store.boundaries()
        store.require([2])
        library = load_file(Path(name) / "b2.safetensors")
        for split, lengths in splits.items():
            due = states[split].bfloat16() if dtype == "bf16" else states[split]
            assert torch.equal(library[split], due)
            assert store.lengths(split).tolist() == lengths and store.tokens(split) == sum(lengths)
            if lengths:
                rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=5))
                check_rows(store, split, rows, ids[split], due.float())


def check_rows(store: FeatureStore, split: str, rows: list[int], ids: list, states: torch.Tensor):
    """Compare a batch of the store with the lists it was made from."""
    batch = store.batch(split, rows)
    gathered = store.states(2, split).gather(rows, batch)
    starts = np.concatenate([[0], np.cumsum([len(values) for values in ids])])
    assert len(batch) == len(rows) and gathered.dtype == torch.float32
    assert batch.input_ids.shape == batch.mask.shape == gathered.shape[:2]
    assert batch.mask.shape[1] == max(len(ids[row]) for row in rows)
    for place, row in enumerate(rows):
        n = len(ids[row])
        assert batch.input_ids[place, :n].tolist() == ids[row] and batch.mask[place].sum() == n
        assert (batch.input_ids[place, n:] == 99).all() and not gathered[place, n:].any()
        assert torch.equal(gathered[place, :n], states[starts[row] : starts[row] + n])
        pieces = batch.first_pieces[place]
        assert pieces[pieces >= 0].tolist() == list(range(n // 2))


@few
@given(cut=st.integers(1, 500), flip=st.integers(0, 10**6), grow=st.booleans())
def test_damage_is_found(cut, flip, grow):
    """A payload that is short, long or has one flipped bit is refused with its name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_store(folder, {"train": [3, 5, 2]}, 16, "bf16")
        path = folder / "b2.safetensors"
        whole = path.read_bytes()
        path.write_bytes(whole + b"\0" * cut if grow else whole[: max(0, len(whole) - cut)])
        with pytest.raises(UserError, match="b2.safetensors does not hold the tensors on its card"):
            FeatureStore(folder).states(2, "train")
        damaged = bytearray(whole)
        damaged[flip // 8 % len(whole)] ^= 1 << flip % 8
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="b2.safetensors is not the file that its card describes"):
            FeatureStore(folder).require([2])


def test_another_boundary_type_or_header_is_found(tmp_path):
    """The header must be the one that card and lengths ask for."""
    write_store(tmp_path, {"train": [3, 5]}, 16, "bf16")
    for dtype, width in (("bf16", 8), ("fp32", 16), ("bf16", 32)):
        write_card(tmp_path, dtype, width)
        with pytest.raises(UserError, match="does not hold the tensors on its card"):
            FeatureStore(tmp_path).states(2, "train")
    Payload.create(tmp_path / "b2.safetensors", "bf16", {"other": (8, 16), "t": (0, 16)})
    write_card(tmp_path, "bf16", 16)
    with pytest.raises(UserError, match="does not hold the tensors"):
        FeatureStore(tmp_path).states(2, "train")


@pytest.mark.parametrize("key", list(SHARED))
def test_a_card_of_another_making_is_refused(tmp_path, key):
    """Weights, tokenizer, data and spec on a boundary's card must be those of the tokens."""
    write_store(tmp_path, {"train": [3]}, 4, "fp32")
    write_card(tmp_path, "fp32", 4, **{key: "other"})
    with pytest.raises(UserError, match=rf"b2\.json: made for another {key} \(other\) than tokens\.json"):
        FeatureStore(tmp_path).states(2, "train")


def test_missing_files_are_named(tmp_path):
    """No store, no such split, no card, a card without payload: each says what is missing."""
    with pytest.raises(UserError, match=r"tokens\.json is missing"):
        FeatureStore(tmp_path)
    write_store(tmp_path, {"train": [3]}, 4, "fp32")
    store = FeatureStore(tmp_path)
    with pytest.raises(UserError, match="has no split test; it has train"):
        store.lengths("test")
    with pytest.raises(UserError, match=r"b5\.json is missing"):
        store.states(5, "train")
    (tmp_path / "b2.safetensors").unlink()
    assert 2 not in store.boundaries()
    for ask in (lambda: store.states(2, "train"), lambda: store.require([2])):
        with pytest.raises(UserError, match="b2.safetensors is missing; run the workflow again with -R features"):
            ask()
    write_json(
        tmp_path / "tokens.json",
        json.loads((tmp_path / "tokens.json").read_text()) | {"splits": {"train": {"examples": 2}}},
    )
    with pytest.raises(UserError, match="does not hold the 2 rows of train"):
        FeatureStore(tmp_path).lengths("train")


@given(lengths=st.lists(st.integers(1, 300), max_size=200))
def test_extraction_batches_hold_each_row_once(lengths):
    """Each row in one batch, none over the token budget unless alone, padding only within a batch."""
    found = batches(np.array(lengths, dtype=np.int64))
    assert sorted(int(row) for rows in found for row in rows) == list(range(len(lengths)))
    for rows in found:
        longest = max(lengths[row] for row in rows)
        assert len(rows) == 1 or len(rows) * longest <= TOKENS_PER_BATCH


def write_pairs(folder: Path, sha256: str | None = None) -> FeatureStore:
    """Write the tokens of three pairs that are read separately, by hand, and return their store."""
    ids, seconds = {"test": [[5, 6, 7]], "train": [[1, 2, 3, 4], [8, 1]]}, {"test": [1], "train": [3, 1]}
    rows = [(split, row, values) for split, lists in ids.items() for row, values in enumerate(lists)]
    columns = {"split": [row[0] for row in rows], "row": [row[1] for row in rows]}
    columns |= {"second": sum(seconds.values(), []), "input_ids": [row[2] for row in rows]}
    columns |= {"type_ids": [[]] * 3, "first_pieces": [[]] * 3, "texts": [[0, 2, 0], [1, 0, 1, 2], [1, 2]]}
    parquet.write_table(pyarrow.table(columns, schema=schema(True)), folder / "tokens.parquet", row_group_size=1)
    facts = {"splits": {split: {"examples": len(lists)} for split, lists in ids.items()}, "pad": 9, "apart": True}
    facts |= {"types": False, "words": False, "sha256": sha256 or file_sha256(folder / "tokens.parquet")}
    write_json(folder / "tokens.json", SHARED | facts)
    return FeatureStore(folder)


def test_pairs_that_are_read_apart_by_hand(tmp_path):
    """Two sequences a row: lengths, places in a payload, what padding costs, and the batch that an encoder reads."""
    store = write_pairs(tmp_path)
    assert (
        store.separate_encoding and store.splits == ["test", "train"] and store.vocabulary().tolist() == [*range(1, 10)]
    )
    assert store.lengths("train").tolist() == [4, 2] and store.tokens("train") == 6 and store.tokens("test") == 3
    assert store.sequences("train", [1, 0]).tolist() == [1, 1, 3, 1] and store.sizes("train").tolist() == [6, 2]
    assert store.sizes("test").tolist() == [4] and store.places("train", [1, 0]).tolist() == [4, 5, 0, 1, 2, 3]
    assert store.in_texts("train", [0, 1]).tolist() == [0, 2, 3, 4, 5] and store.in_texts("test", [0]).tolist() == [1]
    batch = store.batch("train", [1, 0])
    assert batch.input_ids.tolist() == [[8, 9, 9], [1, 9, 9], [1, 2, 3], [4, 9, 9]]
    assert batch.mask.tolist() == [[True, False, False]] * 2 + [[True] * 3, [True, False, False]]
    assert batch.texts.tolist() == [[1, 0, 0], [2, 0, 0], [1, 0, 1], [2, 0, 0]] and batch.texts.dtype == torch.int8
    assert batch.rows.tolist() == [1, 0] and batch.type_ids is None and batch.first_pieces.shape == (2, 0)


def test_texts_that_are_read_together_are_one_sequence_a_row(tmp_path):
    write_store(tmp_path, {"train": [3, 5], "test": []}, 4, "fp32", words=False)
    store = FeatureStore(tmp_path)
    assert store.states(2, "test").flat.dtype == store.states(2, "train").flat.dtype == np.float32
    assert (
        not store.separate_encoding
        and store.sizes("train").tolist() == [3, 5]
        and store.lengths("train").dtype == np.int64
    )
    assert store.batch("train", [1]).type_ids.tolist() == [[0] * 5] and store.batch(
        "train", [1]
    ).first_pieces.shape == (1, 0)
    assert store.vocabulary()[-1] == 99 and (np.diff(store.vocabulary()) > 0).all()
    with pytest.raises(ValueError, match=r"a batch of shape \(1, 5\) for rows of shape \(1, 3\)"):
        store.states(2, "train").gather([0], store.batch("train", [1]))
    data = int.from_bytes((tmp_path / "b2.safetensors").read_bytes()[:8], "little")
    assert data % 8 == 0, "as the format asks for"


def test_an_excerpt_has_only_its_rows(tmp_path):
    write_store(tmp_path, {"train": [3, 0, 2]}, 4, "fp32")
    assert FeatureStore(tmp_path).batch("train", [2, 0]).mask.sum() == 5
    with pytest.raises(UserError, match=rf"^{tmp_path} is an excerpt, and does not hold all rows of train that are"):
        FeatureStore(tmp_path).batch("train", [0, 1])


def test_tokens_that_changed_take_their_card_along(tmp_path):
    """So that a rerun makes both again."""
    store = write_pairs(tmp_path, sha256="0" * 64)
    with pytest.raises(UserError, match=r"tokens\.parquet is missing or not the file that its card describes \(sha256"):
        store.lengths("train")
    assert not (tmp_path / "tokens.json").exists()


def test_only_what_is_missing_is_asked_for_again(tmp_path):
    write_store(tmp_path, {"train": [3]}, 4, "fp32")
    store, asked = FeatureStore(tmp_path), []
    store.require([2], lambda missing, rows: asked.extend(missing))
    assert asked == []
    whole = store.payload_path(2).read_bytes()
    store.payload_path(2).unlink()
    store.require([2], lambda missing, rows: (asked.extend(missing), store.payload_path(2).write_bytes(whole)))
    assert asked == [2] and 2 in store.boundaries()
    write_card(tmp_path, "fp32", 4, boundary=3)
    with pytest.raises(UserError, match=r"b2\.json is the card of boundary 3; delete"):
        store.require([2])
    write_card(tmp_path, "fp32", 4)
    store.payload_path(2).write_bytes(whole[:-1] + b"\7")
    with pytest.raises(UserError, match="it was deleted, and the next run of the workflow makes it again"):
        store.require([2])
    assert not store.payload_path(2).exists()


def test_spellings_are_read_as_they_were_written(tmp_path):
    table = np.array([[1, 2], [3, 4]], np.int32)
    write_spellings(tmp_path, table)
    assert read_spellings(tmp_path).tolist() == table.tolist() and read_spellings(tmp_path).dtype == torch.int64
    (tmp_path / "spellings.safetensors").write_bytes(b"no")
    with pytest.raises(UserError, match=rf"spellings\.safetensors is damaged .*delete {tmp_path}/tokens\.json and run"):
        read_spellings(tmp_path)


def test_pages_that_are_given_back_lose_nothing(tmp_path, monkeypatch):
    """Neither while a store is written nor while it is read."""
    monkeypatch.setattr("thaw.features.payload.MAPPED", 10)
    _, states = write_store(tmp_path, {"test": [2], "train": [3, 5]}, 4, "fp32")
    store = FeatureStore(tmp_path)
    for _ in range(2):
        for split in ("test", "train"):
            assert torch.equal(store.states(2, split).at(np.arange(len(states[split]))), states[split])
