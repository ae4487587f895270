"""Probes of an encoder that runs have adapted, on a small one: what they read, on which rows, and bad input."""

import json
import shutil

import numpy as np
import pytest
import torch

from thaw import boundaries
from thaw.data.corpus import rows_outside, subset_rows
from thaw.encoders.transformers import Encoder
from thaw.features.store import Store
from thaw.records import UserError, digest, read_json
from thaw.settings import Subset
from thaw.training.adapted import Adapted
from tiny_corpus import Bench, rows, tiny_corpus

SUBSET = {"rows": 10}


class Adaptation:
    """A bench with runs of two seeds on ten of its rows, and the states that their encoders give."""

    def __init__(self, folder):
        self.folder = folder
        corpus = tiny_corpus(folder / "data", "classification", train=rows("classification", 26, 1))
        self.bench = Bench(folder, "bert", corpus, "classification")
        self.runs, self.cards = [], []
        for seed in (1, 2):
            spec = self.bench.spec({"train": ["head", {"top": 2}]}, subset=SUBSET, keep=True, seed=seed)
            self.runs.append(self.bench.step("train", spec, folder / f"seed{seed}") / "metrics.json")
            self.cards.append(self.read(seed))

    def read(self, seed: int, name="read", **changes):
        """Run the step features_adapted for one run; return its card."""
        run = self.runs[seed - 1]
        spec = {"version": 1, "task": self.bench.spec()["task"], "subset": SUBSET, "rows": "outside"}
        spec |= {"layers": 3, "dtype": "fp32", "compute": {"threads": 1}, **self.bench.upstream}
        spec |= {"run": read_json(run)["digest"]} | changes
        return self.bench.step("features_adapted", spec, self.folder / f"{name}{seed}", "--run", run) / "card.json"

    def probe(self, out, kind="linear", **changes):
        """Run the step probe on both runs; return metrics.json."""
        spec = {key: value for key, value in self.bench.spec().items() if key not in ("head", "after", "keep", "seed")}
        spec |= {"of": {"probe": kind}, "subset": SUBSET, "probe": {"kind": kind}, "read": [0, 1, 2, 3]}
        spec |= {"seeds": [1, 2], "adapted": {str(n + 1): read_json(c)["digest"] for n, c in enumerate(self.cards)}}
        fitted = {"phases": [], "rows": "outside"}
        spec |= fitted if kind == "linear" else {"phases": [boundaries.sources([0, 1, 2, 3], 3, [n]) for n in range(4)]}
        spec |= changes
        return read_json(
            self.bench.step("probe", spec, out, "--adapted", *self.cards, "--runs", *self.runs) / "metrics.json"
        )


@pytest.fixture(scope="module")
def adaptation(tmp_path_factory) -> Adaptation:
    torch.set_num_threads(1)
    return Adaptation(tmp_path_factory.mktemp("adapted"))


def test_the_states_are_those_of_the_trained_encoder_on_the_rows_that_are_read(adaptation):
    bench, run = adaptation.bench, adaptation.runs[0]
    store = Store(adaptation.cards[0].parent)
    encoder = Encoder.load(bench.encoder)
    task = bench.spec()["task"]
    trained = Adapted.of(bench.encoder, run, read_json(run)["digest"])
    assert {name.split(".")[2] for name in trained.tensors} == {"1", "2"}, "the two layers that the run trained"
    encoder.put(trained.tensors)
    for split, chosen in {"train": rows_outside(bench.corpus, task, Subset(**SUBSET)), "test": np.arange(8)}.items():
        batch = store.batch(split, chosen[:3])
        for n, state in enumerate(encoder.boundaries(batch)):
            held = store.states(n, split).gather(chosen[:3], batch)
            assert torch.allclose(held[batch.mask], state[batch.mask], atol=1e-5)
    lower = [s.states(1, "test").gather([0], s.batch("test", [0])) for s in (store, bench.store)]
    assert torch.allclose(*lower, atol=1e-5), "what lies below the trained layers is as it was"
    with pytest.raises(UserError, match="is an excerpt, and does not hold all rows of train that are asked for"):
        store.batch("train", subset_rows(bench.corpus, task, Subset(**SUBSET)))


def test_rows_outside_of_a_subset_share_no_text_with_it(tmp_path):
    made = rows("classification", 26, 1)
    made[3] = {**made[20], "text": made[20]["text"].upper()}
    corpus = tiny_corpus(tmp_path, "classification", train=made)
    task = {"id": "t", "target": "label"}
    for draw in range(1, 9):
        subset = Subset(rows=10, draw=draw)
        inside, outside = set(subset_rows(corpus, task, subset)), set(rows_outside(corpus, task, subset))
        assert len(outside) == 10 and not inside & outside
        texts = corpus.frame("train")["text"].str.lower()
        assert not set(texts[list(inside)]) & set(texts[list(outside)])
    assert len(rows_outside(corpus, task, Subset(rows=20))) in (5, 6)
    with pytest.raises(UserError, match="the subset is all of train, 26 rows, so that none is left which no run"):
        rows_outside(corpus, task, Subset(rows=26))


def test_each_seed_is_probed_on_its_own_encoder(adaptation, tmp_path):
    found = adaptation.probe(tmp_path / "out")
    ends = {(end["layer"], end["seed"]): end["scores"]["test"]["accuracy"] for end in found["layers"]}
    assert set(ends) == {(layer, seed) for layer in range(4) for seed in (1, 2)}
    assert found["majority"].keys() == {"validation", "test"}
    assert json.dumps(found) == json.dumps(adaptation.probe(tmp_path / "again"))


def test_what_does_not_belong_together_is_refused(adaptation, tmp_path):
    with pytest.raises(UserError, match=r"metrics.json has digest \w+, but this run was planned for 0000"):
        adaptation.read(1, name="wrong", run="0000")
    with pytest.raises(UserError, match=r"card.json has digest \w+, but this run was planned for 0000"):
        adaptation.probe(tmp_path / "wrong", adapted={"1": "0000", "2": "0000"})
    assert not (tmp_path / "wrong").exists()
    lacking = tmp_path / "lacking"
    shutil.copytree(adaptation.runs[0].parent, lacking)
    (lacking / "encoder.safetensors").unlink()
    with pytest.raises(UserError, match="encoder.safetensors is missing; delete .*metrics.json and run the workflow"):
        Adapted.of(adaptation.bench.encoder, lacking / "metrics.json", read_json(adaptation.runs[0])["digest"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "card.json").write_text(json.dumps({"sha256": "0000"}))
    with pytest.raises(UserError, match="encoder.safetensors belongs to other weights than those of"):
        Adapted.of(other, adaptation.runs[0], read_json(adaptation.runs[0])["digest"])
    assert digest(read_json(adaptation.cards[0])["spec"]) == read_json(adaptation.cards[0])["digest"]
