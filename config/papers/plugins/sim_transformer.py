"""Sim-Transformer: BiMPM's matches of the encoder's states, read by a transformer.

B pairs, n tokens of the longest text, m width of a token's matches, h width of the transformer.
"""

from typing import Literal

from pydantic import Field, model_validator

from thaw.declarations.heads import HeadKind, HeadOptions
from thaw.declarations.task_types import PAIR_TYPES


class SimTransformerOptions(HeadOptions):
    """A matching layer and a transformer."""

    perspectives: int = Field(20, ge=1, description="weighted cosines of each matching strategy")
    size: int = Field(200, ge=1, description="width of the transformer and of the hidden layer")
    layers: int = Field(1, ge=1, description="layers of the transformer")
    heads: int = Field(4, ge=1, description="its attention heads; they divide its size")
    reading: Literal["states", "bilstm"] = Field(
        "states", description="what is matched: the encoder's states, or those of BiMPM's first BiLSTM"
    )

    @model_validator(mode="after")
    def _heads_divide_the_size(self):
        if self.size % self.heads or self.size % 2:
            raise ValueError(f"size {self.size} is not even and divisible by {self.heads} heads")
        return self


HEADS = {
    "sim_transformer": HeadKind(
        "thaw.papers.sim_transformer:SimTransformerHead",
        PAIR_TYPES,
        SimTransformerOptions,
        pools=False,
        in_print="Sim-Transformer",
        version=2,
    )
}

import math

import torch
from torch import nn

from thaw.compute_cost.flops import attention, matrix
from thaw.papers.bimpm import BiMpmHead, BiMpmNoLstmHead
from thaw.papers.pairs import mean


class SimTransformerHead(BiMpmNoLstmHead):
    """BiMPM with a transformer in the place of its aggregation BiLSTM (Wang, Su et al. 2019).

    The paper says no more than that, and not whether BiMPM's first BiLSTM stays: `reading` has both. Here a matrix
    brings the matches to h, sines encode the positions (Vaswani et al. 2017, section 3.5), the feed-forward part is 4h
    wide, and the mean over the tokens is the text's vector.
    """

    @property
    def base(self) -> type[BiMpmHead]:
        """The head whose way of reading the texts it has."""
        return BiMpmHead if self.entry.kind_options.reading == "bilstm" else BiMpmNoLstmHead

    def make_reading(self, width: int, size: int) -> list[int]:
        """Make what reads the states [B, n, d]; return the width of each stream that it gives."""
        return self.base.make_reading(self, width, size)

    def read(self, text: torch.Tensor, mask: torch.Tensor, lengths) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return each stream of a text [B, n, d]: its states and the vector of the whole text."""
        return self.base.read(self, text, mask, lengths)

    def reading_flops(self, tokens: int) -> float:
        """Return the operations of reading all tokens of a batch."""
        return self.base.reading_flops(self, tokens)

    def make_aggregation(self, width: int, size: int) -> None:
        """Make what reads matches [B, n, m] of this width."""
        chosen = self.entry.kind_options
        self.widened = nn.Linear(width, size)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(size, chosen.heads, 4 * size, self.entry.dropout, batch_first=True)
            for _ in range(chosen.layers)
        )
        self.hidden = nn.Linear(2 * size, size)

    def aggregated(self, matches: torch.Tensor, mask: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
        """Return one vector [B, h] of the matches [B, n, m] of a text."""
        hidden = self.widened(matches)
        hidden = hidden + positions(hidden.shape[1], hidden.shape[2], hidden.device).to(hidden.dtype)
        for layer in self.layers:
            hidden = layer(hidden, src_key_padding_mask=~mask)
        return mean(hidden, mask)

    def aggregation_flops(self, u: int, v: int, tokens: int, pairs: int) -> float:
        """Return the operations of the matrix and of the layers: queries, keys, values, output, and 8 for the rest."""
        size = self.hidden.out_features
        layer = sum(matrix(size, 12 * size, n) + attention(size, n, n) for n in (u, v))
        return pairs * (matrix(self.widened.in_features, size, u + v) + len(self.layers) * layer)


def positions(count: int, width: int, device: torch.device) -> torch.Tensor:
    """Return sines and cosines [count, width] of the positions (Vaswani et al. 2017, section 3.5)."""
    rates = torch.exp(-math.log(10_000) * torch.arange(0, width, 2, device=device) / width)
    angles = torch.arange(count, device=device).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
