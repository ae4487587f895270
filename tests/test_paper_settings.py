"""Settings that papers' code has: each against torch, transformers or a calculation by hand."""

import pandas
import pytest
import torch
from torch import nn

from corpora import PAIRS, TRAIN, pair, prepared
from thaw.adaptation.optimizers import optimizer
from thaw.adaptation.schedules import plateau_factor
from thaw.core.errors import UserError
from thaw.encoders.loading import load_pooler
from thaw.features.batch import Batch
from thaw.heads.registry import build
from thaw.outputs.figures import layer_curve
from thaw.outputs.frame import aggregate
from thaw.planning.configuration import load_plan, read_config
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig
from thaw.schema.strategy import StrategyConfig
from thaw.training.model_trainer import ModelTrainer
from thaw.training.run_state import RunState
from tiny_corpus import small_bert
from trained import losses

WIDTH, TEXTS, TOKENS = 6, 3, 5


bench = pytest.fixture(scope="module")(small_bert)


def batch() -> Batch:
    ids = torch.zeros(TEXTS, TOKENS, dtype=torch.int64)
    mask = torch.arange(TOKENS) < torch.tensor([5, 3, 4]).unsqueeze(1)
    return Batch(ids, mask, None, None, torch.arange(TEXTS), mask.to(torch.int8))


def head(kind: str, task_type: str = "classification", **entry):
    torch.manual_seed(0)
    return build(HeadConfig(kind=kind, **entry), WIDTH, 2, task_type).eval()


@pytest.mark.parametrize("scores", [[0.5, 0.6, 0.6, 0.61, 0.2, 0.3], [0.1], [0.5, 0.50004, 0.6], [0.9, 0.8, 0.7]])
def test_plateau_is_torchs(scores):
    parameter = nn.Parameter(torch.zeros(1))
    adam = torch.optim.SGD([parameter], lr=1.0)
    torchs = torch.optim.lr_scheduler.ReduceLROnPlateau(adam, mode="max", factor=0.5, patience=0)
    for count, score in enumerate(scores, start=1):
        torchs.step(score)
        assert plateau_factor(scores[:count]) == adam.param_groups[0]["lr"]
    assert plateau_factor([]) == 1.0 and plateau_factor([None, 0.5]) == 0.5


def test_a_run_on_a_plateau_halves_its_rate(bench):
    phase = PhaseConfig(schedule="plateau", warmup=0, rate=0.1)
    state = RunState(1, phase, 1, score=lambda split: 0.5)
    for epoch, factor in ((1, 1.0), (2, 0.5), (3, 0.25)):
        state.log_loss(epoch, epoch, 1.0, state.plateau_factor())
        state.after_epoch(epoch, True)
        assert state.plateau_factor() == factor
    trained = bench.train(bench.spec({"train": ["head", {"top": 1}], "schedule": "plateau", "warmup": 0, "epochs": 4}))[
        1
    ]
    rates = [row["rate"] for row in trained.history if row["validation"] is not None]
    scores = [row["validation"] for row in trained.history if row["validation"] is not None]
    assert rates == [rates[0] * plateau_factor(scores[:epoch]) for epoch in range(4)]


@pytest.mark.parametrize("name", ["adamw", "bert_adam"])
def test_betas_reach_the_optimizer(name):
    mean, square, value, (first, second) = 0.0, 0.0, 1.0, (0.7, 0.99)
    parameter = nn.Parameter(torch.tensor([value]))
    found = optimizer(name, [{"params": [parameter], "lr": 0.1, "weight_decay": 0.0}], (first, second))
    for step, gradient in enumerate((0.5, -0.2), start=1):
        parameter.grad = torch.tensor([gradient])
        found.step()
        mean, square = first * mean + (1 - first) * gradient, second * square + (1 - second) * gradient**2
        corrected = (mean / (1 - first**step), square / (1 - second**step)) if name == "adamw" else (mean, square)
        value -= 0.1 * corrected[0] / (corrected[1] ** 0.5 + {"adamw": 1e-8, "bert_adam": 1e-6}[name])
        assert parameter.item() == pytest.approx(value, rel=1e-5)


def test_clipping_over_all_parameters_counts_frozen_gradients(bench):
    run = bench.run(bench.spec({"train": ["head", {"top": 1}], "frozen_dropout": True, "clip_over": "all"}))
    norms = {}
    for clip_over in ("trained", "all"):
        phase = run.phases[0].changed({"clip_over": clip_over})
        trainer = run.trainable(RunState(1, phase, 1), run.stages[0][0], [run])
        trainer.thaw(run.stages[0][0]["components"])
        trainer.model.eval()
        for _ in range(2):  # a second batch finds no gradient of the first
            trainer.begin(trainer.batches([(1, "order")], 8))
            trainer.model.eval()
            if clip_over == "trained":
                trainer.model.zero_grad()  # as the optimizer does
            trainer.backward(trainer.losses(torch.arange(8).numpy()))
        gradients = [p.grad for p in trainer.model.parameters() if p.grad is not None]
        norms[clip_over] = torch.stack([gradient.norm() for gradient in gradients]).norm()
        own = [p.grad for _, p in trainer.model.components(["head"])["head"]]
        before = torch.stack([gradient.norm() for gradient in own]).norm()
        trainer.clip(0.01)
        after = torch.stack([gradient.norm() for gradient in own]).norm()
        assert float(after / before) == pytest.approx(0.01 / float(norms[clip_over]), rel=1e-3)
    assert norms["all"] > 1.01 * norms["trained"]
    assert isinstance(trainer, ModelTrainer)
    with pytest.raises(ValueError, match="clip_over: all needs frozen_dropout: true"):
        PhaseConfig(clip_over="all")


def test_a_hidden_layer_reads_several_poolings():
    ours, states, said = head("mlp", pooling=["first", "max", "mean"]), torch.randn(TEXTS, TOKENS, WIDTH), batch()
    means = torch.stack([text[row].mean(0) for text, row in zip(states, said.mask, strict=True)])
    largest = torch.stack([text[row].amax(0) for text, row in zip(states, said.mask, strict=True)])
    read = torch.cat([states[:, 0], largest, means], 1)
    assert torch.allclose(ours(states, said), ours.output(torch.relu(ours.hidden(read))), atol=1e-6)


def test_a_frozen_pooler_stays_as_it_was_pretrained(bench):
    entry = {"pooling": "frozen_pooler", "separate_pooling": "frozen_pooler"}
    run, trained = bench.train(bench.spec({"train": ["head", {"top": 1}], "epochs": 2}, head=entry))
    now = trained.head.state_dict()
    for name, value in load_pooler(bench.encoder).items():
        assert torch.equal(now[f"pooling.dense.{name}"], value)
    assert [name for name, _ in run.head.named_parameters()] == ["output.weight", "output.bias"]
    assert losses(trained)[-1] < losses(trained)[0]
    with pytest.raises(ValueError, match="pooler is for kind linear"):
        HeadConfig(kind="mlp", pooling="frozen_pooler")


def test_bcns_dropout_is_that_of_each_place():
    places = {"states": 0.5, "first": 0.25, "pooled": 0.1, "between": 0.2}
    options = {f"{name}_dropout": share for name, share in places.items()} | {"last_dropout": 0.3, "size": 4}
    ours = head("bcn", options=options)
    assert {name: module.p for name, module in ours.dropouts.items()} == places and ours.dropout.p == 0.3
    plain = head("bcn", options={"size": 4}, dropout=0.25)
    assert {module.p for module in [*plain.dropouts.values(), plain.dropout]} == {0.25}


def test_esims_last_layer_may_be_relu():
    found = {
        name: head("esim", "pair_classification", options={"activation": name, "size": 4}) for name in ("tanh", "relu")
    }
    states, said = torch.randn(TEXTS, TOKENS, WIDTH), batch()
    texts = torch.where(said.mask, 1 + torch.arange(TOKENS) // 2 % 2, 0).to(torch.int8)
    pairs = Batch(said.input_ids, said.mask, None, None, said.rows, texts)
    vectors = {name: ours.vectors(states, pairs) for name, ours in found.items()}
    assert torch.allclose(vectors["relu"], torch.relu(torch.atanh(vectors["tanh"])), atol=1e-4)


def test_the_sim_transformer_has_both_readings():
    states, bilstm = (
        head("sim_transformer", "pair_classification", options={"reading": name, "size": 8, "heads": 2})
        for name in ("states", "bilstm")
    )
    assert not hasattr(states, "reading") and len(states.streams) == 1 and states.streams[0].full.shape[1] == WIDTH
    assert bilstm.reading.lstm.hidden_size == 8 and [one.full.shape[1] for one in bilstm.streams] == [8, 8]
    assert bilstm.widened.in_features == 2 * states.widened.in_features


def test_a_search_may_choose_the_size_of_an_insert():
    phase = PhaseConfig(train=["head"], insert={"kind": "adapters", "size": 8})
    assert phase.changed({"insert_size": 64}).insert.size == 64 and phase.insert.size == 8
    strategy = {"phases": [phase.model_dump(exclude_unset=True)], "search": {"grid": {"insert_size": [8, 64]}}}
    assert StrategyConfig(**strategy).search.trials() == [{"insert_size": 8}, {"insert_size": 64}]
    with pytest.raises(ValueError, match="insert_size is the size of an insert"):
        PhaseConfig(train=["head"]).changed({"insert_size": 64})


def test_a_joined_split_holds_its_parts_in_order(tmp_path):
    parts = {"near": [pair("five", "six"), pair("seven", "")], "far": [pair("eight", "nine", "no")]}
    entry = PAIRS | {"join": {"test": ["near", "far"]}, "empty": "drop"}
    corpus = prepared(tmp_path, entry, train=TRAIN, **parts)
    assert corpus.splits == ["train", "test"] and corpus.frame("test")["a"].tolist() == ["five", "eight"]
    assert corpus.frame("test")["row"].tolist() == [0, 2] and corpus.card["splits"]["test"]["dropped"] == 1
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match="join: test: there is no split lost; there are "):
        prepared(tmp_path / "other", entry | {"join": {"test": ["lost", "far"]}}, train=TRAIN, **parts)


def test_only_leaves_runs_out_and_names_what_is_there(home, tmp_path):
    config = read_config([str(home / "config/experiments/peters2019.yaml")], {"data_dir": str(tmp_path)})
    runs = load_plan(config, home).runs
    assert {run.encoder for run in runs if run.task == "conll2003"} == {"bert_base_cased"}
    assert {run.task for run in runs if run.encoder == "bert_base_cased"} == {"conll2003"}
    assert {run.task for run in runs if run.strategy == "peters_features_bcn"} == {"sst2"}
    with pytest.raises(UserError, match="only: sst3 is no task, encoder, head or strategy"):
        load_plan(config | {"only": {"bert_base_cased": ["sst3"]}}, home)
    plan = load_plan(config | {"encoders": ["bert_base_uncased"], "optional": [], "outputs": ["main_table"]}, home)
    runs = plan.runs
    assert "conll2003" not in {run.task for run in runs}, "its encoders are not selected"
    assert "peters_features_tagger" not in {run.strategy for run in runs}, "nor is then its task"
    left_out = "conll2003 was left out: it is run with elmo, bert_base_cased alone, not selected here."
    assert left_out in plan.left_out


def test_a_layer_figure_may_show_the_difference_to_a_strategy():
    rows = [("a", "full", 90.0), ("a", "top", 80.0), ("b", "full", 50.0), ("b", "top", 51.0), ("c", "top", 1.0)]
    frame = pandas.DataFrame(rows, columns=["task", "strategy", "mean"])
    frame = frame.assign(**{name: "" for name in {*aggregate.COLUMN, "encoder", "head", "subset"} - {"task"}})
    frame = frame.assign(fitted=True, low=frame["mean"] - 1, high=frame["mean"] + 2)
    found = layer_curve._less(frame, "full")
    assert found["mean"].tolist() == [0, -10, 0, 1] and found["task"].tolist() == ["a", "a", "b", "b"]
    assert found["low"].tolist() == [-1, -11, -1, 0] and found["high"].tolist() == [2, -8, 2, 3]
    with pytest.raises(UserError, match="minus: whole has no result yet"):
        layer_curve._less(frame, "whole")
