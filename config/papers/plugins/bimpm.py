"""BiMPM: two texts are read, matched token by token from several perspectives, and the matches read.

B pairs, U and V tokens of the longest first and second text, d width, h width of a direction, l perspectives, m width
of a token's matches. u [B, U, d], v [B, V, d].
"""

from pydantic import Field

from thaw.declarations.heads import HeadKind, HeadOptions
from thaw.declarations.task_types import PAIR_TYPES


class MatchingOptions(HeadOptions):
    """A matching layer, and what reads before and after it."""

    perspectives: int = Field(20, ge=1, description="weighted cosines of each matching strategy")
    size: int = Field(100, ge=1, description="width of each direction of a BiLSTM, and of the hidden layer")


HEADS = {
    "bimpm": HeadKind(
        "thaw.papers.bimpm:BiMpmHead", PAIR_TYPES, MatchingOptions, pools=False, in_print="BiMPM", version=2
    ),
    "bimpm_no_lstm": HeadKind(
        "thaw.papers.bimpm:BiMpmNoLstmHead",
        PAIR_TYPES,
        MatchingOptions,
        pools=False,
        in_print="BiMPM without LSTM",
        version=2,
    ),
}

import torch
from torch import nn
from torch.nn import functional

from thaw.compute_cost.flops import attention, bilstm, matrix
from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
from thaw.heads.bilstm import PackedBiLstm
from thaw.heads.pooling import states_at
from thaw.papers.pairs import Pair, mean, sizes, two_texts
from thaw.schema.head import HeadConfig

STRATEGIES = 4
TINY = 1e-8  # least norm that is divided by


class PerspectiveMatching(nn.Module):
    """Four ways to match each token with the other text (Wang, Hamza, Florian 2017, section 3.2).

    full: with one vector of the whole other text; maxpooling: with each of its tokens, the best kept;
    attentive: with its mean weighted by cosine; max_attentive: with its token of the highest cosine. A match is l
    cosines, each of both vectors weighted by a row of the strategy's matrix [l, d] (equations 4 and 5).
    """

    def __init__(self, width: int, perspectives: int):
        """Make a matrix [l, d] for each strategy, of ones with noise: near the plain cosine at the start."""
        super().__init__()
        start = 1 + 0.1 * torch.randn(STRATEGIES, perspectives, width)
        self.full, self.maxpooling, self.attentive, self.max_attentive = map(nn.Parameter, start.unbind(0))

    def forward(self, u, v, whole, v_mask) -> torch.Tensor:
        """Return the matches [B, U, 4l] of the tokens of u with v, whose `whole` is [B, d] and mask [B, V]."""
        cosines = functional.normalize(u, dim=-1, eps=TINY) @ functional.normalize(v, dim=-1, eps=TINY).transpose(1, 2)
        hidden = ~v_mask.unsqueeze(1)
        weights = cosines.masked_fill(hidden, 0.0)
        # The mean is divided by the sum of the weights, which may be negative. To a cosine only the sum's sign matters.
        mean = weights @ v * weights.sum(2, keepdim=True).sign()
        nearest = cosines.masked_fill(hidden, -torch.inf).argmax(2)
        nearest = states_at(v, nearest)
        matched = [
            perspective_cosine(u, whole.unsqueeze(1), self.full),
            every_cosine(u, v, self.maxpooling).masked_fill(hidden.unsqueeze(1), -torch.inf).amax(3).transpose(1, 2),
            perspective_cosine(u, mean, self.attentive),
            perspective_cosine(u, nearest, self.max_attentive),
        ]
        return torch.cat(matched, -1)


def perspective_cosine(u: torch.Tensor, v: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return cos(w * u, w * v) for each row w of weights [l, d]: [B, U, l] of u [B, U, d] and v [B, U or 1, d]."""
    squares = weights.square().T
    product = (u * v) @ squares
    norms = [(text.square() @ squares).clamp(min=TINY**2).sqrt() for text in (u, v)]
    return product / (norms[0] * norms[1])


def every_cosine(u: torch.Tensor, v: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the same between all tokens of two texts: [B, l, U, V]."""
    u, v = (functional.normalize(text.unsqueeze(1) * weights.unsqueeze(1), dim=-1, eps=TINY) for text in (u, v))
    return u @ v.transpose(2, 3)


def matching_flops(width: int, perspectives: int, u: int, v: int) -> float:
    """Return the operations of matching one text of u tokens with another of v tokens."""
    cosines = 8 * matrix(width, perspectives, u) + matrix(width, perspectives, 1)
    return attention(width, u, v) + perspectives * matrix(width, v, u) + cosines


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
