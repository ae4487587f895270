"""Bi-attention across two texts, pooling, one matrix.

B pairs, U and V tokens of the longest first and second text, d width. Vectors [B, 8d].
"""

from thaw.declarations.heads import HeadKind
from thaw.declarations.task_types import PAIR_TYPES

HEADS = {
    "bi_attention": HeadKind(
        "thaw.papers.bi_attention:BiAttentionHead", PAIR_TYPES, pools=False, in_print="bi-attention"
    )
}

import torch

from thaw.compute_cost.flops import attention
from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
from thaw.papers.pairs import aligned, largest, sizes, two_texts
from thaw.schema.head import HeadConfig


class BiAttentionHead(VectorHead):
    """Each token with its attention over the other text, max pooling over each text, and the output.

    After Peters et al. 2019, section 3, for encoders that read sentences separately: bi-attention between the states of
    the two, a pooling, a softmax. The paper does not state the concatenation; here [a; b; a - b; a * b], as in Chen et
    al. 2017, equation 14, and dot products divided by the square root of d, since nothing bounds an encoder's states.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the output layer."""
        super().__init__(entry, 8 * width, outputs, task_type, separate_encoding)
        self.states_width = width
        self.initialise()

    def vectors(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return [B, 8d] of states [S, T, d]."""
        pair = two_texts(states, batch, self.separate_encoding)
        said = aligned(pair, self.states_width**-0.5)
        texts = ((pair.u, said[0], pair.u_mask), (pair.v, said[1], pair.v_mask))
        return torch.cat([largest(torch.cat([a, b, a - b, a * b], -1), mask) for a, b, mask in texts], -1)

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of the dot products, which serve both ways, and of both weighted means."""
        u, v, _ = sizes(batch, self.separate_encoding)
        return 1.5 * attention(self.states_width, u, v) * len(batch)
