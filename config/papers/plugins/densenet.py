"""Blocks of convolutions over words or tokens, each linked to all earlier ones, concatenated with the encoder's states.

N sequences, n tokens or words of the longest, d width, c channels.
"""

from pydantic import Field

from thaw.declarations.heads import HeadKind, HeadOptions


class DenseNetOptions(HeadOptions):
    """Convolutions of one width."""

    size: int = Field(100, ge=1, description="channels of each convolution")
    kernel: int = Field(3, ge=1, description="tokens that a convolution sees at a time")


HEADS = {"densenet": HeadKind("thaw.papers.densenet:DenseNetHead", options=DenseNetOptions, in_print="DenseNet")}

import torch
from torch import nn

from thaw.compute_cost.flops import matrix
from thaw.features.batch import Batch
from thaw.heads.linear import LinearHead
from thaw.schema.head import HeadConfig

BLOCKS, CONVOLUTIONS = 4, 4  # four blocks of four (Wang et al. 2019)


class Block(nn.Module):
    """Convolutions that each read the block's input and all earlier ones' outputs (Huang et al. 2017, equation 2).

    The last one's output is added to the block's input, a residual link (He et al. 2016).
    """

    def __init__(self, channels: int, kernel: int):
        """Make the norm and the convolutions."""
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(channels * (n + 1), channels, kernel, padding="same") for n in range(CONVOLUTIONS)
        )

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return states [N, n, c] of states [N, n, c]; a convolution sees zeros where mask is False."""
        real = mask.unsqueeze(1)
        read = self.norm(states).transpose(1, 2).masked_fill(~real, 0.0)
        for convolution in self.convolutions:
            output = torch.relu(convolution(read)).masked_fill(~real, 0.0)
            read = torch.cat([read, output], 1)
        return states + output.transpose(1, 2)


class DenseNetHead(LinearHead):
    """Four blocks of four convolutions, concatenated with [CLS] (for words, the word's state); then linear.

    After Wang et al. 2019, who describe it in words: four blocks, each of four CNNs with residual links, the output
    concatenated with the first token's vector. Pooling (max is usual) leaves [CLS] as it is.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make what brings the states to c channels, the blocks, the pooling and the output."""
        size = entry.kind_options.size
        super().__init__(entry, size + width, outputs, task_type, separate_encoding)
        self.narrowed = nn.Linear(width, size)
        self.blocks = nn.ModuleList(Block(size, entry.kind_options.kernel) for _ in range(BLOCKS))
        self.initialise()

    def context(self, states: torch.Tensor, mask: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """Return [N, n, c + d]: the last block's states, and [CLS] or, for words, the states themselves."""
        output = self.narrowed(self.dropout(states))
        for block in self.blocks:
            output = block(output, mask)
        return torch.cat([output, states if self.words else states[:, :1].expand_as(states)], -1)

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of all convolutions on what is padded too."""
        places = (batch.first_pieces if self.words else batch.mask).numel()
        size, kernel = self.entry.kind_options.size, self.entry.kind_options.kernel
        block = sum(matrix(kernel * size * (n + 1), size, places) for n in range(CONVOLUTIONS))
        return matrix(self.narrowed.in_features, size, places) + BLOCKS * block
