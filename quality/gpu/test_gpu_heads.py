"""Heads on a card: every kind trains, numbers are the CPU's, and no update waits for the card.

The numbers in the names are those of the list of smoke tests.
"""

import copy

import numpy as np
import pytest
import torch
from cards import card, device
from sklearn.linear_model import LogisticRegression, Ridge
from torch import nn

from test_contract_head import EXAMPLES, each_once, quick, ready, trained_on
from test_convex import objective, problem, standardised
from thaw.declarations.heads import HEAD_KINDS
from thaw.encoders.dropout import noise
from thaw.heads.bilstm import PackedBiLstm
from thaw.heads.convex import fit_classes, fit_scores
from thaw.schema.head import HeadConfig
from thaw.training.batched_heads import BatchedDropout, BatchedLayers

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "kind, task_type, apart", [(kind, *case) for kind in HEAD_KINDS for case in each_once(HeadConfig(kind=kind))]
)
def test_1_every_head_with_every_task(kind, task_type, apart, device):
    head, losses, predictions = trained_on(device, quick(HeadConfig(kind=kind)), task_type, apart)
    assert losses.device.type == device.type and losses.isfinite().all() and len(predictions.values) == EXAMPLES
    assert all(parameter.grad is not None for parameter in head.parameters())


def stepped(layers: BatchedLayers, vectors: torch.Tensor) -> list[torch.Tensor]:
    """Return what layers give and the gradient of their weights, as one update has them."""
    given = layers(vectors)
    given.square().sum().backward()
    return [given.detach(), layers.weight.grad]


@pytest.mark.parametrize("outputs", [1, 2, 3, 17])
def test_7_a_stack_of_one_has_the_bits_of_its_place_among_twenty(outputs, device):
    torch.manual_seed(0)
    members = [nn.Linear(48, outputs) for _ in range(20)]
    vectors = torch.randn(20, 33, 48).to(device)
    together = stepped(BatchedLayers(copy.deepcopy(members)).to(device), vectors)
    for place in (0, 7, 19):
        alone = stepped(BatchedLayers([copy.deepcopy(members[place])]).to(device), vectors[place : place + 1])
        assert all(torch.equal(one[0], many[place]) for one, many in zip(alone, together, strict=True))


def test_8_dropout_of_heads_is_the_cpus(device):
    layer = BatchedDropout(0.3).train()
    layer.sources = [np.random.SFC64(seed) for seed in (1, 2)]
    due = noise((2, 5, 7), 0.3, [np.random.SFC64(seed) for seed in (1, 2)])
    assert torch.equal(layer(torch.ones(2, 5, 7).to(device)).cpu(), due)


def test_10_convex_fits_are_those_of_scikit_learn(device):
    vectors, targets = problem(3)
    (found,) = fit_classes(vectors.unsqueeze(0).to(device), targets.to(device), 3, [1e-2])[0]
    weight, bias, scaled = standardised(on_cpu(found), vectors)
    due = LogisticRegression(C=1 / (1e-2 * len(vectors)), tol=1e-8, max_iter=5000).fit(scaled.numpy(), targets.numpy())
    rows, offsets = torch.tensor(due.coef_), torch.tensor(due.intercept_)
    least = objective(rows, offsets, scaled, targets, 1e-2).item()
    assert objective(weight, bias, scaled, targets, 1e-2).item() == pytest.approx(least, rel=1e-4)
    scores = scaled @ torch.linspace(-1, 1, scaled.shape[1], dtype=torch.float64) + targets
    (found,) = fit_scores(vectors.unsqueeze(0).to(device), scores.to(device), [1e-1])[0]
    weight, _, _ = standardised(on_cpu(found), vectors)
    due = Ridge(alpha=1e-1 * len(vectors) / 2).fit(scaled.numpy(), scores.numpy())
    assert np.abs(weight.numpy().ravel() - due.coef_).max() < 1e-3


def on_cpu(solution):
    """Return a solution with its weight and bias on the CPU."""
    found = copy.copy(solution)
    object.__setattr__(found, "weight", solution.weight.cpu())
    object.__setattr__(found, "bias", solution.bias.cpu())
    return found


@pytest.mark.parametrize("kind, entry", [("linear", {}), ("linear", {"pooling": "pooler"}), ("crf", {})])
def test_12_no_update_waits_for_the_card(kind, entry, device, card):
    task_type = "spans" if kind == "crf" else "classification"
    _, _, update = ready(device, HeadConfig(kind=kind, **entry), task_type, False)
    update()  # what is made once may wait
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            update()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_17_an_lstm_in_fp32_is_no_tf32(device):
    assert not torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32
    torch.manual_seed(0)
    layer = PackedBiLstm(64, 32, 2).eval()
    states, mask = torch.randn(4, 20, 64), torch.ones(4, 20, dtype=torch.bool)
    due, _ = copy.deepcopy(layer).lstm.double()(states.double())
    lengths = torch.full((4,), 20)
    with torch.no_grad():
        found = layer.to(device)(states.to(device), mask.to(device), lengths)
    assert (found.cpu().double() - due).abs().max() < 1e-6
