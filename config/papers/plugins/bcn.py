"""The biattentive classification network: for two texts, or one that attends to itself.

B examples, U and V tokens of the longest first and second text, d width, h width of a direction, p pool of a maxout
unit.
"""

from typing import Literal

from pydantic import Field

from thaw.declarations.heads import HeadKind, HeadOptions, Probability
from thaw.declarations.task_types import TEXT_TYPES


class BcnOptions(HeadOptions):
    """Sizes of AllenNLP's network for SST."""

    size: int = Field(300, ge=1, description="width of the first layer and of each direction of both BiLSTMs")
    pool: int = Field(4, ge=1, description="values of which a maxout unit takes the largest")
    states_dropout: Probability | None = Field(
        None, description="of what it reads; default: the head's dropout, as below"
    )
    first_dropout: Probability | None = Field(None, description="after the first layer")
    pooled_dropout: Probability | None = Field(None, description="of the poolings")
    between_dropout: Probability | None = Field(None, description="between the maxout layers")
    last_dropout: Probability | None = Field(None, description="below the output")
    output: Literal["matrix", "maxout"] = Field(
        "matrix", description="the last layer; AllenNLP has a third maxout layer"
    )


HEADS = {"bcn": HeadKind("thaw.papers.bcn:BcnHead", TEXT_TYPES, BcnOptions, pools=False, in_print="BCN")}

import torch
from torch import nn

from thaw.compute_cost.flops import attention, bilstm, matrix
from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
from thaw.heads.bilstm import PackedBiLstm
from thaw.heads.pooling import Attention
from thaw.papers.pairs import Pair, aligned, largest, mean, one_text, owned, sizes, two_texts
from thaw.schema.head import HeadConfig

PLACES = ("states", "first", "pooled", "between")  # of dropout, below that of the output


class Maxout(nn.Module):
    """The largest of p linear functions for each value (Goodfellow et al. 2013)."""

    def __init__(self, width: int, made: int, pool: int):
        """Make the functions: [made x p, width]."""
        super().__init__()
        self.pool, self.functions = pool, nn.Linear(width, made * pool)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return [B, made] of vectors [B, width]."""
        return self.functions(vectors).unflatten(-1, (-1, self.pool)).amax(-1)

    @property
    def weight(self) -> nn.Parameter:
        """The functions' matrix [made x p, width], and `bias` theirs: where it is the last layer it starts like one."""
        return self.functions.weight

    @property
    def bias(self) -> nn.Parameter:
        """The functions' constants [made x p]."""
        return self.functions.bias


class BcnHead(VectorHead):
    """The biattentive classification network (McCann et al. 2017, section 5), sizes and layers as AllenNLP has them.

    A layer of ReLU and a BiLSTM encode each text; biattention; a second BiLSTM integrates [x; x - c; x * c]; its states
    are pooled by largest, mean, smallest and learned attention; maxout layers reduce them, and a matrix or a third one
    is the output. As in AllenNLP there is no batch normalisation between these, and a single text attends to itself.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the encoder, the integrator, the pooling and the maxout layers."""
        size, pool = entry.kind_options.size, entry.kind_options.pool
        super().__init__(entry, 2 * size, outputs, task_type, separate_encoding)
        self.first = nn.Linear(width, size)
        self.encoding = PackedBiLstm(size, size)
        self.integrator = PackedBiLstm(6 * size, size)
        self.attention = Attention(2 * size)
        read = (16 if self.pairs else 8) * size
        self.dropouts = nn.ModuleDict({name: nn.Dropout(self._share(name)) for name in PLACES})
        self.dropout = nn.Dropout(self._share("last"))
        self.reduction = nn.ModuleList([Maxout(read, 4 * size, pool), Maxout(4 * size, 2 * size, pool)])
        if entry.kind_options.output == "maxout":
            self.output = Maxout(2 * size, outputs, pool)
        self.initialise()

    def vectors(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the last maxout layer [B, 2h] of states [S, T, d]."""
        if self.pairs:
            u, u_mask, v, v_mask, u_lengths, v_lengths = two_texts(states, batch, self.separate_encoding)
            u, v = self._encoded(u, u_mask, u_lengths), self._encoded(v, v_mask, v_lengths)
            to_u, to_v = aligned(Pair(u, u_mask, v, v_mask))
            pooled = [self._pooled(u, to_u, u_mask, u_lengths), self._pooled(v, to_v, v_mask, v_lengths)]
        else:
            text, mask, lengths = one_text(states, batch, 1)
            text = self._encoded(text, mask, lengths)
            pooled = [self._pooled(text, aligned(Pair(text, mask, text, mask))[0], mask, lengths)]
        vectors = self.reduction[0](self.dropouts["pooled"](torch.cat(pooled, -1)))
        return self.reduction[1](self.dropouts["between"](vectors))

    def _share(self, place: str) -> float:
        """Return the dropout at a place: its own, or the head's."""
        own = getattr(self.entry.kind_options, f"{place}_dropout")
        return self.entry.dropout if own is None else own

    def _encoded(self, text: torch.Tensor, mask: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return a text [B, n, 2h] of its states [B, n, d]."""
        first = torch.relu(self.first(self.dropouts["states"](text)))
        return self.encoding(self.dropouts["first"](first), mask, lengths)

    def _pooled(self, text: torch.Tensor, said: torch.Tensor, mask: torch.Tensor, lengths) -> torch.Tensor:
        """Return the four poolings [B, 8h] of a text integrated with what was said to it, both [B, n, 2h]."""
        integrated = self.integrator(torch.cat([text, text - said, text * said], -1), mask, lengths)
        return torch.cat(
            [
                largest(integrated, mask),
                mean(integrated, mask),
                -largest(-integrated, mask),
                self.attention(integrated, mask),
            ],
            -1,
        )

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of all that is below the output; of a layer that reads padding, with it."""
        size = self.entry.kind_options.size
        if self.pairs:
            u, v, tokens = sizes(batch, self.separate_encoding)
            places, products = u + v, 1.5 * attention(2 * size, u, v)
        else:
            lengths = owned(batch.texts, 1).sum(1)
            places, tokens = int(lengths.max()), int(lengths.sum())
            products = 2 * attention(2 * size, places, places)
        recurrent = bilstm(size, size, 1, tokens) + bilstm(6 * size, size, 1, tokens)
        layers = sum(matrix(m.functions.in_features, m.functions.out_features, len(batch)) for m in self.reduction)
        return recurrent + layers + (matrix(self.first.in_features, size, places) + products) * len(batch)

    def logit_flops(self, count: int) -> float:
        """Return the operations of the output on so many vectors."""
        options = self.entry.kind_options
        return super().logit_flops(count) * (options.pool if options.output == "maxout" else 1)
