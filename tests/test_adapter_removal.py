"""Adapters taken out: without all of them the encoder is the pretrained one with its trained norms."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

import invented
from plans import plan_of
from test_adapted import Adaptation
from thaw.adaptation.peft_modules import insert
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.encoders.transformers import Encoder
from thaw.outputs.frame.output_data import OutputData
from thaw.papers import removed_adapters
from thaw.papers.adapter_removal import without_adapters
from thaw.schema.phases import InsertConfig
from tiny_corpus import Bench, tiny_corpus

ADAPTERS = InsertConfig(kind="adapters", size=4, std=0.5)


class Adapted(Adaptation):
    """Runs of two seeds with adapters in all layers."""

    phase = {"train": ["head"], "insert": {"kind": "adapters", "size": 4, "std": 0.1}}


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
def test_an_encoder_without_adapters_computes_what_it_did_before_them(family, tmp_path):
    bench = Bench(tmp_path, family, tiny_corpus(tmp_path / "data", "classification"), "classification")
    plain, encoder = Encoder.load(bench.encoder).eval(), Encoder.load(bench.encoder).eval()
    batch = bench.inputs().store.batch("train", np.arange(3))
    insert(encoder, ADAPTERS, range(1, 4))
    with torch.no_grad():
        expected, whole = plain.boundaries(batch), encoder.boundaries(batch)
        with without_adapters(encoder, range(1, 4)):
            assert all(torch.equal(*states) for states in zip(encoder.boundaries(batch), expected, strict=True))
        with without_adapters(encoder, range(2, 4)):
            some = encoder.boundaries(batch)
        again = encoder.boundaries(batch)
    assert torch.equal(some[1], whole[1]) and not torch.allclose(some[2], whole[2], atol=1e-3)
    assert all(torch.equal(*states) for states in zip(again, whole, strict=True)), "they are back"


def test_the_probe_has_each_span_of_layers_and_the_runs_own_score(tmp_path):
    torch.set_num_threads(1)
    adaptation = Adapted(tmp_path / "adapted")
    probe = {"kind": "adapter_removal", "examples": 100}
    record = adaptation.probe(tmp_path / "probe", "adapter_removal", probe=probe, phases=[], rows="outside")
    ends = {(end["seed"], end["layer"]): end for end in record["layers"]}
    assert list(ends) == [(seed, layer) for seed in (1, 2) for layer in (1, 2, 3)]
    for seed, run in zip((1, 2), adaptation.runs, strict=True):
        assert ends[seed, 1]["whole"] == read_json(run)["scores"]["validation"]["accuracy"]
        for layer in (1, 2, 3):
            end = ends[seed, layer]
            assert [span["last"] for span in end["spans"]] == list(range(layer, 4))
            assert end["scores"] == {"validation": {"accuracy": end["spans"][0]["score"]}}
    json.dumps(record, allow_nan=False)
    rows = pd.read_csv(tmp_path / "probe/layers.csv")
    assert len(rows) == 2 * 6 and list(rows.columns[:4]) == ["layer", "seed", "last", "score"]


def test_a_run_without_adapters_is_not_probed():
    chosen = {"probes": ["adapter_removal"], "outputs": ["removed_adapters"], "subsets": ["n100_d1"]}
    plan = plan_of(**chosen, strategies=["full", {"adapters": [2]}], adapted=["full", "adapters"])
    probed = [plan.job("probe", key).spec["of"].get("run", {}).get("strategy") for key in plan.probes]
    assert set(probed) == {"adapters"}, "neither the pretrained encoder nor full fine-tuning"


def test_the_figure_has_the_change_in_percent_of_the_whole(tmp_path):
    ends = [
        {"layer": 1, "seed": 1, "whole": 0.8, "spans": [{"last": 1, "score": 0.6}, {"last": 2, "score": 0.2}]},
        {"layer": 2, "seed": 1, "spans": [{"last": 2, "score": 0.8}]},
        {"layer": 1, "seed": 2, "whole": 0.4, "spans": [{"last": 1, "score": 0.4}, {"last": 2, "score": 0.1}]},
        {"layer": 2, "seed": 2, "spans": [{"last": 2, "score": None}]},
    ]
    run = {"task": "odd", "head": "linear", "strategy": "adapters", "variant": "k02"}
    of = {"task": "odd", "subset": "all", "encoder": "tiny", "probe": "adapter_removal", "run": run}
    spec = {"of": of, "probe": {"kind": "adapter_removal"}, "task": {"id": "odd", "metrics": ["accuracy"]}}
    write_json(tmp_path / "metrics.json", {"spec": spec, "layers": ends})
    frame = removed_adapters.spans(OutputData(tmp_path, probes=[tmp_path / "metrics.json"]).probes)
    found = {(row.first, row.last): (row.whole, row.change) for row in frame.itertuples()}
    expected = {(1, 1): (60, -12.5), (1, 2): (60, -75), (2, 2): (80, 0)}
    assert {key: pytest.approx(pair) for key, pair in expected.items()} == found
    for end in ends:
        for span in end["spans"]:
            span["score"] = None
    write_json(tmp_path / "metrics.json", {"spec": spec, "layers": ends})
    with pytest.raises(UserError, match="an adapters_figure needs a probe of kind adapter_removal with defined scores"):
        data = OutputData(tmp_path, probes=[tmp_path / "metrics.json"])
        removed_adapters.build(data, invented.shown("r", "adapters_figure"))
