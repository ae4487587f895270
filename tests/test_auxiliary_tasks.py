"""Auxiliary tasks: loss and gradients by transformers' model, how tasks and rows are drawn, what is planned, read."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import AutoModel

from plans import plan_of, plan_with
from test_progress import Stopped, stop_after
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.digests import canonical
from thaw.planning.questions import Questions
from thaw.training import progress
from thaw.training.progress import Progress
from thaw.training.rows_read import auxiliary_rows, rows_of_all
from thaw.training.task_model import TaskModel
from thaw.training.training_run import train
from tiny_corpus import Bench, small_bert, tiny_corpus
from tiny_corpus import rows as examples
from trained import equal, losses, tensors

AUXILIARY = {"tasks": ["t", "amount", "names"], "weight": 0.5, "power": 0.5}
ALL = {"train": ["all"], "epochs": 2, "auxiliary": AUXILIARY}
TOP = ALL | {"train": ["head", {"top": 1}]}


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    """A classification of 24 rows, with a regression of 54 and a tagging of 6 as auxiliary tasks."""
    made = small_bert(tmp_path_factory)
    for name, kind, count in (("amount", "regression", 54), ("names", "spans", 6)):
        folder = tmp_path_factory.mktemp(name)
        corpus = tiny_corpus(folder / "data", kind, train=examples(kind, count, 1))
        made.others[name] = Bench(folder, "bert", corpus, kind)
    return made


def spec_of(bench: Bench, *phases: dict, **changes) -> dict:
    """Return the spec of a run with both auxiliary tasks."""
    return bench.spec(*phases, auxiliary=[bench.auxiliary(name) for name in bench.others], **changes)


def trainer_of(bench: Bench, phase: dict):
    """Return a run, and what trains in its only stage."""
    run = bench.run(spec_of(bench, phase))
    (stage,) = run.stages[0]
    trainer = run.trainable(SimpleNamespace(phase=run.phases[0], number=1), stage, [run])
    trainer.thaw(stage["components"])
    return run, trainer


def written_out(model, head, bench: Bench, rows) -> torch.Tensor:
    """Return the mean loss of some rows by transformers' model and the matrix of a head."""
    batch, gold = bench.store.batch("train", rows), bench.corpus.targets(bench.spec()["task"], "train")
    states = model(input_ids=batch.input_ids, attention_mask=batch.mask.long()).last_hidden_state
    gold, logits = [gold[row] for row in rows], states @ head.output.weight.T + head.output.bias
    if bench.kind == "regression":
        return functional.mse_loss(logits[:, 0, 0], torch.tensor(gold).float())
    if bench.kind == "classification":
        return functional.cross_entropy(logits[:, 0], torch.tensor(gold))
    words = [(logits[n, batch.first_pieces[n, m]], tag) for n, tags in enumerate(gold) for m, tag in enumerate(tags)]
    return functional.cross_entropy(torch.stack([one for one, _ in words]), torch.tensor([tag for _, tag in words]))


@pytest.mark.parametrize("phase", [ALL, TOP], ids=["all", "top"])
@pytest.mark.parametrize("name", ["amount", "names"])
def test_loss_and_gradients_are_those_of_transformers_model(name, phase, bench):
    run, trainer = trainer_of(bench, phase)
    objective = trainer.objective
    trainer.model.eval()
    batches = (run.rows[n : n + 4] for n in range(20))
    rows = next(rows for rows in batches if objective.drawn(rows)[0].context.task["id"] == name)
    task, drawn = objective.drawn(rows)
    found = objective.loss(trainer.model, rows, *trainer.loader("train", rows))
    model = AutoModel.from_pretrained(bench.encoder).eval()
    expected = written_out(model, run.head, bench, rows)
    expected = expected + 0.5 * written_out(model, task.head, bench.others[name], drawn)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    found.backward()
    head = task.head.output.weight.grad.clone()
    task.head.zero_grad()
    expected.backward()
    assert torch.allclose(head, task.head.output.weight.grad, atol=1e-6) and head.abs().max() > 1e-3
    theirs = {f"model.{key}": value.grad for key, value in model.named_parameters()}
    ours = {key: value.grad for key, value in trainer.encoder.named_parameters() if "encoder.layer.2" in key}
    assert len(ours) == 16
    for key, gradient in ours.items():
        assert torch.allclose(gradient, theirs[key], atol=1e-6), key
    shape = bench.others[name].store.batch("train", drawn).mask.shape
    assert objective.read == [shape[1]] * shape[0], "what an auxiliary batch computes is counted among the operations"


@pytest.mark.parametrize("power", [1.0, 0.5, 0.0])
def test_a_task_is_drawn_by_the_power_of_its_rows_and_each_row_equally_often(power, bench):
    """54 rows and 6: nine times, three times, or equally often; three standard deviations of 2,000 draws are 3.4 %."""
    _, trainer = trainer_of(bench, ALL | {"auxiliary": AUXILIARY | {"power": power}})
    batches = np.random.default_rng(0).integers(0, 24, (2000, 4))
    drawn = [trainer.objective.drawn(batch) for batch in batches]
    shares = Counter(task.context.task["id"] for task, _ in drawn)
    assert shares["names"] / 2000 == pytest.approx(6**power / (6**power + 54**power), abs=0.034)
    rows = Counter(row for task, chosen in drawn if task.context.task["id"] == "names" for row in chosen.tolist())
    assert sorted(rows) == list(range(6)) and max(rows.values()) < 1.5 * min(rows.values())
    again = trainer.objective.drawn(batches[0])
    assert again[0] is drawn[0][0] and np.array_equal(again[1], drawn[0][1])


def test_an_auxiliary_task_is_learned_by_encoder_and_head(bench):
    """With a large weight its loss falls; its head is trained and not kept, and its operations are counted."""
    heavy = ALL | {"epochs": 8, "auxiliary": {"tasks": ["amount"], "weight": 5.0}}
    run, trained = bench.train(bench.spec(heavy, auxiliary=[bench.auxiliary("amount")]))
    _, alone = bench.train(bench.spec(heavy | {"auxiliary": None}))
    ((task,),) = (objective.tasks for objective in run.objectives.values())
    ours, theirs = trained.cost["parameters"], alone.cost["parameters"]
    assert ours["total"] == theirs["total"] and ours["trained"] == theirs["trained"] + 33  # 32 weights and a bias
    assert set(trained.encoder) == set(alone.encoder) and trained.cost["flops"] > 1.5 * alone.cost["flops"]
    rows = np.arange(20)
    batch, stored = task.context.store.batch("train", rows), {}
    new = trainer_of(bench, ALL)[1].objective.tasks[0]
    fresh = AutoModel.from_pretrained(bench.encoder).eval()
    before = written_out(fresh, new.head, bench.others["amount"], rows).item()
    model = TaskModel(run.evaluator.encoder, task.head, "fp32").eval()
    assert task.supervised.loss(model, rows, batch, stored).item() < 0.5 * before


@pytest.mark.parametrize("k", [1, 2])
def test_cached_is_uncached_within_1e_5(bench, k):
    phase = ALL | {"train": ["head", {"top": k}], "rate": 1e-4, "head_rate": 1e-3}
    stored, computed = (bench.train(spec_of(bench, phase | more))[1] for more in ({}, {"boundary": None}))
    assert losses(stored) == pytest.approx(losses(computed), abs=1e-5)
    first, second = (one.predictions["test"].probabilities for one in (stored, computed))
    np.testing.assert_allclose(first, second, atol=1e-5)


@pytest.mark.parametrize("phase", [ALL | {"epochs": 3}, ALL | {"unfreeze": {}, "epochs": 2}], ids=["all", "gradual"])
def test_a_run_that_was_stopped_goes_on_with_its_auxiliary_heads(phase, bench, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SPACING", 0.0)
    spec = spec_of(bench, phase)
    whole, watch = bench.train(spec)[1], Stopwatch()
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        stop_after(patched, 2)
        train([bench.run(spec)], watch, Progress(tmp_path, spec, watch))
    watch = Stopwatch()
    found = train([bench.run(spec)], watch, Progress(tmp_path, spec, watch))[0]
    assert equal(tensors(found), tensors(whole)) and found.history == whole.history


def test_on_the_runs_own_dataset_no_row_trains_that_the_run_is_scored_on(bench):
    """The auxiliary task has labels, by which its subset would be drawn otherwise."""
    subset = {"rows": 12, "validation": 0.25}
    task = bench.spec()["task"]
    entry = {"task": task | {"id": "other"}, "data": bench.upstream["data"]}
    own = rows_of_all([{"task": task, "subset": subset}], bench.corpus)
    assert np.array_equal(auxiliary_rows(bench.spec() | {"subset": subset}, entry, bench.corpus), own["train"])
    assert len(own["train"]) == 9
    there, other = bench.others["amount"], bench.auxiliary("amount")
    rows = auxiliary_rows(bench.spec() | {"subset": subset}, other, there.corpus)
    assert len(rows) == 9
    read = rows_of_all([{"auxiliary": other["task"], "subset": subset}], there.corpus)
    assert set(read) == {"train"} and np.array_equal(read["train"], rows)


OTHER = """corpora: {other: {texts: [sentence], targets: {label: label}, synthetic: acceptability}}
tasks:
  other: {corpus: other, target: label, type: classification, metrics: [accuracy]}
"""
STRATEGY = "{{phases: [{{train: {}, auxiliary: {{tasks: [{}]}}}}]}}"


def planned(folder, train: str, tasks: str, **changes):
    """Plan the demo with a strategy that has auxiliary tasks."""
    (folder / "tasks.yaml").write_text(OTHER)
    strategies = f"  several: {STRATEGY.format(train, tasks)}\n"
    return plan_with(folder, strategies, **{"strategies": ["several"], "subsets": ["n100_d1"]} | changes)


def test_a_plan_says_what_is_read_of_which_rows(tmp_path):
    plan = planned(tmp_path, "[head, {top: 2}]", "acceptability, other")
    (job,) = plan.jobs["train"].values()
    (entry,) = job.spec["auxiliary"]
    assert entry["task"]["id"] == "other" and entry["data"] == plan.job("prepare", "other").digest
    assert entry["head"] == job.spec["head"]
    assert job.inputs["also_boundaries"] == ["results/features/minilm/other/joint/b4.json"]
    assert job.inputs["also_data"] == ["results/data/other/card.json"]
    assert Questions(plan).rows_read("minilm/other/joint") == canonical(
        [{"auxiliary": entry["task"], "subset": {"rows": 100}}]
    )


def test_coral_on_stored_states_asks_for_the_training_rows_of_its_target(tmp_path):
    """It draws from all of them; test rows alone were once extracted, and the run was refused."""
    task = "{base: acceptability, transfer_sets: [{task: other}]}"
    (tmp_path / "tasks.yaml").write_text(f"{OTHER}  more: {task}\n")
    near = "{phases: [{train: [head, {top: 1}], coral: {to: other}}]}"
    (tmp_path / "strategies.yaml").write_text(f"strategies:\n  near: {near}\n")
    wish = {"catalogues": [str(tmp_path)], "strategies": ["near"], "tasks": ["more"], "baselines": [], "seeds": [1]}
    plan = plan_of(**wish)
    (job,) = plan.jobs["train"].values()
    assert Questions(plan).rows_read("minilm/other/joint") == canonical(
        [{"subset": {}, "transfer": job.spec["also"][0]["task"]}]
    )
