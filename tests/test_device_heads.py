"""Every head, loss, pooling and metric on the pretended CUDA device (tests/pretended.py): training and predicting.

B examples, S sequences (B; 2B where the texts of pairs are read separately), T tokens, W words, d width, C outputs.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from pretended import OnCuda, pretended
from test_contract_head import OUTPUTS, batch_of, each_once, outputs_of, quick
from thaw.adaptation.optimizers import optimizer
from thaw.declarations.heads import HEAD_KINDS
from thaw.declarations.task_types import METRICS_OF_TYPE
from thaw.evaluation.answers import Answer
from thaw.evaluation.metrics import METRICS, score
from thaw.heads.pooling import POOLINGS
from thaw.heads.registry import build
from thaw.schema.head import HeadConfig
from thaw.schema.phases import PhaseConfig
from thaw.training.model_trainer import ModelTrainer
from thaw.training.objectives import Supervised
from thaw.training.task_model import BatchLoader, TaskModel

WIDTH, LENGTHS = 6, [2, 5, 3, 4]
KINDS = [(kind, *case) for kind in HEAD_KINDS for case in each_once(HeadConfig(kind=kind))]
ROWS = np.arange(len(LENGTHS))


class OneBatch(BatchLoader):
    """Feeds one made-up batch, from the CPU, as a store would: states at boundaries 0 to 2."""

    def __init__(self, head, device):
        states, batch = batch_of(head, LENGTHS)
        made = {n: states + n for n in range(3)}
        store = SimpleNamespace(
            batch=lambda split, rows: batch,
            states=lambda n, split: SimpleNamespace(gather=lambda rows, batch: made[n]),
            sizes=lambda split: np.array(LENGTHS),
            lengths=lambda split: np.array(LENGTHS),
        )
        super().__init__(store, [0, 1, 2], device)


def gold_of(head) -> list:
    """Return the encoded targets of the rows, as a corpus gives them."""
    if head.words:
        return [[i % OUTPUTS, (i + 1) % OUTPUTS, 0] for i in range(len(ROWS))]
    if head.label_sets:
        return (np.arange(len(ROWS))[:, None] + np.arange(OUTPUTS)) % 2
    if head.extracts:
        return [[(1, "a" * (size - 1))] if size > 2 else [] for size in LENGTHS]
    return np.arange(len(ROWS)) / 2 if head.scores else np.arange(len(ROWS)) % OUTPUTS


def trained(entry: HeadConfig, task_type: str, separate_encoding: bool, **phase):
    """Train a head for two updates on the pretended device; see `trained_on`."""
    with pretended() as device:
        return trained_on(device, entry, task_type, separate_encoding, **phase)


def ready(device, entry: HeadConfig, task_type: str, separate_encoding: bool):
    """Return a new head on a device, what trains it there by the code that a run uses, and its optimizer."""
    head = build(entry, WIDTH, outputs_of(task_type), task_type, separate_encoding, layers=2)
    head.set_labels(["O", "B-PER", "I-PER"])
    gold = gold_of(head)
    head.init_from_targets(gold)
    model = TaskModel(None, head.to(device), "fp32")
    single = ModelTrainer(model, OneBatch(head, device), ROWS, Supervised(gold))
    single.begin(single.batches([(1, "order")], len(ROWS)))
    return head, single


def update(single: ModelTrainer, made):
    """Make one update, and return the losses."""
    losses = single.losses(ROWS)
    made.zero_grad()
    single.backward(losses)
    single.clip(1.0)
    made.step()
    return losses


def trained_on(device, entry: HeadConfig, task_type: str, separate_encoding: bool, **phase):
    """Train a head for two updates on a device; return it, the last losses, and its predictions."""
    phase = PhaseConfig(train=["head"], **phase)
    head, single = ready(device, entry, task_type, separate_encoding)
    named = single.components(["head"])[0]["head"]
    made = optimizer(phase.optimizer, [{"params": [p for _, p in named], "lr": 0.1, "weight_decay": 0.0}])
    for _ in range(2):
        losses = update(single, made)
    words = [3] * len(ROWS) if head.words else None
    return head, losses, single.model.predict(single.loader, "train", ROWS, words)


@pytest.mark.parametrize("kind, task_type, separate_encoding", KINDS)
def test_every_head_with_every_task(kind, task_type, separate_encoding):
    head, losses, predictions = trained(quick(HeadConfig(kind=kind)), task_type, separate_encoding)
    assert isinstance(losses, OnCuda) and losses.isfinite().all() and all(p.is_cuda for p in head.parameters())
    assert all(parameter.grad is not None and parameter.grad.is_cuda for parameter in head.parameters())
    assert all(buffer.is_cuda for buffer in head.buffers())
    assert len(predictions.values) == len(ROWS)
    values = [Answer("a", one[0][2]) for one in predictions.values] if head.extracts else predictions.values
    check_metrics(task_type, gold_of(head), values)


def check_metrics(task_type: str, gold, values) -> None:
    """Score predictions by every metric of a type of task: what comes off the device is what metrics read."""
    labels = None if "regression" in task_type else ["O", "B-PER", "I-PER"]
    metrics = [name for name in METRICS_OF_TYPE[task_type] if name != "f1"]  # f1 is for two classes
    task = {"id": "t", "type": task_type, "metrics": metrics}
    assert set(score(task, gold, values, labels)) == set(metrics)


def test_every_metric_is_tried():
    assert {name for names in METRICS_OF_TYPE.values() for name in names} >= set(METRICS)


@pytest.mark.parametrize("separate_encoding", [False, True])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_pooling(pooling, separate_encoding):
    entry = HeadConfig(kind="linear", **({"separate_pooling" if separate_encoding else "pooling": pooling}))
    trained(entry, "pair_classification", separate_encoding)


@pytest.mark.parametrize(
    "layers",
    [
        {"combine": "mix"},
        {"combine": "mix", "norm": True, "dropout": 0.5},
        {"combine": "attention", "norm": True, "dropout": 0.5},
        *({"combine": c, "last": 2} for c in ("mean", "sum", "concat")),
        {"combine": "ladder", "width": 4, "heads": 2, "dropout": 0.1},
        {"combine": "ladder", "width": 4, "heads": 2, "norm": True, "gates": "fixed", "every": 2},
    ],
    ids=str,
)
def test_every_combination_of_layers(layers):
    trained(HeadConfig(kind="linear", layers=layers), "classification", False)


def test_bert_adam():
    trained(HeadConfig(kind="bilstm_crf", options={"size": 8}), "spans", False, optimizer="bert_adam")
