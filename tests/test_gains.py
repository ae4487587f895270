"""Nearness to pretraining: the loss of next sentences as the published model has it, and gains against measures."""

import shutil
from dataclasses import replace

import pytest
import torch

import scored_runs
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.probe_frame import ProbeRecord
from thaw.papers.pretraining_proximity import build, gains, nearness
from thaw.probes.encoder_comparison import EncoderComparison
from thaw.probes.masked_losses import next_sentence_loss
from thaw.training.adapted import AdaptedEncoder
from tiny_corpus import Bench, tiny_corpus


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    folder = tmp_path_factory.mktemp("pairs")
    return Bench(folder, "bert", tiny_corpus(folder / "data", "pair_classification"), "pair_classification")


def compared(bench: Bench, encoder, tensors: dict) -> EncoderComparison:
    """Return a comparison of an encoder with itself and with one in which some tensors are others."""
    spec = bench.spec() | {"of": {"probe": "p"}, "probe": {"kind": "next_sentence_loss"}, "read": [0, 1, 2, 3]}
    base = replace(bench.inputs(), encoder=encoder)
    sides = {1: AdaptedEncoder(encoder, {}, None), 2: AdaptedEncoder(encoder, tensors, None)}
    return EncoderComparison(spec, base, {seed: replace(base, adapted=one) for seed, one in sides.items()})


def test_the_loss_of_next_sentences_is_that_of_the_published_model(bench, tmp_path):
    from transformers import BertConfig, BertForPreTraining

    torch.set_num_threads(1)
    shutil.copytree(bench.encoder, tmp_path / "encoder")
    whole = BertForPreTraining(BertConfig.from_pretrained(bench.encoder)).eval()
    whole.save_pretrained(tmp_path / "encoder")
    batch = bench.store.batch("validation", list(range(8)))
    with torch.no_grad():
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.mask.long(), "token_type_ids": batch.type_ids}
        due = whole(**inputs).seq_relationship_logits.log_softmax(1)[:, 0].mean().neg().item()
    name = "encoder.layer.2.output.dense.weight"
    moved = {name: -5 * whole.bert.state_dict()[name]}
    rows, ends = next_sentence_loss(compared(bench, tmp_path / "encoder", moved))
    same, other = (end["scores"]["validation"] for end in ends)
    assert same == {"before": pytest.approx(due, abs=1e-5), "next_sentence_loss": same["before"]}
    assert other["before"] == same["before"] and abs(other["next_sentence_loss"] - other["before"]) > 1e-4
    assert [row["layer"] for row in rows] == [3, 3]


def test_an_encoder_that_was_not_pretrained_on_next_sentences_is_left_out(bench, capsys):
    assert next_sentence_loss(compared(bench, bench.encoder, {})) == ([], [])
    assert "left out: " in capsys.readouterr().err


def record(measure: str, values: list[float], **of) -> dict:
    """Return what a probe of two layers says of the last one and of another, by seed."""
    split, score = ("train", "logme") if measure == "logme" else ("validation", "before")
    ends = [
        {"layer": n, "seed": s, "scores": {split: {score: v + n - 2}}} for n in (1, 2) for s, v in enumerate(values)
    ]
    of = {"task": "odd", "subset": "all", "encoder": "tiny", "probe": "p"} | of
    return {"spec": {"of": of, "probe": {"kind": measure}, "layers": 2}, "layers": ends}


def test_gains_stand_beside_what_the_pretrained_encoder_had(tmp_path):
    runs = scored_runs.write(tmp_path, {("frozen", "base"): 0.6, ("full", "base"): 0.9}, seeds=(1, 2, 3))
    whole = runs["strategy"] == "full"
    runs = runs.assign(thawed=whole * 3, embeddings=whole)
    predictions = PredictionFiles(tmp_path)
    (row,) = gains(runs, "full", predictions).to_dict("records")
    due = 100 * (runs.loc[whole, "value"].mean() - runs.loc[~whole, "value"].mean())
    assert row["gain"] == pytest.approx(due) and row["low"] < due < row["high"] and row["seeds"] == 3
    assert 5 < row["high"] - row["low"] < 20, "200 examples, three seeds"
    adapted = {"run": {"task": "odd", "head": "linear", "strategy": "full", "variant": "base"}}
    found = [record("logme", [0.5, 0.7]), record("logme", [9.0, 9.0], **adapted)]
    found += [record("masked_loss", [2.0, 3.0], **adapted)]
    near = nearness([ProbeRecord(tmp_path, one) for one in found]).set_index("measure")
    assert near.loc["logme", ["near", "near_low", "near_high"]].tolist() == pytest.approx([0.6, 0.5, 0.7])
    assert near.loc["masked_loss", "near"] == 2.5
    paths = [tmp_path / f"{place}.json" for place in range(len(found))]
    for path, content in zip(paths, found, strict=True):
        write_json(path, content)
    spec = {"reference": "full", "labels": {}}
    figure = build(OutputData(tmp_path, runs, paths), spec)
    assert [axis.get_xlabel() for axis in figure.drawn.get_axes()] == [
        "LogME of the last layer, nats",
        "Loss at masked tokens, nats",
    ]
    assert len(figure.records) == 2
    same = [7.506161913602179] * 3  # whose mean is not the same to the last bit
    write_json(paths[0], record("logme", same))
    assert build(OutputData(tmp_path, runs, paths), spec).records
    with pytest.raises(UserError, match="a gain_figure needs runs of full and of a strategy that trains the head"):
        build(OutputData(tmp_path, runs[~whole], paths), spec)
