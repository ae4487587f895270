"""The two texts of a pair, however they were read, and what one says of the other.

B examples, S sequences (B; 2B where the texts of pairs are read separately), T tokens, U and V tokens of the longest
first and second text, d width. u [B, U, d], u mask [B, U] bool, v [B, V, d], v mask [B, V].
"""

from typing import NamedTuple

import torch

from thaw.features.batch import Batch
from thaw.heads.pooling import states_at


class Pair(NamedTuple):
    """The states of two texts without special tokens, each with its mask; what is masked is 0.

    Lengths [B], where they are known, are on the CPU.
    """

    u: torch.Tensor
    u_mask: torch.Tensor
    v: torch.Tensor
    v_mask: torch.Tensor
    u_lengths: torch.Tensor | None = None
    v_lengths: torch.Tensor | None = None

    def swapped(self) -> "Pair":
        """Return the second text as the first, and the first as the second."""
        return Pair(self.v, self.v_mask, self.u, self.u_mask, self.v_lengths, self.u_lengths)


def two_texts(states: torch.Tensor, batch: Batch, separate_encoding: bool) -> Pair:
    """Return the two texts of states [S, T, d], which are read jointly or separately."""
    step = 2 if separate_encoding else 1
    u, u_mask, u_lengths = one_text(states, batch, 1, slice(None, None, step))
    v, v_mask, v_lengths = one_text(states, batch, 2, slice(step - 1, None, step))
    return Pair(u, u_mask, v, v_mask, u_lengths, v_lengths)


def one_text(
    states: torch.Tensor, batch: Batch, number: int, read: slice = slice(None)
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the tokens of one text, moved to the front [B, U, d], their mask [B, U], and lengths [B] on the CPU.

    Args: states [S, T, d]; their batch; the text's number; the sequences to look at. A text without a token (one of
    odd characters alone) reads the first token of its sequence.
    """
    states, chosen = states[read], owned(batch.texts[read], number)
    lengths = (chosen if batch.origin is None else owned(batch.host.texts[read], number)).sum(1)
    order = (~chosen).to(torch.int8).argsort(dim=1, stable=True)[:, : int(lengths.max())]
    mask = chosen.gather(1, order)
    text = states_at(states, order)
    return text.masked_fill(~mask.unsqueeze(2), 0.0), mask, lengths


def owned(texts: torch.Tensor, number: int) -> torch.Tensor:
    """Return which tokens [B, T] belong to a text; the first where none does."""
    chosen = texts == number
    nobody = ~chosen.any(1, keepdim=True)
    return torch.cat([chosen[:, :1] | nobody, chosen[:, 1:]], 1)


def sizes(batch: Batch, separate_encoding: bool) -> tuple[int, int, int]:
    """Return U, V, and the tokens of all texts without padding, of a batch of pairs."""
    step = 2 if separate_encoding else 1
    first, second = owned(batch.texts[::step], 1).sum(1), owned(batch.texts[step - 1 :: step], 2).sum(1)
    return int(first.max()), int(second.max()), int(first.sum() + second.sum())


def aligned(pair: Pair, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the second text says to each token of the first [B, U, d], and the first to the second [B, V, d].

    That is the mean of the other text's states, weighted by a softmax of their dot products times `scale` (Chen et al.
    2017, equations 11 to 13).
    """
    scores = (pair.u @ pair.v.transpose(1, 2)).float() * scale
    to_u = scores.masked_fill(~pair.v_mask.unsqueeze(1), -torch.inf).softmax(2).to(pair.v.dtype)
    to_v = scores.masked_fill(~pair.u_mask.unsqueeze(2), -torch.inf).softmax(1).to(pair.u.dtype)
    return to_u @ pair.v, to_v.transpose(1, 2) @ pair.u


def largest(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the largest value of each dimension over the real tokens, [B, d] of states [B, n, d]."""
    return states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(1)


def mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean over the real tokens, [B, d] of states [B, n, d]."""
    return states.masked_fill(~mask.unsqueeze(-1), 0.0).sum(1) / mask.sum(1, keepdim=True)
