"""BiLSTM layers with a highway around each, over words or tokens, then a linear head.

N sequences, n tokens or words of the longest, d width, h width of a direction.
"""

from thaw.declarations.heads import BiLstmOptions, HeadKind

HEADS = {
    "highway_lstm": HeadKind("thaw.papers.highway_lstm:HighwayLstmHead", options=BiLstmOptions, in_print="highway LSTM")
}

import torch
from torch import nn

from thaw.compute_cost.flops import bilstm, matrix
from thaw.features.batch import Batch
from thaw.heads.bilstm import PackedBiLstm, ends
from thaw.heads.linear import LinearHead
from thaw.schema.head import HeadConfig

CARRY = -1.0  # the gate's bias at the start: mostly open for what comes from below (Srivastava et al., section 2.2)


class HighwayLayer(nn.Module):
    """y = g * BiLSTM(x) + (1 - g) * P x, with g = sigmoid(W x + b) (Srivastava et al. 2015, equation 3)."""

    def __init__(self, width: int, size: int):
        """Make the BiLSTM, the gate, and P, which brings x to the same width."""
        super().__init__()
        self.recurrent = PackedBiLstm(width, size)
        self.gate = nn.Linear(width, 2 * size)
        self.carried = nn.Linear(width, 2 * size, bias=False)
        nn.init.constant_(self.gate.bias, CARRY)

    def forward(self, states: torch.Tensor, mask: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return states [N, n, 2h] of states [N, n, d]; `lengths` [N] on the CPU."""
        gate = torch.sigmoid(self.gate(states))
        return gate * self.recurrent(states, mask, lengths) + (1 - gate) * self.carried(states)


class HighwayLstmHead(LinearHead):
    """Highway BiLSTM layers below a linear head; Wang et al. 2019 use one for text classification.

    Their paper gives no equations. AllenNLP's highway LSTM has its gate read the hidden state too, which rules out
    torch's own LSTM; here the gate reads the layer's input alone.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the layers, the pooling and the output."""
        size, layers = entry.kind_options.size, entry.kind_options.layers
        super().__init__(entry, 2 * size, outputs, task_type, separate_encoding)
        self.layers = nn.ModuleList(HighwayLayer(2 * size if n else width, size) for n in range(layers))
        self.initialise()

    def context(self, states: torch.Tensor, mask: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """Return the states [N, n, 2h] of the top layer."""
        lengths = ends(counted)
        for layer in self.layers:
            states = layer(self.dropout(states), mask, lengths)
        return states

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of the BiLSTMs on what is seen, and of gates and carried states on padding too."""
        every, seen = (batch.first_pieces, batch.first_pieces >= 0) if self.words else (batch.mask, batch.mask)
        total = 0.0
        for layer in self.layers:
            read, made = layer.gate.in_features, layer.gate.out_features
            total += bilstm(read, made // 2, 1, int(seen.sum())) + 2 * matrix(read, made, every.numel())
        return total
