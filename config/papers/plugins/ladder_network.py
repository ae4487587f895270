"""The ladder side network: narrow transformer blocks that read the states of a frozen encoder's layers through gates.

An export takes this file along as it is, so that it imports nothing but torch.

S sequences, T tokens, d width of the encoder, w width of the network, h attention heads, K boundaries that are read.
Mask [S, T] bool, False at padding.
"""

import torch
from torch import nn
from torch.nn import functional

EPS = 1e-12  # of the norms, as in BERT


class LadderBlock(nn.Module):
    """A transformer layer of width w as in BERT: attention, then a feed-forward part, each with a norm after it."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float):
        """Make the layer; `inner` is the width of its feed-forward part."""
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)
        self.attention_norm, self.norm = nn.LayerNorm(width, EPS), nn.LayerNorm(width, EPS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the layer's output [S, T, w] of states [S, T, w]."""
        states = self.attention_norm(states + self.dropout(self.attended(states, mask)))
        return self.norm(states + self.dropout(self.outer(functional.gelu(self.inner(states)))))

    def attended(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return what the tokens read from each other [S, T, w]; nothing is read from padding."""
        matrices = self.query, self.key, self.value
        parts = (part(states).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in matrices)
        read = functional.scaled_dot_product_attention(*parts, attn_mask=mask[:, None, None, :])
        return self.output(read.transpose(1, 2).flatten(2))


class LadderNetwork(nn.Module):
    """K - 1 blocks, each of which reads a gated mean of a boundary, brought to width w, and of the block below it.

    The gate is sigmoid(alpha / temperature), the share of the boundary; every alpha begins at 0, with half of each. The
    first boundary is what the lowest block has below it. At the end a matrix brings the state to width d.
    """

    def __init__(self, read: int, wide: int, width: int, heads: int, inner: int, **settings):
        """Make the network.

        Args: number K of boundaries; widths d and w; attention heads; width of the feed-forward parts; settings:
        `dropout` of projected boundaries and within the blocks; `temperature`; `norm`, whether each boundary is
        normalised, without learned gain, before it is projected.
        """
        super().__init__()
        self.temperature, self.normed = settings["temperature"], settings["norm"]
        self.down = nn.ModuleList(nn.Linear(wide, width) for _ in range(read))
        self.blocks = nn.ModuleList(LadderBlock(width, heads, inner, settings["dropout"]) for _ in range(read - 1))
        self.up = nn.Linear(width, wide)
        self.dropout = nn.Dropout(settings["dropout"])
        self.alphas = nn.Parameter(torch.zeros(read - 1))

    def forward(self, boundaries: list[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """Return the network's state [S, T, d] of K boundaries [S, T, d], the lowest first."""
        state, *above = (self.lowered(n, boundary) for n, boundary in enumerate(boundaries))
        gates = (self.alphas / self.temperature).sigmoid().unbind()
        for block, gate, boundary in zip(self.blocks, gates, above, strict=True):
            state = block(gate * boundary + (1 - gate) * state, mask)
        return self.up(state)

    def lowered(self, number: int, boundary: torch.Tensor) -> torch.Tensor:
        """Return a boundary [S, T, d] at the width of the network, [S, T, w]."""
        if self.normed:
            boundary = functional.layer_norm(boundary, boundary.shape[-1:])
        return self.dropout(self.down[number](boundary))
