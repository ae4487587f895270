"""BiMPM without its first BiLSTM: the encoder's own states are matched.

B pairs, n tokens of the longest text, d width.
"""

import torch

from thaw.heads.bimpm import BiMpmHead
from thaw.heads.pairs import mean


class BiMpmNoLstmHead(BiMpmHead):
    """`BiMpmHead` on the encoder's states (Wang, Su et al. 2019, whose encoder has read them in both directions).

    They are one stream, without a last state of the whole text; here the mean replaces it.
    """

    def make_reading(self, width: int, size: int) -> list[int]:
        """Return the width of the one stream; nothing reads the states."""
        return [width]

    def read(self, text: torch.Tensor, mask: torch.Tensor, lengths) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return the one stream of a text: its states [B, n, d] and their mean [B, d]."""
        return [(self.dropout(text), mean(text, mask))]

    def reading_flops(self, tokens: int) -> float:
        """Return 0: nothing is computed before the matching."""
        return 0.0
