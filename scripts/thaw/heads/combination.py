"""The base of what makes one state of the layers that a head reads: the last, one of them, or several combined.

S sequences, T tokens, d width, K boundaries that are read. Boundaries K x [S, T, d], state [S, T, D] with D = d, or K d
where they are concatenated.
"""

from pathlib import Path

import torch
from torch import nn

from thaw.features.batch import Batch
from thaw.schema.layers import LayersConfig


class Combination(nn.Module):
    """One state of several boundaries, without anything learned: the only one, their mean, sum or concatenation."""

    def __init__(self, entry: LayersConfig, width: int, read: list[int]):
        """Keep how the boundaries `read` are combined; `width` becomes that of the state."""
        super().__init__()
        self.read = read
        self.combine = entry.combine
        self.width = entry.width_of(width, len(read))

    def start(self, encoder: Path, trained: dict[str, torch.Tensor] | None = None, inserts: bool = False) -> None:
        """Look at the encoder before the first update; by default do nothing.

        Args: folder of the pretrained encoder; tensors, by name, that an earlier run has trained; whether it left
        inserts.
        """

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
