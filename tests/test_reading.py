"""Reading results in a notebook: the examples of docs/howto/notebook.md, and what the reader says of gaps."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import HOME
from thaw.api import results, stored_features
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.encoders.transformers import Encoder
from tiny_corpus import Bench, run_in_process, tiny_corpus

KIND, CORPUS = "pair_classification", "paraphrase"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Results of a small encoder under the names of the examples: a run, a baseline, features in two views."""
    home = tmp_path_factory.mktemp("reading")
    corpus = tiny_corpus(home / "source", KIND)
    benches = {view: Bench(home / view, "bert", corpus, KIND, layers=6, pairs=view) for view in ("joint", "separate")}
    found = home / "results"
    (found / "data").mkdir(parents=True)
    (found / "data" / CORPUS).symlink_to(corpus.folder)
    for view, bench in benches.items():
        shutil.copytree(bench.features, found / "features/minilm" / CORPUS / view)
        spec = bench.spec({"train": ["head", {"top": 2}], "epochs": 1})
        bench.step("train", spec, found / f"runs/p/all/minilm/linear/top_k/{view}/seed1")
    spec = {key: spec[key] for key in ("task", "subset", "data")} | {"version": 1, "baseline": "majority"}
    baseline = found / "baselines/p/all/majority"
    run_in_process("baseline", "--spec", canonical(spec), "--data", corpus.folder, "--out", baseline)
    for view in benches:  # of seven boundaries two are left
        for n in (0, 1, 2, 3, 5):
            (found / "features/minilm" / CORPUS / view / f"b{n}.safetensors").unlink()
    return found


def test_the_examples_of_the_documents_run_as_they_stand(folder, monkeypatch, capsys):
    text = (HOME / "docs/howto/notebook.md").read_text(encoding="utf-8")
    monkeypatch.chdir(folder.parent)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/howto/notebook.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "[4, 6]" in printed and "top_k" in printed
    assert names["vectors"].shape == (8, 32) and list(names["labels"]) == list(names["states"].frame["label"])


def test_the_table_says_of_each_score_where_it_belongs(folder):
    table = results.table(folder)
    assert list(table.columns) == results.COLUMNS
    run = table[(table.variant == "separate") & (table.split == "test") & table.main].iloc[0]
    metrics = json.loads(Path(run.path, "metrics.json").read_text())
    assert run.value == metrics["scores"]["test"]["accuracy"] and run.digest == metrics["digest"]
    assert (run.kind, run.pairs, run.role, run.thawed, run.embeddings, run.seed, run.n) == (
        "run", "separate", "test", 2, False, 1, 8,
    )  # fmt: skip
    baseline = table[(table.kind == "baseline") & (table.split == "train")].iloc[0]
    assert (baseline.strategy, baseline.encoder, baseline.role) == ("majority", "", "train")
    assert table.value.dtype == float and table.seed.isna().sum() == (table.kind == "baseline").sum()


def test_an_undefined_score_is_nan_and_a_broken_record_is_named(folder, tmp_path):
    record = json.loads((folder / "baselines/p/all/majority/metrics.json").read_text())
    record["scores"]["test"]["accuracy"] = None
    write_json(tmp_path / "baselines/p/all/majority/metrics.json", record)
    table = results.table(tmp_path)
    assert table.set_index("split").value.isna().to_dict()["test"]
    write_json(tmp_path / "baselines/p/all/broken/metrics.json", {})
    with pytest.raises(UserError, match="broken/metrics.json: 'spec' is missing"):
        results.table(tmp_path)


def test_a_folder_without_results_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="holds no results; run the workflow"):
        results.table(tmp_path)


def test_states_are_those_that_the_encoder_computes(folder):
    joint = stored_features.open("minilm", CORPUS, results=folder)
    encoder = Encoder.load(folder.parent / "joint/encoder")
    states = joint.layer(6)["test"]
    batch = joint.store.batch("test", [5])
    with torch.no_grad():
        expected = encoder(batch)[0].numpy()
    np.testing.assert_allclose(states[5], expected, atol=1e-5)
    assert len(states) == len(states.frame) == 8 and states[-1].shape[0] == states.lengths[-1]
    start, end = states.offsets[5:7]
    assert (states.flat[start:end] == states[5]).all()


def test_pairs_that_are_read_apart_are_two_arrays(folder):
    states = stored_features.open("minilm", CORPUS, "separate", folder).layer(4, split="train")
    first, second = states[3]
    assert (len(first), len(second)) == tuple(states.lengths[6:8]) and len(states) == 24
    assert len(states.offsets) == 49 and states.offsets[-1] == len(states.flat)
    with pytest.raises(UserError, match=r"separate has texts, not words; take states\[3\]"):
        states.words(3)


def test_words_have_the_state_of_their_first_piece(tmp_path):
    corpus = tiny_corpus(tmp_path / "source", "spans")
    bench = Bench(tmp_path, "bert", corpus, "spans", max_length=12)
    shutil.copytree(bench.features, tmp_path / "results/features/tiny/mine/joint")
    shutil.copytree(corpus.folder, tmp_path / "results/data/mine")
    states = stored_features.open("tiny", "mine", results=tmp_path / "results").layer(3, split="test")
    longest = int(states.frame["words"].map(len).argmax())
    words, pieces = states.words(longest), bench.store.batch("test", [longest]).first_pieces[0].tolist()
    assert len(words) == len(states.frame["words"][longest]) == len(pieces) and pieces[-1] == -1
    assert np.isnan(words[-1]).all() and (words[1] == states[longest][pieces[1]]).all()


@pytest.mark.parametrize("view, pooling", [("joint", "mean"), ("separate", "max")])
def test_pooled_states_are_one_vector_of_each_text_and_layer(tmp_path, view, pooling):
    corpus = tiny_corpus(tmp_path / "source", KIND)
    bench = Bench(tmp_path, "bert", corpus, KIND, pairs=view)
    bench.extract("pooled")
    shutil.copytree(bench.features, tmp_path / f"results/features/tiny/mine/{view}")
    shutil.copytree(corpus.folder, tmp_path / "results/data/mine")
    features = stored_features.open("tiny", "mine", view, tmp_path / "results")
    vectors, last = features.pooled("test", pooling), features.layer(3, "test")
    expected = [getattr(np, pooling)(text, 0) for row in last for text in (row if view == "separate" else [row])]
    shape = (8, 2, 4, 32) if view == "separate" else (8, 4, 32)
    assert vectors.shape == shape and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[..., 3, :].reshape(-1, 32), expected, atol=1e-5)
    with pytest.raises(UserError, match="'median' is no pooling that is stored; there are mean, max, first"):
        features.pooled("test", "median")
    (features.folder / "pooled.safetensors").unlink()
    with pytest.raises(UserError, match="has no pooled states: they are stored when a run reads several layers"):
        features.pooled("test")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("bert", CORPUS), r"'bert' is no encoder with stored features; in .*features there is minilm"),
        (("minilm", "sick"), "'sick' is no corpus that minilm has read; in .*minilm there is paraphrase"),
        (("minilm", CORPUS, "long"), "'long' is no view of paraphrase; .* there is joint, separate"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(folder, arguments, message):
    with pytest.raises(UserError, match=message):
        stored_features.open(*arguments, results=folder)


def test_a_boundary_that_is_not_stored_is_named_with_those_that_are(folder):
    features = stored_features.open("minilm", CORPUS, results=folder)
    with pytest.raises(
        UserError, match=r"boundary 5 is not stored in .*joint; stored: 4, 6\. A boundary is stored when"
    ):
        features.layer(5)
    with pytest.raises(UserError, match="no split 'tset'; there are train, test, validation"):
        features.layer(6, split="tset")


def test_features_of_another_corpus_are_refused(folder, tmp_path):
    shutil.copytree(folder / "features", tmp_path / "features")
    shutil.copytree(folder / "data" / CORPUS, tmp_path / "data" / CORPUS)
    card = json.loads((tmp_path / "data" / CORPUS / "card.json").read_text())
    write_json(tmp_path / "data" / CORPUS / "card.json", card | {"digest": "0" * 16})
    with pytest.raises(UserError, match="was made from another paraphrase"):
        stored_features.open("minilm", CORPUS, results=tmp_path)
