"""Which layers a head reads, and how they become one state: the last, one of them, or several combined.

S sequences, T tokens, d width, K boundaries that are read. Boundaries K x [S, T, d], state [S, T, D] with D = d, or K d
where they are concatenated.
"""

import torch
from torch import nn

from thaw.schema.head import LayerMixConfig


class Combination(nn.Module):
    """One state of several boundaries, without anything learned: the only one, their mean, sum or concatenation."""

    def __init__(self, entry: LayerMixConfig, width: int, read: list[int]):
        """Keep how the boundaries `read` are combined; `width` becomes that of the state."""
        super().__init__()
        self.read = read
        self.combine = entry.combine
        self.width = width * len(read) if entry.combine == "concat" else width

    def forward(self, boundaries: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the state [S, T, D] of boundaries by their number, of which there may be more than are read."""
        chosen = [boundaries[n] for n in self.read]
        if len(chosen) == 1:
            return chosen[0]
        if self.combine == "one":
            raise ValueError("a head whose layer validation chooses is fitted on one layer at a time: see at_layer")
        if self.combine == "concat":
            return torch.cat(chosen, -1)
        total = torch.stack(chosen).sum(0)
        return total / len(chosen) if self.combine == "mean" else total


class ScalarMix(Combination):
    """gamma times the sum of the boundaries, weighted by a softmax (Peters et al. 2018, equation 1).

    With `norm` each boundary is first brought to mean 0 and deviation 1 at each token, without learned gain. With
    `dropout` each weight is left out of the softmax with that probability while training (Liu et al. 2019's mix
    dropout); where all would be left out, none is.
    """

    def __init__(self, entry: LayerMixConfig, width: int, read: list[int]):
        """Make K weights, all 0, that is, the plain mean, and gamma 1."""
        super().__init__(entry, width, read)
        self.norm, self.dropout = entry.norm, entry.dropout
        self.weights = nn.Parameter(torch.zeros(len(read)))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, boundaries: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the state [S, T, d] of boundaries by their number."""
        states = torch.stack([boundaries[n] for n in self.read])
        if self.norm:
            states = nn.functional.layer_norm(states, states.shape[-1:])
        return self.gamma * torch.einsum("k,kstd->std", self.shares().to(states.dtype), states)

    def shares(self) -> torch.Tensor:
        """Return the weights' softmax [K], with mix dropout while training."""
        weights = self.weights.float()
        if self.training and self.dropout:
            out = torch.rand(len(weights), device=weights.device) < self.dropout
            weights = weights.masked_fill(out & ~out.all(), -torch.inf)
        return weights.softmax(0)


def combination(entry: LayerMixConfig, width: int, layers: int) -> Combination:
    """Return the module that combines what a head reads of an encoder of L layers."""
    kind = ScalarMix if entry.combine == "mix" else Combination
    return kind(entry, width, entry.reads(layers))
