"""BertAdam against the formula, and clipping of the whole gradient or of each tensor."""

import math

import pytest
import torch

from thaw.adaptation.optimizers import BertAdam, optimizer


def test_bert_adam_by_hand():
    """google-research/bert, optimization.py: no bias correction, epsilon outside the root, decay times the rate."""
    value, mean, square = 2.0, 0.0, 0.0
    parameter = torch.nn.Parameter(torch.tensor([value], dtype=torch.float64))
    found = BertAdam([{"params": [parameter], "lr": 0.1, "weight_decay": 0.01}])
    for gradient in (0.5, -0.2, 0.3):
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        found.step()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        value -= 0.1 * (mean / (math.sqrt(square) + 1e-6) + 0.01 * value)
        assert parameter.item() == pytest.approx(value, rel=1e-12)


def test_its_first_updates_are_larger_than_adams():
    moved = {}
    for name in ("adamw", "bert_adam"):
        parameter = torch.nn.Parameter(torch.zeros(1))
        parameter.grad = torch.ones(1)
        optimizer(name, [{"params": [parameter], "lr": 1e-3, "weight_decay": 0.0}]).step()
        moved[name] = -parameter.item()
    assert moved["bert_adam"] / moved["adamw"] == pytest.approx(0.1 / math.sqrt(0.001), rel=1e-3)


def test_parameters_without_gradient_stay_and_have_no_state():
    frozen, moving = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    moving.grad = torch.ones(2)
    found = BertAdam([{"params": [frozen, moving], "lr": 0.1, "weight_decay": 0.1}])
    found.step()
    assert torch.equal(frozen, torch.ones(2)) and frozen not in found.state and not torch.equal(moving, torch.ones(2))
