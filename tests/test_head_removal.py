"""Attention heads: their importance against finite differences, and the model that is left without some of them."""

import contextlib
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy
from transformers import BertModel

from test_adapted import SUBSET, Adaptation
from test_adapted import adaptation as adaptation
from test_probes import spec_of
from thaw.core.errors import UserError
from thaw.data.corpus import rows_outside
from thaw.encoders.transformers import Encoder
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.papers import attention_heads as heads
from thaw.papers.attention_heads import SHARES, masked, take_out
from thaw.papers.head_pruning import build, points
from thaw.probes.reading import Reading
from tiny import tiny_encoder
from tiny_corpus import Bench, rows, tiny_corpus


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_an_encoder_without_heads_is_one_in_which_they_are_masked(family, tmp_path):
    corpus = tiny_corpus(tmp_path / "data", "classification")
    bench = Bench(tmp_path, family, corpus, "classification")
    encoder, batch = Encoder.load(bench.encoder).eval(), bench.inputs().store.batch("train", np.arange(3))
    count = encoder.model.config.num_attention_heads
    removed = {1, count, *range(2 * count, 3 * count)}  # of the third layer all
    with masked(encoder, 1, sorted(removed)), torch.no_grad():
        expected = encoder(batch)
    before = sum(parameter.numel() for parameter in encoder.parameters())
    take_out(encoder, removed)
    with torch.no_grad():
        found = encoder(batch)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    width = encoder.model.config.hidden_size
    lost = len(removed) - 1  # one of a layer that would have none stays
    assert before - sum(p.numel() for p in encoder.parameters()) == lost * (width // count) * (4 * width + 3)


def test_heads_that_share_a_matrix_are_refused(tmp_path):
    with pytest.raises(UserError, match="this encoder has no separate queries, keys and values in each layer"):
        take_out(Encoder.load(tiny_encoder("gpt2", tmp_path)), {1})


def test_the_probe_judges_by_the_runs_own_head(adaptation, tmp_path):
    probe = {"kind": "head_removal", "examples": 8}
    record = adaptation.probe(tmp_path / "probe", "head_removal", probe=probe, phases=[], rows="outside")
    last = [end for end in record["layers"] if "removed" in end]
    assert [end["seed"] for end in last] == [1, 2] and len(record["layers"]) == 6
    for end in last:
        by_order = {name: [one for one in end["removed"] if one["order"] == name] for name in ("importance", "random")}
        assert all([one["share"] for one in several] == list(SHARES) for several in by_order.values())
        parameters = [one["parameters"] for one in by_order["importance"]]
        assert parameters == sorted(parameters, reverse=True) and parameters[-1] < parameters[0]
        assert all(one["seconds"] > 0 for one in by_order["importance"])
        assert "seconds" not in by_order["random"][0]
    json.dumps(record, allow_nan=False)


@pytest.fixture(scope="module", params=["spans"])
def judged(request, tmp_path_factory) -> Adaptation:
    """Adapted encoders with runs of their own head, on labels of texts and of words, and 40 rows of validation."""
    torch.set_num_threads(1)
    return Adaptation(tmp_path_factory.mktemp(request.param), request.param, validation=rows(request.param, 40, 2))


class PlainRun:
    """A run's encoder and linear head as transformers and torch have them, in float64, to change heads by hand."""

    def __init__(self, bench: Bench, run):
        self.store, self.words = bench.store, bench.kind == "spans"
        self.model = BertModel.from_pretrained(bench.encoder, attn_implementation="eager").eval()
        self.model.load_state_dict(load_file(run / "encoder.safetensors"), strict=False)
        self.model.double()
        self.head = {name: value.double() for name, value in load_file(run / "head.safetensors").items()}
        task = bench.spec()["task"]
        self.gold = {split: bench.corpus.targets(task, split) for split in ("train", "validation")}
        self.matrices = [layer.attention.output.dense.weight for layer in self.model.encoder.layer]
        self.heads, self.width = self.model.config.num_attention_heads, self.model.config.hidden_size

    @torch.no_grad()
    def logits(self, split: str, row: int) -> torch.Tensor:
        """Return the logits of a text, or of its words, by itself."""
        batch = self.store.batch(split, [row])
        states = self.model(batch.input_ids, token_type_ids=batch.type_ids).last_hidden_state[0]
        places = batch.first_pieces[0] if self.words else torch.tensor([0])
        return states[places] @ self.head["output.weight"].T + self.head["output.bias"]

    def losses(self, rows) -> np.ndarray:
        """Return the mean cross-entropy of each row of train by itself."""
        gold = [torch.as_tensor(self.gold["train"][row]).flatten() for row in rows]
        return np.array([cross_entropy(self.logits("train", r), g).item() for r, g in zip(rows, gold, strict=True)])

    @contextlib.contextmanager
    def scaled(self, heads, by: float):
        """Multiply what some heads give, counted through all layers, by a number: their columns of the projection."""
        before, size = [matrix.clone() for matrix in self.matrices], self.width // self.heads
        with torch.no_grad():
            for head in heads:
                first = head % self.heads * size
                self.matrices[head // self.heads][:, first : first + size] *= by
            yield
            for matrix, old in zip(self.matrices, before, strict=True):
                matrix.copy_(old)

    def importance(self, rows, step=1e-4) -> np.ndarray:
        """Return the mean over rows of the size of the slope of each row's loss by each head's mask, [L, H]."""
        found = []
        for head in range(len(self.matrices) * self.heads):
            with self.scaled([head], 1 + step):
                above = self.losses(rows)
            with self.scaled([head], 1 - step):
                below = self.losses(rows)
            found.append(np.abs((above - below) / (2 * step)).mean())
        return np.reshape(found, (-1, self.heads))


def test_importance_is_the_mean_size_of_the_slope_of_each_texts_loss_by_the_runs_own_head(judged, tmp_path):
    bench, probe = judged.bench, {"kind": "head_removal", "examples": 8}
    record = judged.probe(tmp_path / "probe", "head_removal", probe=probe, phases=[], rows="outside")
    read = rows_outside(bench.corpus, bench.spec()["task"], SUBSET)[:8]
    for seed, run in enumerate(judged.runs, 1):
        ends = [end for end in record["layers"] if end["seed"] == seed]
        due = PlainRun(bench, run.parent).importance(read)
        found = [end["scores"]["train"]["importance"] for end in ends]
        np.testing.assert_allclose(found, due.mean(1), rtol=1e-3)
        normed = due / np.linalg.norm(due, axis=1, keepdims=True)
        np.testing.assert_allclose([end["heads"] for end in ends], normed, rtol=1e-3)


@pytest.mark.parametrize("judged", ["classification"], indirect=True)
def test_heads_go_by_rising_importance_and_the_score_is_that_of_the_run_without_them(judged, tmp_path):
    bench, probe = judged.bench, {"kind": "head_removal", "examples": 40}
    record = judged.probe(tmp_path / "probe", "head_removal", probe=probe, phases=[], rows="outside")
    for seed, run in enumerate(judged.runs, 1):
        ends, plain = [end for end in record["layers"] if end["seed"] == seed], PlainRun(bench, run.parent)
        order = np.argsort(np.concatenate([end["heads"] for end in ends]))
        due = []
        for share in SHARES:
            with plain.scaled(order[: round(share * len(order))], 0):
                guesses = [plain.logits("validation", row).argmax().item() for row in range(40)]
            due.append(np.mean(np.equal(guesses, plain.gold["validation"])))
        found = [one["score"] for one in ends[-1]["removed"] if one["order"] == "importance"]
        assert found == pytest.approx(due) and len(set(due)) > 1


@pytest.fixture(scope="module", params=["regression", "spans"])
def reading(request, tmp_path_factory) -> Reading:
    """The reading of a small encoder, for each way in which a loss is made."""
    folder = tmp_path_factory.mktemp(request.param)
    bench = Bench(folder, "bert", tiny_corpus(folder / "data", request.param), request.param)
    torch.set_num_threads(1)
    return Reading(spec_of(bench, "head_importance", examples=5), bench.inputs())


def losses(reading: Reading, reader, split, solution, removed=(), scaled=None) -> np.ndarray:
    """Return the loss of each row of train by itself, with a head's mask at another value, if given."""
    found = []
    for row, targets in zip(split.rows, heads._by_row(split), strict=True):
        batch = reading.inputs.store.batch("train", [row])
        with heads.masked(reader.encoder, 1, removed) as masks, torch.no_grad():
            if scaled:
                masks[0, scaled[0], scaled[1]] = scaled[2]
            vectors = reader.head.vectors(reader.encoder(batch), batch)
        vectors = vectors[batch.first_pieces >= 0] if reading.words else vectors
        logits = solution.logits(vectors)
        if reading.labels:
            found.append(-logits.log_softmax(1)[range(len(targets)), targets].sum().item())
        else:
            found.append((logits[0, 0].item() - targets[0]) ** 2)
    return np.array(found)


def test_importance_is_the_mean_size_of_the_slope_of_each_text(reading):
    solution, held = heads._solution(reading, 1)
    part, reader = held.part(np.arange(3)), reading.whole()
    loss = heads._losses(reading, reader, part, solution)
    found, step = heads.importance(reading, reader.encoder, part.rows, loss), 1e-2
    for layer, head in [(0, 0), (1, 1), (2, found.shape[1] - 1)]:
        both = [losses(reading, reader, part, solution, scaled=(layer, head, 1 + sign * step)) for sign in (1, -1)]
        assert found[layer, head] == pytest.approx(np.abs((both[0] - both[1]) / (2 * step)).mean(), rel=0.02, abs=1e-4)


def test_a_removed_head_is_one_whose_columns_are_zero(reading):
    solution, held = heads._solution(reading, 1)
    part, reader = held.part(np.arange(2)), reading.whole()
    count = reader.encoder.model.config.num_attention_heads
    expected = losses(reading, reader, part, solution, removed=[1, 2 * count])
    whole = losses(reading, reader, part, solution)
    for layer, head in ((0, 1), (2, 0)):
        dense = reader.encoder.model.encoder.layer[layer].attention.output.dense
        size = dense.weight.shape[1] // count
        with torch.no_grad():
            dense.weight[:, head * size : (head + 1) * size] = 0
    assert losses(reading, reader, part, solution) == pytest.approx(expected, rel=1e-5)
    assert not np.allclose(expected, whole, rtol=1e-4)


def test_rows_and_ends(reading):
    table, ends = heads.head_importance(reading, 1)
    of_heads = [row for row in table if "head" in row]
    assert [end["layer"] for end in ends] == [1, 2, 3] and len(of_heads) == 3 * len(ends[0]["heads"])
    assert all(np.linalg.norm(end["heads"]) == pytest.approx(1, abs=1e-4) for end in ends)
    removed = ends[-1]["removed"]
    assert [entry["share"] for entry in removed if entry["order"] == "random"] == list(heads.SHARES)
    whole = {entry["score"] for entry in removed if entry["share"] == 0}
    assert len(whole) == 1, "without removal both orders score the same"
    json.dumps([table, ends], allow_nan=False)
    assert heads.head_importance(reading, 1) == (table, ends)


def test_the_last_layer_must_be_read(reading, monkeypatch):
    monkeypatch.setattr(reading, "numbers", [0, 1])
    with pytest.raises(UserError, match="the last layer must be among layers:, since the loss is that of its probe"):
        heads.head_importance(reading, 1)


def test_the_figure_has_a_grid_and_a_curve(tmp_path):
    removed = [{"order": o, "share": s, "score": 0.9 - s} for o in ("importance", "random") for s in (0.0, 0.5)]
    ends = [{"layer": n, "seed": 1, "heads": [0.6, 0.8]} for n in (1, 2)]
    ends[-1]["removed"] = removed
    of = {"task": "t", "subset": "all", "encoder": "e", "probe": "head_importance"}
    record = {"spec": {"of": of, "task": {"id": "t", "metrics": ["accuracy"]}}, "layers": ends}
    (tmp_path / "metrics.json").write_text(json.dumps(record))
    found = points([ProbeRecord(tmp_path / "metrics.json", record)])
    assert found.query("kind == 'head'")["mean"].tolist() == [0.6, 0.8, 0.6, 0.8]
    assert found.query("kind == 'removed' and order == 'random'")["mean"].tolist() == pytest.approx([90, 40])
    figure = build(OutputData(tmp_path, probes=[tmp_path / "metrics.json"]), {"split": "test", "labels": {}})
    assert figure.drawn.get_axes()[0].get_title("left") == "t\nimportance of heads"
    assert len(figure.records) == len(found)
