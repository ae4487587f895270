"""What makes one state of the layers that a head reads: the last, one of them, or several combined or mixed.

S sequences, T tokens, d width, K boundaries that are read. Boundaries K x [S, T, d], state [S, T, D] with D = d, or K d
where they are concatenated.
"""

import torch
from torch import nn

from thaw.compute_cost.flops import attention
from thaw.features.batch import Batch
from thaw.schema.layers import COMBINATIONS, LayerAttentionConfig, LayersConfig, ScalarMixConfig


class Combination(nn.Module):
    """One state of several boundaries, without anything learned: the only one, their mean, sum or concatenation."""

    def __init__(self, entry: LayersConfig, width: int, read: list[int]):
        """Keep how the boundaries `read` are combined; `width` becomes that of the state."""
        super().__init__()
        self.read = read
        self.combine = entry.combine
        self.width = entry.width_of(width, len(read))

    def flops(self, batch: Batch) -> float:
        """Return the forward operations on a batch, as `thaw.compute_cost.flops` counts; by default none."""
        return 0.0

    def forward(self, boundaries: dict[int, torch.Tensor], mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return the state [S, T, D] of boundaries by their number, of which there may be more than are read.

        The mask [S, T] is False at padding; a combination that reads no token for another does without.
        """
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

    def __init__(self, entry: ScalarMixConfig, width: int, read: list[int]):
        """Make K weights, all 0, that is, the plain mean, and gamma 1."""
        super().__init__(entry, width, read)
        self.norm, self.dropout = entry.norm, entry.dropout
        self.weights = nn.Parameter(torch.zeros(len(read)))
        self.gamma = nn.Parameter(torch.ones(()))
        if entry.penalty:  # the gradient of penalty * sum(weights ** 2), of one backward pass an update
            self.weights.register_hook(lambda gradient: gradient + 2 * entry.penalty * self.weights.detach())

    def forward(self, boundaries: dict[int, torch.Tensor], mask: torch.Tensor | None = None) -> torch.Tensor:
        states = self.stacked(boundaries)
        return self.gamma * torch.einsum("k,kstd->std", self.shares().to(states.dtype), states)

    def stacked(self, boundaries: dict[int, torch.Tensor]) -> torch.Tensor:
        """Return the boundaries that are read [K, S, T, d], each normalised where the entry says so."""
        states = torch.stack([boundaries[n] for n in self.read])
        return nn.functional.layer_norm(states, states.shape[-1:]) if self.norm else states

    def kept_weights(self) -> torch.Tensor:
        """Return the weights [K] before the softmax, -inf where mix dropout leaves a layer out while training."""
        weights = self.weights.float()
        if self.training and self.dropout:
            out = torch.rand(len(weights), device=weights.device) < self.dropout
            weights = weights.masked_fill(out & ~out.all(), -torch.inf)
        return weights

    def shares(self) -> torch.Tensor:
        """Return the weights' softmax [K], with mix dropout while training."""
        return self.kept_weights().softmax(0)


class LayerAttention(ScalarMix):
    """A scalar mix whose weights depend on the token: a learned query attends over the states of its layers.

    At each token, of its states h_k: gamma times the sum over k of a_k h_k, with a = softmax over k of
    (q . h_k / sqrt(d) + b_k). After the attention pooling of Song et al. 2020 (arXiv 2002.04815), which is
    softmax(q h) h over the [CLS] states of all layers and a matrix on the sum. Here each token attends, so that taggers
    can read it and any pooling follows; scores are scaled (Vaswani et al. 2017); the head has the matrix; and b_k and
    gamma, which they lack, make it the scalar mix where the query is 0. `norm` and `dropout` are those of the mix.
    """

    def __init__(self, entry: LayerAttentionConfig, width: int, read: list[int]):
        """Make a query, K weights b, all 0, that is, the plain mean, and gamma 1."""
        super().__init__(entry, width, read)
        self.query = nn.Parameter(torch.zeros(width))

    def forward(self, boundaries: dict[int, torch.Tensor], mask: torch.Tensor | None = None) -> torch.Tensor:
        states = self.stacked(boundaries)
        return self.gamma * torch.einsum("kst,kstd->std", self.token_shares(states).to(states.dtype), states)

    def token_shares(self, states: torch.Tensor) -> torch.Tensor:
        """Return the share of each boundary at each token [K, S, T] of states [K, S, T, d]; over K they sum to 1."""
        relevance = (states @ self.query).float() / self.width**0.5
        return (relevance + self.kept_weights().view(-1, 1, 1)).softmax(0)

    def flops(self, batch: Batch) -> float:
        """Return the operations of scores and weighted sums on a batch with its padding."""
        return attention(self.width, batch.mask.numel(), len(self.read))


OWN: dict[str, type[Combination]] = {"mix": ScalarMix, "attention": LayerAttention}  # others are plain, or plug-ins


def combination(entry: LayersConfig, width: int, layers: int) -> Combination:
    """Return the module that combines what a head reads of an encoder of L layers."""
    plugged = COMBINATIONS.get(entry.combine)
    make: type[Combination] = plugged.load() if plugged else OWN.get(entry.combine, Combination)
    return make(entry, width, entry.reads(layers))
