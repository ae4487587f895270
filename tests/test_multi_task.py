"""Several tasks in turn on one encoder: against runs of one task, a plain loop, and the formulas of sampling."""

import copy
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoModel

from test_plain_loop import undropped
from test_progress import Stopped, killed_and_finished, stop_after
from thaw.compute_cost.stopwatch import Stopwatch
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.layout import WRITTEN
from thaw.schema.multi_task import MultiTaskConfig, of_task
from thaw.training import progress
from thaw.training.multi_task_run import MultiTaskRun, TaskOrder
from thaw.training.progress import Progress
from thaw.training.training_run import TrainingRun, train
from tiny_corpus import Bench, tiny_corpus
from tiny_corpus import rows as examples
from trained import equal, losses, tensors

ALL = {"train": ["all"], "epochs": 3}
TOP = {"train": ["head", {"top": 1}], "epochs": 3}
OTHERS = ("amount", "names")
ROWS = {"t": 24, "amount": 54, "names": 6}
UPDATES = {"t": 6, "amount": 14, "names": 2}  # of an epoch, in batches of four


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    """A classification of 24 rows, a regression of 54 and a tagging of 6, read by one BERT without dropout."""
    benches = []
    for name, kind in zip(ROWS, ("classification", "regression", "spans"), strict=True):
        folder = tmp_path_factory.mktemp(name)
        corpus = tiny_corpus(folder / "data", kind, train=examples(kind, ROWS[name], 1))
        benches.append(Bench(folder, undropped, corpus, kind))
    first, *others = benches
    first.others |= dict(zip(OTHERS, others, strict=True))
    return first


def spec_of(bench: Bench, *phases: dict, others=OTHERS, **several) -> dict:
    """Return the spec of a training of several tasks."""
    return bench.spec(*phases, multi_task=several, auxiliary=[bench.auxiliary(name) for name in others])


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


def run_of(bench: Bench, spec: dict) -> MultiTaskRun:
    torch.set_num_threads(1)
    inputs = bench.inputs(spec=spec)
    entries = {entry["task"]["id"]: of_task(spec, entry) for entry in spec["auxiliary"]}
    return MultiTaskRun(spec, inputs, [TrainingRun(own, inputs.auxiliary[name]) for name, own in entries.items()])


def trained(bench: Bench, spec: dict) -> dict:
    """Train all tasks; return what the run of each leaves."""
    run = run_of(bench, spec)
    return dict(zip(run.by_task, train([run], Stopwatch()), strict=False))


def alone(bench: Bench, name: str, *phases: dict):
    """Train a task alone, as the run that it would be without the others; return what it leaves."""
    if name == "t":
        return bench.train(bench.spec(*phases))[1]
    spec = bench.spec(*phases, auxiliary=[bench.auxiliary(name)])
    inputs = bench.inputs(spec=spec).auxiliary[name]
    return train([TrainingRun(of_task(spec, spec["auxiliary"][0]), inputs)], Stopwatch())[0]


WAYS = {
    "all": [ALL],
    "top": [TOP],
    "gradual": [ALL | {"unfreeze": {}, "epochs": 2}],
    "head, then all": [{"train": ["head"], "epochs": 2}, ALL | {"layer_decay": 0.8}],
    "updates, the best": [TOP | {"epochs": None, "updates": 20, "judge": 4, "pick": "best"}],
    "lora": [{"train": ["head"], "epochs": 2, "insert": {"kind": "lora"}}],
    "the first Adam": [ALL | {"optimizer": "bert_adam", "rate": 2e-4, "l2_to_start": 0.1}],
}


def phases_of(way: str) -> list[dict]:
    return [{key: value for key, value in phase.items() if value is not None} for phase in WAYS[way]]


@pytest.mark.parametrize("sampling", ["size", "even"])
@pytest.mark.parametrize("way", WAYS)
def test_a_mixture_of_one_task_is_its_run_to_the_bit(way, sampling, bench):
    phases = phases_of(way)
    found = trained(bench, spec_of(bench, *phases, others=(), sampling=sampling))["t"]
    single = alone(bench, "t", *phases)
    assert equal(tensors(found), tensors(single)) and found.history == single.history
    assert found.outcome == single.outcome
    single.cost["share_of_training"] = 1.0
    assert found.cost == single.cost


def test_joint_heads_on_a_frozen_encoder_are_separate_heads(bench):
    """In an epoch by size each task has the batches that it has alone; no rate changes from update to update."""
    phase = {"train": ["head"], "epochs": 3, "schedule": "constant", "warmup": 0.0}
    together = trained(bench, spec_of(bench, phase))
    for name, found in together.items():
        assert equal(tensors(found), tensors(alone(bench, name, phase))), name
        assert found.outcome["scores"] == alone(bench, name, phase).outcome["scores"]


def order_of(epochs: int = 4, **several) -> TaskOrder:
    several = MultiTaskConfig(tasks=list(ROWS), **several)
    return TaskOrder(several, np.array(list(ROWS.values())), np.array(list(UPDATES.values())), epochs)


def test_by_size_each_batch_is_there_once_an_epoch_and_tasks_are_mixed():
    order = order_of()
    first, second = (order.of_epoch(1, 1, epoch).tolist() for epoch in (1, 2))
    assert Counter(first) == Counter(second) == {0: 6, 1: 14, 2: 2} and first != second
    assert first != sorted(first) and first == order.of_epoch(1, 1, 1).tolist()
    assert first != order.of_epoch(2, 1, 1).tolist() != order.of_epoch(1, 2, 1).tolist()


@pytest.mark.parametrize(
    ("several", "epoch", "power"),
    [
        ({"sampling": "even"}, 1, 0.0),
        ({"sampling": "power"}, 1, 0.5),
        ({"sampling": "power", "power": 0.75}, 3, 0.75),
        ({"sampling": "annealed"}, 1, 1.0),
        ({"sampling": "annealed"}, 3, 1 - 0.8 * 2 / 4),
        ({"sampling": "annealed"}, 5, 0.2),
    ],
)
def test_tasks_are_drawn_by_the_formula(several, epoch, power):
    """24, 54 and 6 rows; four standard deviations of 4,000 draws are at most 3.2 %."""
    total = 24**power + 54**power + 6**power
    expected = [24**power / total, 54**power / total, 6**power / total]
    order = order_of(5, **several)
    assert order.shares(epoch).tolist() == pytest.approx(expected)
    order.batches = np.array([4000, 0, 0])
    found = np.bincount(order.of_epoch(3, 1, epoch), minlength=3) / 4000
    assert found.tolist() == pytest.approx(expected, abs=0.032)


@pytest.mark.parametrize("sampling", ["size", "even"])
def test_a_task_goes_through_its_rows_in_the_orders_that_it_has_alone(sampling, bench):
    """Of an order that an epoch did not finish the next epoch has the rest."""
    run = run_of(bench, spec_of(bench, ALL, sampling=sampling))
    trainer = run.trainable(_state(run), run.stages[0][0], [run])
    found: dict[int, list] = {0: [], 1: [], 2: []}
    for epoch in (1, 2, 3):
        for place, positions in trainer.batches([(1, f"order:1:{epoch}")], 4):
            found[place].append(positions.tolist())
    for place, part in enumerate(trainer.each):
        own = [batch.tolist() for n in range(1, 40) for batch in part.batches([(1, f"order:1:{n}")], 4)]
        assert found[place] == own[: len(found[place])] and found[place]
    assert len(sum(found.values(), [])) == 3 * 22


def _state(run, number: int = 1):
    return SimpleNamespace(phase=run.phases[number - 1], number=number)


@pytest.mark.parametrize("phase", [ALL, TOP], ids=["all", "top"])
def test_ten_updates_are_those_of_a_plain_loop(phase, bench):
    """Transformers' model, a matrix for each task and torch's AdamW: each update one task's loss, idle heads stay."""
    rates = {"rate": 1e-3, "head_rate": 5e-3, "schedule": "constant", "warmup": 0.0, "weight_decay": 0.01, "clip": 1.0}
    said = {key: value for key, value in (phase | rates | {"updates": 10}).items() if key != "epochs"}
    spec = spec_of(bench, said, sampling="even")
    for entry in (spec, *spec["auxiliary"]):
        entry["head"] = {"kind": "linear", "dropout": 0.0}
    run = run_of(bench, spec)
    model, heads = AutoModel.from_pretrained(bench.encoder).train(), copy.deepcopy(run.heads)
    model.requires_grad_(phase is ALL)
    model.encoder.layer[2].requires_grad_(True)
    named = [(1e-3, value) for value in model.parameters() if value.requires_grad]
    named += [(5e-3, value) for value in heads.parameters()]
    groups = [{"params": [one], "lr": rate, "weight_decay": 0.01 if one.ndim > 1 else 0.0} for rate, one in named]
    plain, expected = torch.optim.AdamW(groups), []
    trainer = run.trainable(_state(run), run.stages[0][0], [run])
    drawn = trainer.batches([(1, "order:1:1")], 4)[:10]
    assert len({place for place, _ in drawn}) == 3
    for place, positions in drawn:
        name = list(ROWS)[place]
        where = bench if name == "t" else bench.others[name]
        loss = written_out(model, heads[place], where, run.by_task[name].rows[positions])
        plain.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([value for _, value in named if value.grad is not None], 1.0)
        plain.step()
        expected.append(loss.item())
    found = trained(bench, spec)
    assert losses(found["t"]) == pytest.approx(expected, rel=1e-5)
    for head, left in zip(heads, found.values(), strict=True):
        for key, value in left.head.state_dict().items():
            assert torch.allclose(value, head.state_dict()[key], atol=1e-5), key
        matrix = "encoder.layer.2.output.dense.weight"
        assert torch.allclose(left.encoder[matrix], model.get_parameter(matrix), atol=1e-5)


@pytest.mark.parametrize("way", ["all", "gradual", "head, then all", "updates, the best"])
@pytest.mark.parametrize("count", [1, 3])
def test_what_was_stopped_ends_with_the_bits_of_what_was_not(way, count, bench, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SPACING", 0.0)
    spec = spec_of(bench, *phases_of(way), sampling="even")
    whole, watch = trained(bench, spec), Stopwatch()
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        stop_after(patched, count)
        train([run_of(bench, spec)], watch, Progress(tmp_path, spec, watch))
    watch, run = Stopwatch(), run_of(bench, spec)
    again = dict(zip(run.by_task, train([run], watch, Progress(tmp_path, spec, watch)), strict=True))
    for name, left in again.items():
        assert equal(tensors(left), tensors(whole[name])) and left.history == whole[name].history, name
        assert left.outcome == whole[name].outcome and left.cost == whole[name].cost, name


def test_the_epoch_of_the_best_mean_is_kept_and_each_task_notes_its_own_scores(bench):
    """Costs are shared by the tokens of what was drawn."""
    phase = TOP | {"epochs": 4, "pick": "best", "rate": 3e-3}
    found = trained(bench, spec_of(bench, phase))
    scored = {
        name: [row["validation"] for row in left.history if row["validation"] is not None]
        for name, left in found.items()
    }
    means = np.mean(list(scored.values()), axis=0)
    assert len(means) == 4 and "tasks" not in found["t"].history[0]
    for left in found.values():
        assert left.outcome["chosen"]["epochs"] == [int(means.argmax()) + 1]
    assert scored["t"] != scored["amount"]
    shares = {name: left.cost["share_of_training"] for name, left in found.items()}
    tokens = {"t": bench.store, **{name: bench.others[name].store for name in OTHERS}}
    read = {name: store.lengths("train").sum() for name, store in tokens.items()}
    assert shares == pytest.approx({name: count / sum(read.values()) for name, count in read.items()})
    whole = 4 * sum(read.values())
    assert [left.cost["tokens"] for left in found.values()] == pytest.approx([4 * one for one in read.values()], abs=1)
    assert whole == pytest.approx(sum(left.cost["tokens"] for left in found.values()), abs=2)


def test_a_task_that_is_left_out_trains_no_encoder(bench):
    """With own: left_out the first task has no update: the same encoder comes of the others alone."""
    phase = ALL | {"schedule": "constant", "warmup": 0.0}
    left = trained(bench, spec_of(bench, phase, own="left_out"))
    assert set(left) == {"t"}
    fresh = bench.run(bench.spec(phase)).head.state_dict()
    assert all(torch.equal(value, fresh[key]) for key, value in left["t"].head.state_dict().items())
    run = run_of(bench, spec_of(bench, phase, own="left_out"))
    order = run._order(1)
    assert Counter(order.of_epoch(1, 1, 1).tolist()) == {1: 14, 2: 2}
    assert left["t"].cost["share_of_training"] == 1.0 and left["t"].history[0]["loss"] > 0


def test_a_task_that_is_added_is_trained_as_a_member(bench):
    """Its run alone is left: the same bits, with all of the cost."""
    member, added = (trained(bench, spec_of(bench, TOP, own=own)) for own in ("member", "added"))
    assert set(added) == {"t"} and equal(tensors(added["t"]), tensors(member["t"]))
    assert added["t"].cost["share_of_training"] == 1.0 > member["t"].cost["share_of_training"]


def test_the_step_writes_a_run_for_each_task(bench, tmp_path):
    """The runs of other tasks are files of the training's own folder, under specs of their own."""
    spec = spec_of(bench, TOP) | {"keep": True}
    lead = bench.step("train", spec, tmp_path / "lead")
    expected, record = trained(bench, spec), read_json(lead / "metrics.json")
    assert record["spec"] == spec and record["scores"] == expected["t"].outcome["scores"]
    other = bench.others["amount"]
    own = other.spec(TOP, multi_task={"run": record["digest"]}, keep=True) | {"encoder": bench.upstream["encoder"]}
    own["task"] |= {"id": "amount"}
    run = other.step("train", own, tmp_path / "run", "--need", "multi_task", lead / "metrics.json")
    found = read_json(run / "metrics.json")
    assert found["spec"] == own and found["scores"] == expected["amount"].outcome["scores"]
    assert {file.name for file in run.iterdir()} == {*WRITTEN["train"], "metrics.json", "encoder.safetensors"}
    assert (run / "encoder.safetensors").samefile(lead / "encoder.safetensors")
    assert equal(load_file(run / "head.safetensors"), dict(expected["amount"].head.state_dict()))
    cost = read_json(run / "cost.json")
    assert cost["runs_in_job"] == 3 and cost["share_of_training"] == expected["amount"].cost["share_of_training"]
    (lead / "tasks" / "amount" / "history.csv").unlink()
    with pytest.raises(UserError, match="history.csv is missing; delete .*metrics.json and run the workflow again"):
        other.step("train", own, tmp_path / "run", "--need", "multi_task", lead / "metrics.json")


def test_a_training_goes_on_after_one_of_the_same_tasks_with_all_their_heads(bench, tmp_path):
    """With no more than rates of 0 every task answers as before."""
    lead = bench.step("train", spec_of(bench, TOP) | {"keep": True}, tmp_path / "lead")
    before = read_json(lead / "metrics.json")
    still = TOP | {"epochs": 1, "rate": 1e-20, "head_rate": 1e-20, "weight_decay": 0.0}
    spec = spec_of(bench, still) | {"after": {"run": before["digest"], "epoch": "last"}, "keep": True}
    after = bench.step("train", spec, tmp_path / "after", "--need", "start", lead / "metrics.json")
    assert read_json(after / "metrics.json")["scores"] == before["scores"]
    for name in OTHERS:
        first, second = (read_json(folder / "tasks" / name / "metrics.json")["scores"] for folder in (lead, after))
        assert first == second


def test_a_killed_training_goes_on_and_writes_the_same_bytes_for_each_task(bench, tmp_path):
    spec = spec_of(bench, ALL | {"epochs": 10}, sampling="even")
    killed_and_finished(bench, spec, tmp_path)
    bench.step("train", spec, tmp_path / "whole")
    for folder in ("", *(f"tasks/{name}" for name in OTHERS)):
        for name in ("metrics.json", "history.csv", "head.safetensors", "predictions.parquet"):
            found, expected = (tmp_path / made / folder / name for made in ("run", "whole"))
            assert found.read_bytes() == expected.read_bytes(), found
