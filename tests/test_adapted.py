"""Probes of an encoder that runs have adapted, on a small one: what they read, on which rows, and bad input."""

import json
import shutil

import numpy as np
import pytest
import torch

from thaw.core import boundaries
from thaw.core.digests import digest
from thaw.core.errors import UserError
from thaw.core.files import read_json, try_lock
from thaw.data.corpus import rows_outside, subset_rows
from thaw.encoders.transformers import Encoder
from thaw.features import extract
from thaw.features.store import FeatureStore
from thaw.papers.attention_similarity import cosines
from thaw.training.adapted import AdaptedEncoder
from thaw.training.run_inputs import open_adapted
from tiny_corpus import Bench, rows, tiny_corpus
from tiny_students import teach

SUBSET = {"rows": 10}


class Adaptation:
    """A bench with runs of two seeds on ten of its rows, and the states that their encoders give."""

    phase = {"train": ["head", {"top": 2}]}

    def __init__(self, folder, kind="classification", **splits):
        self.folder = folder
        corpus = tiny_corpus(folder / "data", kind, **{"train": rows(kind, 26, 1)} | splits)
        self.bench = Bench(folder, "bert", corpus, kind)
        self.runs, self.cards = [], []
        for seed in (1, 2):
            spec = self.bench.spec(self.phase, subset=SUBSET, keep=True, seed=seed)
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
        spec |= (
            fitted if kind == "linear" else {"phases": [boundaries.resume_plan([0, 1, 2, 3], 3, [n]) for n in range(4)]}
        )
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
    store = FeatureStore(adaptation.cards[0].parent)
    encoder = Encoder.load(bench.encoder)
    task = bench.spec()["task"]
    trained = AdaptedEncoder.of(bench.encoder, run, read_json(run)["digest"])
    assert {name.split(".")[2] for name in trained.tensors} == {"1", "2"}, "the two layers that the run trained"
    encoder.put(trained.tensors)
    for split, chosen in {"train": rows_outside(bench.corpus, task, SUBSET), "test": np.arange(8)}.items():
        batch = store.batch(split, chosen[:3])
        for n, state in enumerate(encoder.boundaries(batch)):
            held = store.states(n, split).gather(chosen[:3], batch)
            assert torch.allclose(held[batch.mask], state[batch.mask], atol=1e-5)
    lower = [s.states(1, "test").gather([0], s.batch("test", [0])) for s in (store, bench.store)]
    assert torch.allclose(*lower, atol=1e-5), "what lies below the trained layers is as it was"
    with pytest.raises(UserError, match="is an excerpt, and does not hold all rows of train that are asked for"):
        store.batch("train", subset_rows(bench.corpus, task, SUBSET))


def test_an_adapted_encoder_reads_in_the_precision_of_the_store(adaptation):
    in_fp32, in_bf16 = adaptation.read(1), adaptation.read(1, "in_bf16_", precision="bf16")
    states = [FeatureStore(card.parent).states(3, "test").at(range(8)) for card in (in_fp32, in_bf16)]
    assert 0 < (states[0] - states[1]).abs().max() < 0.1
    assert read_json(in_bf16.parent / "b3.json")["precision"] == "bf16"


def test_rows_outside_of_a_subset_share_no_text_with_it(tmp_path):
    made = rows("classification", 26, 1)
    made[3] = {**made[20], "text": made[20]["text"].upper()}
    corpus = tiny_corpus(tmp_path, "classification", train=made)
    task = {"id": "t", "target": "label"}
    for draw in range(1, 9):
        subset = {"rows": 10, "draw": draw}
        inside, outside = set(subset_rows(corpus, task, subset)), set(rows_outside(corpus, task, subset))
        assert len(outside) == 10 and not inside & outside
        texts = corpus.frame("train")["text"].str.lower()
        assert not set(texts[list(inside)]) & set(texts[list(outside)])
    assert len(rows_outside(corpus, task, {"rows": 20})) in (5, 6)
    with pytest.raises(UserError, match="the subset is all of train, 26 rows, so that none is left which no run"):
        rows_outside(corpus, task, {"rows": 26})


def test_each_seed_is_probed_on_its_own_encoder(adaptation, tmp_path):
    found = adaptation.probe(tmp_path / "out")
    ends = {(end["layer"], end["seed"]): end["scores"]["test"]["accuracy"] for end in found["layers"]}
    assert set(ends) == {(layer, seed) for layer in range(4) for seed in (1, 2)}
    assert found["majority"].keys() == {"validation", "test"}
    assert json.dumps(found) == json.dumps(adaptation.probe(tmp_path / "again"))


def test_encoders_are_told_apart_by_seed_and_not_by_the_order_of_their_names(adaptation, tmp_path):
    cards, runs = adaptation.cards[::-1], adaptation.runs[::-1]
    swapped = {"10": read_json(cards[1])["digest"], "9": read_json(cards[0])["digest"]}
    spec = {"seeds": [9, 10], "adapted": swapped, "read": [0, 1, 2, 3]}
    found = open_adapted(spec, cards, runs, adaptation.bench.inputs())
    assert [found[seed].store.folder for seed in (9, 10)] == [card.parent for card in cards]


def test_what_does_not_belong_together_is_refused(adaptation, tmp_path):
    with pytest.raises(UserError, match=r"metrics.json has digest \w+, but this job was planned for 0000"):
        adaptation.read(1, name="wrong", run="0000")
    with pytest.raises(UserError, match=r"card.json has digest \w+, but this job was planned for 0000"):
        adaptation.probe(tmp_path / "wrong", adapted={"1": "0000", "2": "0000"})
    assert not (tmp_path / "wrong").exists()
    lacking = tmp_path / "lacking"
    shutil.copytree(adaptation.runs[0].parent, lacking)
    (lacking / "encoder.safetensors").unlink()
    with pytest.raises(UserError, match="encoder.safetensors is missing; delete .*metrics.json and run the workflow"):
        AdaptedEncoder.of(adaptation.bench.encoder, lacking / "metrics.json", read_json(adaptation.runs[0])["digest"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "card.json").write_text(json.dumps({"sha256": "0000"}))
    with pytest.raises(UserError, match="encoder.safetensors belongs to other weights than those of"):
        AdaptedEncoder.of(other, adaptation.runs[0], read_json(adaptation.runs[0])["digest"])
    assert digest(read_json(adaptation.cards[0])["spec"]) == read_json(adaptation.cards[0])["digest"]


@pytest.mark.parametrize("kind", ["cka", "rsa", "svcca", "weight_distance", "attention_similarity"])
def test_what_lies_below_the_trained_layers_has_not_changed(adaptation, tmp_path, kind):
    found = adaptation.probe(tmp_path / "out", kind)
    ends = {(end["layer"], end["seed"]): end["scores"]["validation"] for end in found["layers"]}
    layers = [1, 2, 3] if kind == "attention_similarity" else [0, 1, 2, 3]
    assert list(ends) == [(layer, seed) for layer in layers for seed in (1, 2)] and found["main"] == kind
    same = 0.0 if kind == "weight_distance" else 1.0
    for (layer, _), scores in ends.items():
        unchanged = layer < 2
        for name in (kind, "between_seeds"):
            assert (scores[name] == pytest.approx(same, abs=1e-5)) == unchanged, f"layer {layer}, {name}"
    assert ends[3, 1]["between_seeds"] == pytest.approx(ends[3, 2]["between_seeds"], abs=0.02)


def test_weights_are_as_far_apart_as_a_loop_over_the_files_says(adaptation, tmp_path):
    bench, run = adaptation.bench, adaptation.runs[0]
    found = adaptation.probe(tmp_path / "out", "weight_distance")
    trained = AdaptedEncoder.of(bench.encoder, run, read_json(run)["digest"]).tensors
    before = dict(Encoder.load(bench.encoder).model.named_parameters())
    moved = squares = 0.0
    for name, tensor in before.items():
        if ".layer.2." in name:
            after, values = trained[name].flatten().tolist(), tensor.flatten().tolist()
            moved += sum((a - b) ** 2 for a, b in zip(after, values, strict=True))
            squares += sum(value**2 for value in values)
    end = next(end for end in found["layers"] if (end["layer"], end["seed"]) == (3, 1))
    assert end["scores"]["validation"]["weight_distance"] == pytest.approx((moved / squares) ** 0.5, rel=1e-5)


def test_attention_maps_are_compared_without_padding():
    maps = torch.rand(2, 3, 2, 5, 5)
    other = torch.rand(2, 3, 2, 5, 5)
    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    found = cosines(maps, other, mask)
    for layer, text, head in np.ndindex(2, 3, 2):
        n = int(mask[text].sum())
        a, b = (side[layer, text, head, :n, :n].flatten().tolist() for side in (maps, other))
        due = sum(x * y for x, y in zip(a, b, strict=True)) / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5
        assert found[layer, text, head] == pytest.approx(due, abs=1e-6)


def test_an_encoder_without_a_predictor_has_no_loss_to_compare(adaptation, tmp_path, capsys):
    assert adaptation.probe(tmp_path / "out", "masked_loss")["layers"] == []
    assert "left out: " in capsys.readouterr().err


@pytest.mark.parametrize("step", ["features", "features_adapted", "teach"])
def test_a_store_is_locked_until_its_cards_are_written(step, adaptation, tmp_path, monkeypatch):
    bench, written, was_free = adaptation.bench, extract.write_json, []

    def write(path, values):
        with open(path.parent / ".lock") as lock:
            was_free.append(try_lock(lock))
        written(path, values)

    monkeypatch.setattr(extract, "write_json", write)
    if step == "features":
        bench.extract("pooled")
    elif step == "features_adapted":
        adaptation.read(1, "again")
    else:
        teach(bench, adaptation.runs[0], [{"pairs": [[1, 1]]}], tmp_path)
    assert was_free and not any(was_free)
