"""Attention heads taken out: the model that is left computes what a mask gives, and a run's own head judges it."""

import csv
import io
import json

import numpy as np
import pytest
import torch

import invented
from test_adapted import Adaptation
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.encoders.fewer_heads import take_out
from thaw.encoders.transformers import Encoder
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import removed_heads, writers
from thaw.probes.head_importance import SHARES, masked
from tiny import tiny_encoder
from tiny_corpus import Bench, tiny_corpus


@pytest.fixture(scope="module")
def adaptation(tmp_path_factory) -> Adaptation:
    torch.set_num_threads(1)
    return Adaptation(tmp_path_factory.mktemp("adapted"))


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
    for end, run in zip(last, adaptation.runs, strict=True):
        by_order = {name: [one for one in end["removed"] if one["order"] == name] for name in ("importance", "random")}
        assert all([one["share"] for one in several] == list(SHARES) for several in by_order.values())
        whole = by_order["importance"][0]
        rows = read_json(run)["rows"]["validation"]
        if rows <= 6:
            assert whole["score"] == read_json(run)["scores"]["validation"]["accuracy"], (
                "nothing removed: the run's own"
            )
        parameters = [one["parameters"] for one in by_order["importance"]]
        assert parameters == sorted(parameters, reverse=True) and parameters[-1] < parameters[0]
        assert all(one["seconds"] > 0 for one in by_order["importance"])
        assert "seconds" not in by_order["random"][0]
    json.dumps(record, allow_nan=False)


def test_the_table_has_means_over_seeds_and_time_as_a_share(tmp_path):
    removed = [
        {"order": "importance", "share": share, "score": 0.9 - share, "parameters": 2_000_000, "seconds": 2 - share}
        for share in (0.0, 0.5)
    ]
    removed += [{"order": "random", "share": share, "score": 0.9 - 1.5 * share} for share in (0.0, 0.5)]
    better = [one | {"score": one["score"] + 0.02} for one in removed]
    run = {"task": "odd", "head": "linear", "strategy": "full", "variant": "base"}
    of = {"task": "odd", "subset": "all", "encoder": "tiny", "probe": "head_removal", "run": run}
    ends = [{"layer": 1, "seed": seed, "removed": one} for seed, one in ((1, removed), (2, better))]
    spec = {"of": of, "probe": {"kind": "head_removal"}, "task": {"id": "odd", "metrics": ["accuracy"]}}
    write_json(tmp_path / "metrics.json", {"spec": spec, "layers": ends})
    data = OutputData(tmp_path, probes=[tmp_path / "metrics.json"])
    table = removed_heads.build(data, invented.shown("r", "head_removal_table"))
    cells = {row.name: [cell.text for cell in row.cells] for row in table.groups[0].rows}
    assert cells == {
        "0 %": ["91.0 ± 1.4", "91.0 ± 1.4", "2.00", "100"],
        "50 %": ["41.0 ± 1.4", "16.0 ± 1.4", "2.00", "75"],
    }
    lines = list(csv.DictReader(io.StringIO(writers.to_csv(table))))
    assert [float(line["random"]) for line in lines] == pytest.approx([90, 15, 92, 17])
    write_json(tmp_path / "metrics.json", {"spec": spec, "layers": []})
    with pytest.raises(UserError, match="a head_removal_table needs a probe of kind head_removal on encoders that"):
        removed_heads.build(OutputData(tmp_path, probes=[tmp_path / "metrics.json"]), invented.shown("r", "x"))
