"""ESIM: two texts are read, aligned, compared, and read again.

B pairs, U and V tokens of the longest first and second text, d width, h width of a direction and of the layers between.
"""

from typing import Literal

from pydantic import Field

from thaw.declarations.heads import HeadKind, HeadOptions
from thaw.declarations.task_types import PAIR_TYPES


class EsimOptions(HeadOptions):
    """Sizes of Chen et al. 2017 and AllenNLP."""

    size: int = Field(300, ge=1, description="width of each direction of both BiLSTMs, and of the layers between")
    activation: Literal["tanh", "relu"] = Field("tanh", description="of the last hidden layer; AllenNLP has relu")
    masks: Literal["token", "text"] = Field(
        "token", description="what dropout below a BiLSTM is drawn for, each token or, as AllenNLP has it, each text"
    )


HEADS = {"esim": HeadKind("thaw.papers.esim:EsimHead", PAIR_TYPES, EsimOptions, pools=False, in_print="ESIM")}

import torch
from torch import nn

from thaw.compute_cost.flops import attention, bilstm, matrix
from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
from thaw.heads.bilstm import PackedBiLstm
from thaw.papers.pairs import Pair, aligned, largest, mean, sizes, two_texts
from thaw.schema.head import HeadConfig


class EsimHead(VectorHead):
    """The enhanced sequential inference model (Chen et al. 2017, section 3), without syntax trees.

    Encoding a = BiLSTM(u); alignment; enhancement [a; b; a - b; a * b] through one layer; composition by another
    BiLSTM; mean and largest of both texts; a layer of tanh, or of ReLU as in AllenNLP.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make both BiLSTMs and the layers between."""
        size = entry.kind_options.size
        super().__init__(entry, size, outputs, task_type, separate_encoding)
        self.encoding = PackedBiLstm(width, size)
        self.enhanced = nn.Linear(8 * size, size)
        self.composition = PackedBiLstm(size, size)
        self.hidden = nn.Linear(8 * size, size)
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[entry.kind_options.activation]
        self.initialise()

    def vectors(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the last layer [B, h] of states [S, T, d]."""
        u, u_mask, v, v_mask, *lengths = two_texts(states, batch, self.separate_encoding)
        u = self.encoding(self._dropped(u), u_mask, lengths[0])
        v = self.encoding(self._dropped(v), v_mask, lengths[1])
        said = aligned(Pair(u, u_mask, v, v_mask))
        u, v = self._composed(u, said[0], u_mask, lengths[0]), self._composed(v, said[1], v_mask, lengths[1])
        pooled = [mean(u, u_mask), largest(u, u_mask), mean(v, v_mask), largest(v, v_mask)]
        return self.activation(self.hidden(self.dropout(torch.cat(pooled, -1))))

    def _composed(self, a: torch.Tensor, b: torch.Tensor, mask: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return a text [B, n, 2h] of its tokens and what the other says to them, both [B, n, 2h]."""
        enhanced = torch.relu(self.enhanced(torch.cat([a, b, a - b, a * b], -1)))
        return self.composition(self._dropped(enhanced), mask, lengths)

    def _dropped(self, text: torch.Tensor) -> torch.Tensor:
        """Return a text [B, n, w] with dropout: of each value, or of whole columns (Gal and Ghahramani 2016)."""
        if self.entry.kind_options.masks == "token":
            return self.dropout(text)
        return nn.functional.dropout1d(text.mT, self.dropout.p, self.training).mT

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of all that is below the output; the layer between reads padding too."""
        (u, v, tokens), size = sizes(batch, self.separate_encoding), self.entry.kind_options.size
        recurrent = bilstm(self.encoding.lstm.input_size, size, 1, tokens) + bilstm(size, size, 1, tokens)
        pairs = 1.5 * attention(2 * size, u, v) + matrix(8 * size, size, u + v) + matrix(8 * size, size, 1)
        return recurrent + pairs * len(batch)
