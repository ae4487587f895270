"""Figures of adapted encoders from invented records: what is put together, scaled and named."""

from pathlib import Path

import pytest

from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.probe_frame import ProbeRecord, run_names
from thaw.papers.attention_change import heads
from thaw.papers.representation_change import build, changes

FULL = {"task": "one", "head": "linear", "strategy": "full", "variant": "base"}
LABELS = {"strategies": {"full": "Full", "top_k": "Top k"}, "tasks": {"one": "First", "two": "Second"}}


def wrapped(*records) -> list[ProbeRecord]:
    return [ProbeRecord(Path("metrics.json"), one) for one in records]


def record(task="one", probe="linear", run=None, layers=(), main="accuracy") -> dict:
    """Return what a probe leaves; layers are ends."""
    of = {"task": task, "subset": "all", "encoder": "a", "probe": probe} | ({"run": run} if run else {})
    return {"spec": {"of": of, "task": {"id": task}}, "main": main, "layers": list(layers), "majority": {}}


def ends(values, name="accuracy", beside=None) -> list[dict]:
    """Return ends of one seed; values by layer."""
    found = [{"layer": n, "seed": 1, "scores": {"test": {name: value}}} for n, value in enumerate(values)]
    for end, value in zip(found, beside or [], strict=False):
        end["scores"]["test"]["between_seeds"] = value
    return found


def test_runs_have_names_that_tell_them_apart():
    top = {"task": "one", "head": "linear", "strategy": "top_k", "variant": "k02"}
    records = [record(), record(run=FULL), record(run=top)]
    keys = {"pretrained": "Pretrained", "linear.full.base": "Full", "linear.top_k.k02": "Top k (k = 2)"}
    assert run_names(wrapped(*records), LABELS) == keys
    other = run_names(wrapped(*records, record(task="two", run=FULL)), LABELS)
    assert other["one.linear.full.base"] == "Full on First" and other["linear.full.base"] == "Full"
    assert run_names(wrapped(*records, record(task="two", run=FULL | {"task": "two"})), LABELS) == keys
    two = run_names(wrapped(*records, record(run=FULL | {"head": "mlp"})), LABELS | {"heads": {"mlp": "MLP"}})
    assert two["mlp.full.base"] == "Full, MLP" and two["linear.full.base"] == "Full, linear"


def test_changes_stand_beside_those_between_two_seeds(tmp_path):
    first, second = ends([1.0, 0.8], "cka", [1.0, 0.9]), ends([1.0, 0.6], "cka", [1.0, 0.9])
    for end in second:
        end["seed"] = 2
    records = [record(probe="cka", run=FULL, layers=[*first, *second], main="cka")]
    found = changes(wrapped(*records)).set_index(["against", "layer"])
    assert tuple(found.loc[("pretrained", 1), ["mean", "low", "high", "seeds"]]) == pytest.approx((0.7, 0.6, 0.8, 2))
    assert found.loc[("between_seeds", 1), "mean"] == pytest.approx(0.9)
    write_json(tmp_path / "cka.json", records[0])
    spec = {"split": "test", "labels": LABELS, "probes": {"cka": "CKA"}}
    rows = build(OutputData(tmp_path, probes=[tmp_path / "cka.json"]), spec).records
    assert {(row["against"], row["layer"]): row["mean"] for row in rows} == found["mean"].to_dict()
    with pytest.raises(
        UserError, match="nothing was compared: no encoder of this experiment has what these probes compare"
    ):
        changes(wrapped(record(probe="cka", run=FULL, main="cka")))


def test_heads_are_means_over_seeds():
    layers = [
        {"layer": 1, "seed": s, "scores": {"test": {}}, "heads": {"attention_similarity": v, "between_seeds": [1, 1]}}
        for s, v in ((1, [0.5, 0.7]), (2, [0.7, 0.9]))
    ]
    found = heads(wrapped(record(probe="a", run=FULL, layers=layers, main="attention_similarity")))
    assert found.loc[found["against"] == "pretrained", "cosine"].tolist() == pytest.approx([0.6, 0.8])
    assert found.loc[found["against"] == "between_seeds", "cosine"].tolist() == [1, 1]
