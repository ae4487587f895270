"""A learned scalar mix of layers, and which combination an entry names.

S sequences, T tokens, d width, K boundaries that are read.
"""

import torch
from torch import nn

from thaw.heads.combination import Combination
from thaw.heads.ladder import Ladder
from thaw.schema.layers import LayersConfig, ScalarMixConfig


class ScalarMix(Combination):
    """gamma times the sum of the boundaries, weighted by a softmax (Peters et al. 2018, equation 1).

    With `norm` each boundary is first brought to mean 0 and deviation 1 at each token, without learned gain. With
    `dropout` each weight is left out of the softmax with that probability while training (Liu et al. 2019's mix
    dropout); where all would be left out, none is.
    """

    def __init__(self, entry: ScalarMixConfig, width: int, read: list[int]):
        """Make K weights, all 0, that is, the plain mean, and gamma 1."""
        super().__init__(entry, width, read)
        self.norm, self.dropout = entry.norm, entry.dropout
        self.weights = nn.Parameter(torch.zeros(len(read)))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, boundaries: dict[int, torch.Tensor], mask: torch.Tensor | None = None) -> torch.Tensor:
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


COMBINATIONS = {"mix": ScalarMix, "ladder": Ladder}  # others are plain


def combination(entry: LayersConfig, width: int, layers: int) -> Combination:
    """Return the module that combines what a head reads of an encoder of L layers."""
    make = COMBINATIONS.get(entry.combine, Combination)
    return make(entry, width, entry.reads(layers))
