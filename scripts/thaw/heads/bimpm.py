"""BiMPM: two texts are read, matched token by token from several perspectives, and the matches read.

B pairs, U and V tokens of the longest first and second text, d width, h width of a direction, l perspectives, m width
of a token's matches.
"""

import torch
from torch import nn

from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
from thaw.heads.matching import STRATEGIES, PerspectiveMatching, matching_flops
from thaw.heads.operations import bilstm, matrix
from thaw.heads.pairs import Pair, sizes, two_texts
from thaw.heads.recurrent import PackedBiLstm
from thaw.schema.head import HeadConfig


class BiMpmHead(VectorHead):
    """Bilateral multi-perspective matching (Wang, Hamza, Florian 2017, section 3), in place of its words the encoder.

    A BiLSTM reads each text; each direction is matched with the same direction of the other text, whose last state in
    that direction represents the whole; a second BiLSTM reads the matches [B, n, 8l], its last states of both texts go
    through a layer of ReLU.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the BiLSTMs, a matching layer for each direction, and the last layer."""
        size = entry.kind_options.size
        super().__init__(entry, size, outputs, task_type, separate_encoding)
        self.streams = nn.ModuleList(
            PerspectiveMatching(n, entry.kind_options.perspectives) for n in self.make_reading(width, size)
        )
        self.make_aggregation(len(self.streams) * STRATEGIES * entry.kind_options.perspectives, size)
        self.initialise()

    def make_reading(self, width: int, size: int) -> list[int]:
        """Make what reads the states [B, n, d]; return the width of each stream that it gives."""
        self.reading = PackedBiLstm(width, size)
        return [size, size]

    def make_aggregation(self, width: int, size: int) -> None:
        """Make what reads matches [B, n, m] of this width."""
        self.aggregation = PackedBiLstm(width, size)
        self.hidden = nn.Linear(4 * size, size)

    def read(self, text: torch.Tensor, mask: torch.Tensor, lengths) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return each stream of a text [B, n, d]: its states [B, n, h] and the vector of the whole text [B, h]."""
        contextual = self.reading(self.dropout(text), mask, lengths)
        return list(zip(contextual.chunk(2, -1), self.reading.whole(contextual, mask), strict=True))

    def aggregated(self, matches: torch.Tensor, mask: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
        """Return one vector [B, 2h] of the matches [B, n, m] of a text."""
        return torch.cat(self.aggregation.whole(self.aggregation(matches, mask, lengths), mask), -1)

    def vectors(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the last layer [B, h] of states [S, T, d]."""
        pair = two_texts(states, batch, self.separate_encoding)
        u, v = self.read(pair.u, pair.u_mask, pair.u_lengths), self.read(pair.v, pair.v_mask, pair.v_lengths)
        both = [self._side(u, v, pair), self._side(v, u, pair.swapped())]
        return torch.relu(self.hidden(self.dropout(torch.cat(both, -1))))

    def _side(self, ours: list, theirs: list, pair: Pair) -> torch.Tensor:
        """Return one vector of the first text's matches with the second."""
        sides = zip(self.streams, ours, theirs, strict=True)
        matches = [match(own, other, whole, pair.v_mask) for match, (own, _), (other, whole) in sides]
        return self.aggregated(self.dropout(torch.cat(matches, -1)), pair.u_mask, pair.u_lengths)

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of all that is below the output."""
        u, v, tokens = sizes(batch, self.separate_encoding)
        perspectives = self.entry.kind_options.perspectives
        widths = [stream.full.shape[1] for stream in self.streams]
        matched = sum(matching_flops(n, perspectives, *texts) for n in widths for texts in ((u, v), (v, u)))
        ends = matched + matrix(self.hidden.in_features, self.hidden.out_features, 1)
        return self.reading_flops(tokens) + self.aggregation_flops(u, v, tokens, len(batch)) + ends * len(batch)

    def reading_flops(self, tokens: int) -> float:
        """Return the operations of reading all tokens of a batch."""
        return bilstm(self.reading.lstm.input_size, self.reading.lstm.hidden_size, 1, tokens)

    def aggregation_flops(self, u: int, v: int, tokens: int, pairs: int) -> float:
        """Return the operations of reading all matches of a batch: `tokens` without padding, u + v a pair with it."""
        return bilstm(self.aggregation.lstm.input_size, self.aggregation.lstm.hidden_size, 1, tokens)
