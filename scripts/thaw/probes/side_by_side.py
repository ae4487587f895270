"""Probes that are trained by gradient descent as a batch, each as if it were alone.

P probes.
"""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import nn

from thaw.core.runtime import log


class Linear(nn.Module):
    """A batch of P linear maps, which are initialised as torch's own linear map is."""

    def __init__(self, probes: int, inputs: int, outputs: int):
        """Make the matrices [P, inputs, outputs] and biases [P, 1, outputs]."""
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(probes, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(probes, 1, outputs).uniform_(-bound, bound))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return [P, n, outputs] of values [P, n, inputs]."""
        return torch.baddbmm(self.bias, values, self.weight)


def train(
    model: nn.Module,
    epoch: Callable[[], Iterable[torch.Tensor]],
    judge: Callable[[], np.ndarray],
    settings,
) -> list[dict]:
    """Train P probes with Adam; each ends with the values of the epoch that was its best.

    Args: model, all of whose parameters have the probes first; epoch, which yields the losses [P] of each batch; judge,
    which returns how good each probe is now [P]; settings with rate, epochs and patience: when no probe has become
    better for so many epochs, the end is reached. Returns for each probe its best epoch, from 1, and what it was worth.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.rate)
    kept = {name: value.detach().clone() for name, value in model.named_parameters()}
    best, when = np.full(1, -np.inf), np.ones(1, dtype=int)
    for number in range(1, settings.epochs + 1):
        model.train()
        for losses in epoch():
            optimizer.zero_grad()
            losses.sum().backward()
            optimizer.step()
        model.eval()
        scores = np.nan_to_num(judge(), nan=-np.inf)
        better = scores > best
        best, when = np.where(better, scores, best), np.where(better, number, when)
        for name, value in model.named_parameters():
            kept[name][torch.from_numpy(better)] = value.detach()[torch.from_numpy(better)]
        log(f"epoch {number}: {better.sum()} of {len(better)} became better, the best has {best.max():.4f}")
        if number - when.max() >= settings.patience:
            break
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(kept[name])
    model.eval()
    return [{"epoch": int(n), "choice": float(score)} for n, score in zip(when, best, strict=True)]
