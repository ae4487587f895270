"""BiMPM's matching layer: each token of a text compared with the other text from several perspectives.

B pairs, U and V tokens of the longest first and second text, d width, l perspectives. u [B, U, d], v [B, V, d].
"""

import torch
from torch import nn
from torch.nn import functional

from thaw.heads.operations import attention, matrix
from thaw.heads.pooling import states_at

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
