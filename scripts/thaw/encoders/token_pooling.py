"""How the states of a sequence become one vector without anything learned. Padding has no part in it.

S sequences, T tokens, d width. States [S, T, d], mask [S, T] bool, vector [S, d].
"""

import torch


def first_token(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the state of the first token [S, d]."""
    return states[:, 0]


def last_token(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the state of the last token [S, d]; of a sequence without one, of the first."""
    last = mask.sum(1).clamp(min=1) - 1
    return states[torch.arange(len(states), device=states.device), last]


def mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean over all tokens [S, d], special ones included (Reimers and Gurevych 2019)."""
    weights = mask.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def maximum(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the largest value of each dimension over all tokens [S, d] (Conneau et al. 2017)."""
    return states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(1)
