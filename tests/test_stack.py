"""Heads on constant vectors, trained as a batch: each member's numbers are those that it has alone, to the bit."""

from collections import Counter

import numpy as np
import pandas
import pytest
import torch
from torch.nn.functional import cross_entropy, mse_loss

from thaw.compute_cost.stopwatch import Stopwatch
from thaw.data import corpus
from thaw.data.corpus import Corpus
from thaw.declarations.heads import HEAD_KINDS
from thaw.encoders.dropout import kept, noise
from thaw.heads.pooling import word_states
from thaw.heads.registry import build, example
from thaw.schema.head import HeadConfig
from thaw.training import training_run
from thaw.training.batched_heads import BatchedHeadTrainer, Product
from thaw.training.objectives import Supervised
from thaw.training.training_run import TrainingRun, train
from tiny_corpus import Bench, by_type

HEAD = {"train": ["head"], "head_rate": None, "epochs": 3, "batch_size": 5}
KINDS = {"linear": {}, "mean": {"pooling": "mean"}, "mlp": {"kind": "mlp", "options": {"size": 9}}}


benches = pytest.fixture(scope="module")(by_type)


def several(bench: Bench, head: dict, *settings: dict, seeds=(1, 2, 3)) -> list[dict]:
    """Return the specs of runs that differ in seed and settings."""
    return [bench.spec(HEAD | more, head=head, seed=seed) for more in settings for seed in seeds]


def together(bench: Bench, specs: list[dict]) -> list:
    """Train runs side by side."""
    return train([TrainingRun(spec, bench.inputs()) for spec in specs], Stopwatch())


def counted(monkeypatch, counts: Counter, owner, name: str) -> None:
    """Count the calls of a function of a module or class."""
    function = getattr(owner, name)

    def counting(*arguments):
        counts[name] += 1
        return function(*arguments)

    monkeypatch.setattr(owner, name, counting)


def same(one, other) -> bool:
    """Tell whether two runs left the same, to the bit."""
    ours, theirs = (
        {name: value.numpy().tobytes() for name, value in found.head.state_dict().items()} for found in (one, other)
    )
    said = [
        [np.asarray(a.probabilities, float).tobytes() for a in found.predictions.values()] for found in (one, other)
    ]
    return (
        ours == theirs
        and said[0] == said[1]
        and repr(one.history) == repr(other.history)
        and one.outcome == other.outcome
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("head", KINDS.values(), ids=KINDS)
def test_many_are_what_each_is_alone(benches, kind, head, threads):
    bench = benches[kind]
    specs = several(bench, head, {"rate": 1e-2}, {"rate": 1e-3, "weight_decay": 0.1, "warmup": 0.5})
    runs = [TrainingRun(spec, bench.inputs()) for spec in specs]
    torch.set_num_threads(threads)
    many = train(runs, Stopwatch())
    alone = [train([TrainingRun(spec, bench.inputs())], Stopwatch())[0] for spec in specs]
    torch.set_num_threads(1)
    assert isinstance(runs[0].evaluator, BatchedHeadTrainer) and runs[0].evaluator is runs[5].evaluator
    assert all(same(one, other) for one, other in zip(many, alone, strict=True))
    assert not same(many[0], many[1]) and not same(many[0], many[3])
    assert [found.cost for found in many] == [found.cost for found in alone]


@pytest.mark.parametrize("kind", ["classification", "regression", "spans"])
def test_what_runs_of_a_job_share_is_worked_out_once_and_stays_as_it_was(benches, kind, tmp_path, monkeypatch):
    bench, counts = benches[kind], Counter()
    counted(monkeypatch, counts, Corpus, "_encoded")
    counted(monkeypatch, counts, corpus, "_divide")
    counted(monkeypatch, counts, training_run, "inference_cost")
    spec = bench.spec(HEAD, head={})
    del spec["seed"]
    bench.step("fit_heads", spec, tmp_path, "--seeds", 1, 2, 3, "--cores", 1)
    assert counts == {"_encoded": 3, "_divide": 1, "inference_cost": 1}, "targets are encoded once for each split"
    fresh, (run, _) = Corpus(bench.corpus.folder), bench.train(bench.spec(HEAD))
    for split in bench.corpus.splits:
        kept = bench.corpus.targets(run.context.task, split)
        assert list(kept) == list(fresh.targets(run.context.task, split))
    with pytest.raises(ValueError, match="read-only"):
        run.rows[0] = 1
    if kind != "spans":
        with pytest.raises(ValueError, match="read-only"):
            run.gold[0] = 1


@pytest.mark.parametrize("kind", ["classification", "regression", "spans"])
@pytest.mark.parametrize("step", ["fit_heads", "train"])
def test_training_reads_no_text_of_the_dataset(benches, step, kind, tmp_path, monkeypatch):
    bench, read, read_parquet = benches[kind], set(), pandas.read_parquet

    def reading(path, columns=None):
        read.update((path.name, name) for name in columns or ["every column"])
        return read_parquet(path, columns=columns)

    monkeypatch.setattr(pandas, "read_parquet", reading)
    spec = bench.spec(HEAD, head={})
    seeds = ["--seeds", spec.pop("seed")] if step == "fit_heads" else []
    bench.step(step, spec, tmp_path, *seeds)
    target, scored = spec["task"]["target"], {("validation.parquet", "row"), ("test.parquet", "row")}
    if step == "fit_heads":
        scored |= {("train.parquet", "row")}  # of rows that folds left out, the predictions are kept
    assert read == scored | {("test.parquet", "seen")} | {(f"{split}.parquet", target) for split in bench.corpus.splits}


def test_one_that_diverges_or_stops_leaves_the_others_as_they_are(benches):
    bench = benches["classification"]
    rules = {"patience": 1, "pick": "best", "epochs": 6}
    specs = several(bench, {}, rules | {"rate": 1e-2}, rules | {"rate": 9.0, "weight_decay": 1e30}, seeds=(1, 4))
    many = together(bench, specs)
    alone = [together(bench, [spec])[0] for spec in specs]
    assert all(same(one, other) for one, other in zip(many, alone, strict=True))
    assert [("diverged" in found.outcome["flags"]) for found in many] == [False, False, True, True]
    assert len({len(found.history) for found in many}) > 1, "they ended at different times"


def test_a_run_that_stops_early_keeps_the_weights_of_then(benches):
    bench = benches["classification"]
    specs = several(bench, {}, {"rate": 1e-2, "patience": 1, "epochs": 9})
    many = together(bench, specs)
    assert len({found.outcome["chosen"]["epochs"][0] for found in many}) > 1
    assert all(same(one, together(bench, [spec])[0]) for one, spec in zip(many, specs, strict=True))


def test_a_head_that_learns_below_its_vectors_is_not_stacked(benches):
    bench = benches["classification"]
    for head in ({"pooling": "attention"}, {"kind": "bilstm", "options": {"size": 4}}):
        run = bench.train(bench.spec(HEAD | {"epochs": 1, "rate": 1e-3}, head=head))[0]
        assert not run.head.constant_vectors and not isinstance(run.evaluator, BatchedHeadTrainer)


@pytest.mark.parametrize("kind", HEAD_KINDS)
def test_the_plan_knows_which_heads_are_fixed(kind):
    for more in (
        {},
        {"pooling": "attention"},
        {"layers": {"combine": "mix"}},
        {"layers": {"combine": "mean", "last": 2}},
    ):
        if "pooling" in more and not HEAD_KINDS[kind].pools:
            continue
        task = HEAD_KINDS[kind].task_types[0]
        separate_encoding = task.startswith("pair_")
        more = {
            f"separate_{key}" if separate_encoding and key == "pooling" else key: value for key, value in more.items()
        }
        entry = HeadConfig(kind=kind, **more)
        head = build(entry, 8, 2, task, separate_encoding, 3)
        assert entry.constant_vectors == head.constant_vectors, more
        if head.constant_vectors:
            states, batch = example(8, head.words, separate_encoding)
            assert not head.vectors(states, batch).requires_grad, more


def test_products_have_the_gradients_of_torchs():
    left, right = torch.randn(3, 4, 5, requires_grad=True), torch.randn(3, 2, 5, requires_grad=True)
    weights = torch.randn(3, 4, 2)
    ours = torch.autograd.grad((Product.apply(left, right) * weights).sum(), [left, right])
    theirs = torch.autograd.grad((torch.bmm(left, right.mT) * weights).sum(), [left, right])
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
        assert one.is_contiguous(), "a fused optimizer reads gradients as they lie in memory"


def test_a_device_gets_the_dropout_of_the_cpu():
    """There what is kept is sent as bools and scaled; the random numbers and the bits are the same."""
    for share in (0.1, 0.3, 0.5):
        sources = [[np.random.SFC64(seed) for seed in (1, 2)] for _ in range(2)]
        found = kept((2, 7, 9), share, sources[0]) * (1 / (1 - share))
        assert torch.equal(found, noise((2, 7, 9), share, sources[1])) and found.dtype == torch.float32


@pytest.mark.parametrize("size", [(32, 384, 1), (32, 384, 2), (8, 300, 3), (7, 37, 5), (32, 96, 300)])
def test_a_product_does_not_depend_on_its_neighbours(size):
    count, read, made = size
    left, right = torch.randn(6, count, read), torch.randn(6, made, read)
    many = Product.apply(left, right)
    back = Product.apply(many.mT, left.mT)
    for place in range(6):
        one = left[place : place + 1].clone(), right[place : place + 1].clone()
        assert torch.equal(many[place], Product.apply(*one)[0])
        assert torch.equal(back[place], Product.apply(many[place : place + 1].clone().mT, one[0].mT)[0])


@pytest.mark.parametrize("kind", ["classification", "regression", "spans"])
def test_it_learns_what_a_plain_loop_of_torch_learns(benches, kind):
    """The batch is the whole of train, so that no order has a part in it, and there is no dropout."""
    bench = benches[kind]
    phase = HEAD | {"rate": 1e-2, "epochs": 5, "batch_size": 24, "schedule": "constant", "warmup": 0, "clip": 0.5}
    run = TrainingRun(bench.spec(phase, head={"dropout": 0.0}), bench.inputs())
    layer = torch.nn.Linear(32, run.head.outputs)
    layer.load_state_dict(run.head.output.state_dict())
    (found,) = train([run], Stopwatch())
    batch = bench.store.batch("train", range(24))
    states = bench.store.states(3, "train").gather(range(24), batch)
    targets = Supervised(run.gold).targets(run.head, run.rows, batch).flatten()
    vectors = word_states(states, batch).flatten(0, 1)[targets >= 0] if kind == "spans" else states[:, 0]
    targets = targets[targets >= 0] if kind == "spans" else targets
    decays = [{"params": [layer.weight], "weight_decay": 0.01}, {"params": [layer.bias], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(decays, lr=1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        logits = layer(vectors)
        loss = mse_loss(logits[:, 0], targets.float()) if kind == "regression" else cross_entropy(logits, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 0.5)
        optimizer.step()
    assert found.history[-1]["loss"] < found.history[0]["loss"]
    for name, value in layer.state_dict().items():
        torch.testing.assert_close(found.head.output.state_dict()[name], value, atol=1e-6, rtol=1e-4)
