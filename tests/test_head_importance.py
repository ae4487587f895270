"""Importance of attention heads against finite differences, removal against weights of 0, and the figure."""

import json

import numpy as np
import pytest
import torch

from test_probes import spec_of
from thaw.core.errors import UserError
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.papers import attention_heads as heads
from thaw.papers.head_pruning import build, points
from thaw.probes.reading import Reading
from tiny_corpus import Bench, tiny_corpus


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
