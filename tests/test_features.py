"""Features: one pass of the encoder per split serves all, and what is stored is what the encoder computes."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import Digits, Sequence

from thaw.core.digests import canonical, digest
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.encoders.loading import load_tokenizer
from thaw.encoders.transformers import Encoder
from thaw.features.extract import remake
from thaw.features.row_sets import batches
from thaw.features.store import FeatureStore
from thaw.features.tokens import tokenise
from thaw.schema.corpora import ViewConfig
from tiny import BYTE_LEVEL, WORDS, tiny_encoder
from tiny_corpus import run_in_process

ROWS = {"train": 90, "validation": 30, "test": 1}
CPU = torch.device("cpu")


def write_corpus(folder: Path, words: bool = False) -> Path:
    """Write a corpus of random sentences of ours, pairs or lists of words, as prepare does."""
    random = np.random.default_rng(4)

    def sentence() -> list[str]:
        return random.choice(WORDS, random.integers(1, 12)).tolist()

    folder.mkdir(parents=True)
    for split, rows in ROWS.items():
        frame = pd.DataFrame({"row": range(rows)})
        if words:
            frame["words"] = [sentence() for _ in range(rows)]
        else:
            frame["first"] = [" ".join(sentence()) for _ in range(rows)]
            frame["second"] = [" ".join(sentence()) for _ in range(rows)]
        frame.to_parquet(folder / f"{split}.parquet", index=False)
    card = {"corpus": "ours", "digest": "c" * 16, "splits": {split: {"rows": rows} for split, rows in ROWS.items()}}
    card |= {"words": "words"} if words else {"texts": ["first", "second"]}
    card |= {"targets": {}}
    (folder / "card.json").write_text(json.dumps(card))
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    """A small ELECTRA as fetch writes it."""
    home = tmp_path_factory.mktemp("encoder")
    model = tiny_encoder("electra", home / "source")
    entry = {"folder": str(model), "layers": 3, "width": 32, "cased": False, "objective": "o", "pretraining": ["p"]}
    spec = canonical({"version": 1, "encoder": "tiny", "entry": entry})
    run_in_process("fetch", "--spec", spec, "--out", home / "e")
    return home / "e"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A corpus of pairs."""
    return write_corpus(tmp_path_factory.mktemp("data") / "ours")


def run_features(
    encoder: Path, corpus: Path, out: Path, boundaries: list[int], dtype="bf16", precision=None, **view
) -> FeatureStore:
    """Run the step in this process and return its store."""
    spec = {"version": 1, "view": view, "dtype": dtype, "compute": {"threads": 1}}
    spec |= {"precision": precision} if precision else {}
    spec |= {"data": read_json(corpus / "card.json")["digest"], "encoder": read_json(encoder / "card.json")["digest"]}
    folders = ["--data", corpus, "--encoder", encoder, "--out", out]
    run_in_process("features", "--spec", canonical(spec), "--boundaries", *boundaries, *folders)
    store = FeatureStore(out)
    assert store.card["digest"] == digest(spec)
    return store


def test_one_pass_per_split_serves_all_boundaries(encoder, corpus, tmp_path, capsys, monkeypatch):
    """A line of the log per split, one call per batch, each row is read once; one batch is looked at again."""
    calls, whole = [], Encoder.forward

    def counted(self, batch, state=None):
        calls.append(len(batch))
        return whole(self, batch, state)

    monkeypatch.setattr(Encoder, "forward", counted)
    store = run_features(encoder, corpus, tmp_path / "joint", [0, 1, 2, 3])
    lines = [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines() if "encoder pass" in line]
    assert sorted(lines) == [
        f"encoder pass: tiny ours joint {split}: {ROWS[split]} examples, {store.tokens(split)} tokens"
        for split in sorted(ROWS)
    ]
    again = len(batches(store.lengths("train"))[-1])
    assert sum(calls) == sum(ROWS.values()) + again
    assert len(calls) == sum(len(batches(store.lengths(split))) for split in ROWS) + 1
    files = {path.name for path in (tmp_path / "joint").iterdir()}
    made = {f"b{n}{end}" for n in range(4) for end in (".json", ".safetensors")}
    assert files == {"tokens.json", "tokens.parquet", ".lock"} | made


def test_no_boundary_means_no_pass(encoder, corpus, tmp_path, capsys):
    """Full fine-tuning needs token ids only."""
    store = run_features(encoder, corpus, tmp_path / "joint", [])
    assert "encoder pass" not in capsys.readouterr().err
    assert 0 not in store.boundaries() and store.batch("train", [0, 5]).input_ids.shape[0] == 2


def test_stored_states_are_what_the_encoder_computes(encoder, corpus, tmp_path):
    """In fp32 bit for bit with the extraction's batches; in bf16 the same, rounded; 1e-5 with other batches."""
    exact = run_features(encoder, corpus, tmp_path / "exact", [0, 2, 3], "fp32")
    rounded = run_features(encoder, corpus, tmp_path / "rounded", [2])
    model = Encoder.load(encoder)
    torch.set_num_threads(1)
    for split in ROWS:
        for rows in batches(exact.lengths(split)):
            batch = exact.batch(split, rows)
            states = model.boundaries(batch)
            for n in (0, 2, 3):
                stored = exact.states(n, split).gather(rows, batch)
                assert torch.equal(stored[batch.mask], states[n][batch.mask]) and not stored[~batch.mask].any()
            stored = rounded.states(2, split).gather(rows, batch)
            assert torch.equal(stored[batch.mask], states[2][batch.mask].bfloat16().float())
    rows = np.array([7, 3, 80, 41, 0])
    batch = exact.batch("train", rows)
    stored = exact.states(3, "train").gather(rows, batch)[batch.mask]
    torch.testing.assert_close(stored, model.boundaries(batch)[3][batch.mask], atol=1e-5, rtol=0)
    assert rounded.part_card(2)["bytes"] * 1.9 < exact.part_card(2)["bytes"]
    assert load_file(tmp_path / "exact" / "b2.safetensors").keys() == ROWS.keys()


def test_states_in_bf16_are_those_of_autocast(encoder, corpus, tmp_path):
    """Bit for bit with the extraction's batches, also where a payload was freed; near those in fp32, and no others."""
    store = run_features(encoder, corpus, tmp_path / "bf16", [0, 3], "fp32", "bf16")
    assert store.part_card(3)["precision"] == "bf16"
    exact = run_features(encoder, corpus, tmp_path / "fp32", [0, 3], "fp32")
    assert "precision" not in exact.part_card(3)
    model = Encoder.load(encoder)
    for rows in batches(store.lengths("train")):
        batch = store.batch("train", rows)
        with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
            state = model(batch).float()
        stored, near = (one.states(3, "train").gather(rows, batch)[batch.mask] for one in (store, exact))
        assert torch.equal(stored, state[batch.mask])
        assert 0 < (stored - near).abs().max() < 0.05 * near.abs().max()
    payload = store.payload_path(3)
    whole = payload.read_bytes()
    payload.unlink()
    store.require([3], lambda missing, rows: remake(store, encoder, missing, CPU, rows))
    assert payload.read_bytes() == whole


def test_a_payload_that_comes_out_differently_is_refused(encoder, corpus, tmp_path):
    """Made again it must have its card's checksum; else it is not put in place."""
    store = run_features(encoder, corpus, tmp_path / "joint", [1])
    card = tmp_path / "joint" / "b1.json"
    card.write_text(card.read_text().replace(store.part_card(1)["sha256"], "0" * 64))
    store.payload_path(1).unlink()
    with pytest.raises(UserError, match="made again on cpu, is not what its card describes"):
        store.require([1], lambda missing, rows: remake(store, encoder, missing, CPU, rows))
    assert not list((tmp_path / "joint").glob("*b1.safetensors*"))


def test_a_payload_of_another_device_is_made_again_with_a_card_of_its_own(encoder, corpus, tmp_path, capsys):
    """A GPU's bits no CPU can make: the card of what is made here says so; one that names no device is of this one."""
    out = tmp_path / "joint"
    store = run_features(encoder, corpus, out, [1, 2])
    before, cards = store.part_card(1), {n: out / f"b{n}.json" for n in (1, 2)}
    write_json(cards[1], before | {"device": "NVIDIA A100-SXM4-40GB", "sha256": "0" * 64})
    second = {key: value for key, value in store.part_card(2).items() if key != "device"}
    write_json(cards[2], second)
    for n in (1, 2):
        store.payload_path(n).unlink()
    store.require([1, 2], lambda missing, rows: remake(store, encoder, missing, CPU, rows))
    assert store.part_card(1) == before and store.part_card(2) == second
    assert "boundary 1 was made on NVIDIA A100-SXM4-40GB and now on cpu" in capsys.readouterr().err
    store.payload_path(2).unlink()
    write_json(cards[2], second | {"sha256": "0" * 64})
    with pytest.raises(UserError, match="made again on cpu, is not what"):
        store.require([2], lambda missing, rows: remake(store, encoder, missing, CPU, rows))


def test_words_are_placed_on_their_first_pieces(encoder, tmp_path):
    """Each word's first piece is found, -1 where it was cut off; a view's length is kept and cuts are counted."""
    corpus = write_corpus(tmp_path / "data", words=True)
    store = run_features(encoder, corpus, tmp_path / "f", [], max_length=12)
    tokenizer = load_tokenizer(encoder)
    words = pd.read_parquet(corpus / "train.parquet")["words"]
    batch = store.batch("train", range(len(words)))
    cut = 0
    for row, sentence in enumerate(words):
        for place, word in enumerate(sentence):
            position = int(batch.first_pieces[row, place])
            pieces = tokenizer(word, add_special_tokens=False)["input_ids"]
            assert position == -1 or int(batch.input_ids[row, position]) == pieces[0]
        cut += int((batch.first_pieces[row, : len(sentence)] == -1).any() or int(batch.mask[row].sum()) == 12)
        assert (batch.first_pieces[row, len(sentence) :] == -1).all()
    facts = store.card["splits"]["train"]
    assert 0 < facts["truncated"] <= cut and facts["max_length"] == 12 and batch.input_ids.shape[1] == 12


@pytest.mark.parametrize(("family", "steps"), [*((family, False) for family in BYTE_LEVEL), ("modernbert", True)])
def test_words_of_byte_level_tokenizers_stand_after_a_space(family, steps, tmp_path):
    """A word in a list gives the pieces that it has inside a sentence, the first of the list too."""
    tiny_encoder(family, tmp_path, 1)
    if steps:
        file = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        file.pre_tokenizer = Sequence([Digits(), file.pre_tokenizer])
        file.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path, words=True)
    columns, cut = tokenise([[["cat", "sings", "internationalisation"]]], tokenizer, ViewConfig(), words=True)
    plain = load_tokenizer(tmp_path)(" cat sings internationalisation")["input_ids"]
    assert columns["input_ids"] == [plain] and cut == [False] and columns["type_ids"] == [[]]
    assert [plain[place] for place in columns["first_pieces"][0]] == [
        load_tokenizer(tmp_path)(f" {word}", add_special_tokens=False)["input_ids"][0]
        for word in ("cat", "sings", "internationalisation")
    ]


def test_pairs_are_joint_and_cut_from_the_longer(encoder):
    """Type ids tell the two texts apart; truncation takes from the longer one and is counted."""
    tokenizer = load_tokenizer(encoder)
    columns, cut = tokenise(
        [["the old cat sings often", "cat"], ["dog", "dog"]], tokenizer, ViewConfig(max_length=7), False
    )
    words = [tokenizer.convert_ids_to_tokens(ids) for ids in columns["input_ids"]]
    assert words == [["[CLS]", "the", "old", "cat", "[SEP]", "dog", "[SEP]"], ["[CLS]", "cat", "[SEP]", "dog", "[SEP]"]]
    assert columns["type_ids"] == [[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1]] and cut == [True, False]


def test_what_can_not_be_extracted_is_refused(encoder, corpus, tmp_path):
    """A boundary that is none, a sequence longer than the positions, inputs of another plan."""
    with pytest.raises(UserError, match="tiny has boundaries 0 to 3, and no 4"):
        run_features(encoder, corpus, tmp_path / "f", [4])
    with pytest.raises(UserError, match="max_length is 200, but tiny reads at most 128 tokens"):
        run_features(encoder, corpus, tmp_path / "f", [1], max_length=200)
    other = {"version": 1, "view": {}, "dtype": "bf16", "compute": {}, "data": "0" * 16, "encoder": "0" * 16}
    arguments = ["--spec", canonical(other), "--data", corpus, "--encoder", encoder, "--out", tmp_path]
    with pytest.raises(UserError, match="was planned for 0000"):
        run_in_process("features", *arguments)


def test_boundaries_of_another_spec_are_cleared(encoder, corpus, tmp_path):
    """A new view or type makes old boundaries unreadable, so they do not stay on the disk."""
    run_features(encoder, corpus, tmp_path / "f", [1, 2], "fp32")
    store = run_features(encoder, corpus, tmp_path / "f", [1], "bf16")
    assert 1 in store.boundaries() and 2 not in store.boundaries() and not store.payload_path(2).exists()
