"""BertAdam against the formula, and clipping of the whole gradient or of each tensor."""

import torch

from thaw.adaptation.optimizers import BertAdam


def test_parameters_without_gradient_stay_and_have_no_state():
    frozen, moving = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    moving.grad = torch.ones(2)
    found = BertAdam([{"params": [frozen, moving], "lr": 0.1, "weight_decay": 0.1}])
    found.step()
    assert torch.equal(frozen, torch.ones(2)) and frozen not in found.state and not torch.equal(moving, torch.ones(2))
