"""Norms of gradients: those of the loss, by layer, of every epoch; noting them changes no number; their figure."""

import pandas
import pytest
import torch

import invented
from plans import plan_of
from thaw.core.errors import UserError
from thaw.core.files import write_json
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.frame.runs_frame import CELL
from thaw.papers.gradient_norms import build, norms
from thaw.schema.phases import PhaseConfig
from thaw.training.run_state import RunState
from tiny_corpus import small_bert
from trained import equal, tensors

ALL = {"train": ["all"], "epochs": 1, "batch_size": 24, "clip": 0.01}
STAGED = {"train": ["all"], "epochs": 1, "unfreeze": {"layers": 1, "epochs": 1}}


bench = pytest.fixture(scope="module")(small_bert)


def test_a_norm_is_that_of_the_loss_of_the_batch_before_it_is_clipped(bench):
    spec = bench.spec(ALL, gradients=True)
    run, (entry,) = bench.run(spec), spec["phases"]
    member = RunState(1, PhaseConfig.of_spec(entry), spec["seed"])
    trainable = run.trainable(member, entry, [run])
    trainable.thaw(entry["components"])
    with trainable.drawing([member.stream("dropout", 1)]):
        (rows,) = trainable.batches([member.stream("order", 1)], 24)
        trainable.begin([rows])
        trainable.losses(rows).sum().backward()
    _, left = bench.train(spec)
    for component, named in trainable.components(entry["components"])[0].items():
        flat = torch.cat([parameter.grad.flatten() for _, parameter in named if parameter.grad is not None])
        assert left.history[-1][f"gradient/{component}"] == pytest.approx(flat.norm().item(), rel=1e-4)


def test_noting_gradients_changes_no_number(bench):
    (_, plain), (_, noted) = (bench.train(bench.spec(STAGED, **more)) for more in ({}, {"gradients": True}))
    assert equal(tensors(plain), tensors(noted)) and plain.outcome == noted.outcome
    kept = [{key: value for key, value in row.items() if "gradient/" not in key} for row in noted.history]
    assert kept == plain.history
    by_epoch = [{key.partition("/")[2] for key in row if "gradient/" in key} for row in noted.history]
    found = [names for names in by_epoch if names]
    layers = [{"head"}, {"layer.3"}, {"layer.2"}, {"layer.1"}, {"embeddings"}]
    assert found == [set().union(*layers[: place + 1]) for place in range(5)], "each epoch thaws one more"


@pytest.mark.parametrize("length, label", [({"epochs": 2}, "Epoch"), ({"updates": 40}, "Epoch, or evaluation")])
def test_the_figure_has_a_line_for_each_layer_over_the_epochs_of_all_phases(invented_frame, tmp_path, length, label):
    chosen = (invented_frame["task"] == "odd") & (invented_frame["strategy"] == "full")
    runs = invented_frame[(invented_frame["kind"] == "run") & chosen]
    spec = {"labels": invented.LABELS}
    with pytest.raises(
        UserError, match="no run of this experiment recorded its gradients; set gradients: true and run"
    ):
        norms(OutputData(tmp_path, runs))
    seeds = runs.drop_duplicates([*CELL, "seed"]).to_dict("records")
    for place, row in enumerate(seeds):
        noted = {"phase": [1, 1, 1, 2], "epoch": [1, 1, 2, 1], "gradient/head": [None, 1.0 + place, 2.0, 3.0]}
        noted["gradient/layer.1"] = [None, None, None, 0.5]
        (tmp_path / row["folder"]).mkdir(parents=True)
        pandas.DataFrame(noted).to_csv(tmp_path / row["folder"] / "history.csv", index=False)
        write_json(tmp_path / row["folder"] / "metrics.json", {"spec": {"phases": [length, {"epochs": 1}]}})
    found = norms(OutputData(tmp_path, runs))
    first = found[(found["layer"] == "head") & (found["passed"] == 1)].iloc[0]
    assert (first["low"], first["high"], first["seeds"]) == (1, len(seeds), len(seeds)) and len(found) == 4
    figure = build(OutputData(tmp_path, runs), spec)
    (axis,) = figure.drawn.get_axes()
    curves = [line.get_xydata().tolist() for line in axis.get_lines() if line.get_marker() == "o"]
    assert [point[0] for point in curves[0]] == [1, 2, 3] and curves[1] == [[3, 0.5]]
    assert axis.get_xlabel() == label
    assert axis.get_yscale() == "log" and len(figure.records) == 4


def test_a_figure_of_what_no_run_notes_is_refused(tmp_path):
    with pytest.raises(
        UserError,
        match="outputs: gradients cannot be drawn: it needs gradients: true",
    ):
        plan_of(**{"outputs": ["gradients"]})
    plan = plan_of(**{"outputs": ["gradients"], "gradients": True})
    plain = plan_of()
    assert plan.jobs["train"]
    for key, job in plan.jobs["train"].items():
        assert job.spec == plain.jobs["train"][key].spec | {"gradients": True}
