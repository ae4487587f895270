"""SetFit's contrastive phase: the loss by hand, what it brings together, and what it refuses."""

import pytest
import torch
from torch.nn import functional

from thaw.encoders.transformers import Encoder
from thaw.papers.contrastive import pair_loss
from thaw.training.training_run import TrainingRun
from tiny_corpus import small_bert

CONTRAST = {"train": ["layers"], "contrastive": {}, "updates": 30, "rate": 1e-3, "boundary": 0}
HEAD = {"train": ["head"], "updates": 10, "rate": 1e-2, "boundary": 0}

bench = pytest.fixture(scope="module")(small_bert)


def test_the_loss_by_hand():
    vectors = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]])  # cosines 1, 0 and 0
    labels = torch.tensor([0, 0, 1])
    assert pair_loss(vectors, labels).item() == 0.0
    crossed = torch.tensor([0, 1, 0])  # 1 and 2: (1 - 0)^2; 1 and 3: (0 - 1)^2; 2 and 3: 0
    assert pair_loss(vectors, crossed).item() == pytest.approx((1 + (1 + 0) / 2) / 2)
    assert pair_loss(vectors, torch.tensor([1, 1, 1])).item() == pytest.approx(2 / 3)  # of one kind alone
    assert pair_loss(vectors[:1], labels[:1]).item() == 0.0


def gap(encoder: Encoder, run: TrainingRun) -> float:
    """Return by how much the mean cosine of training texts of one label is above that of texts of two."""
    with torch.no_grad():
        states = [encoder(run.context.store.batch("train", [row]))[0, 0] for row in run.rows]
    vectors, labels = (
        functional.normalize(torch.stack(states), dim=1),
        torch.tensor([run.gold[row] for row in run.rows]),
    )
    alike, same = vectors @ vectors.T, labels[:, None] == labels
    return (alike[same & ~torch.eye(len(labels), dtype=torch.bool)].mean() - alike[~same].mean()).item()


def test_texts_of_one_label_come_together_and_a_head_trains_on_them(bench):
    spec = bench.spec(CONTRAST, HEAD)
    run, trained = bench.train(spec)
    plain = Encoder.load(bench.encoder)
    before = gap(plain, run)
    plain.put(trained.encoder)
    assert gap(plain, run) > before + 0.3
    again = bench.train(spec)[1]
    assert all(torch.equal(value, again.encoder[name]) for name, value in trained.encoder.items())
    start = bench.run(spec).head.state_dict()
    assert all(not torch.equal(value, start[name]) for name, value in trained.head.state_dict().items())
