"""A BiLSTM over the words of a sentence or over the tokens of a text, then a linear head.

B examples, S sequences, N of them and n tokens or words of the longest, d width, h width of a direction.
"""

import torch

from thaw.features.batch import Batch
from thaw.heads.linear import LinearHead
from thaw.heads.operations import bilstm
from thaw.heads.recurrent import PackedBiLstm, ends
from thaw.schema.head import HeadConfig


class BiLstmHead(LinearHead):
    """Dropout and layers of BiLSTM below a linear head (on words: Peters et al. 2019 and Wang et al. 2019 for NER).

    A word without a piece between other words reads the first token's state; those after the last seen one are
    not read.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the BiLSTM, the pooling and the output."""
        chosen = entry.kind_options
        super().__init__(entry, 2 * chosen.size, outputs, task_type, separate_encoding)
        self.recurrent = PackedBiLstm(width, chosen.size, chosen.layers, entry.dropout)
        self.initialise()

    def context(self, states: torch.Tensor, mask: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """Return the states [N, n, 2h] of the BiLSTM's top layer."""
        return self.recurrent(self.dropout(states), mask, ends(counted))

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of the BiLSTM on all tokens, or all seen words, without padding."""
        chosen, seen = self.entry.kind_options, batch.first_pieces >= 0 if self.words else batch.mask
        return bilstm(self.recurrent.lstm.input_size, chosen.size, chosen.layers, int(seen.sum()))
