"""How the tokens of a text become one vector. Padding has no part in it.

B examples, T tokens, d width. States [B, T, d], mask [B, T] bool, vector [B, d].
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from thaw.encoders import token_pooling
from thaw.features.batch import Batch


class Plain(nn.Module):
    """A pooling without parameters (`thaw.encoders.token_pooling`)."""

    def __init__(self, pool: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]):
        super().__init__()
        self.pool = pool

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [B, d]."""
        return self.pool(states, mask)


class Attention(nn.Module):
    """A weighted mean, its weights from one learned query (Yang et al. 2016, without their hidden layer).

    The query begins at 0, that is, with the plain mean.
    """

    def __init__(self, width: int):
        """Make the query [d]."""
        super().__init__()
        self.query = nn.Parameter(torch.zeros(width))

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [B, d]."""
        relevance = (states @ self.query).float().masked_fill(~mask, -torch.inf)
        weights = relevance.softmax(1).to(states.dtype)
        return (weights.unsqueeze(-1) * states).sum(1)


class Pooler(nn.Module):
    """BERT's pooler, a matrix and tanh on the first token's state (Devlin et al. 2019).

    It was pretrained with the encoder, and trains with the head: a run gives it the encoder's own tensors.
    """

    def __init__(self, width: int):
        """Make the matrix [d, d], random as yet."""
        super().__init__()
        self.dense: nn.Linear | FrozenMatrix = nn.Linear(width, width)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [B, d]."""
        return torch.tanh(self.dense(states[:, 0]))


class FrozenMatrix(nn.Module):
    """A matrix and a bias that no optimizer sees; they are loaded, saved and moved as parameters are."""

    def __init__(self, width: int):
        """Make the matrix [d, d] and the bias [d], random as yet."""
        super().__init__()
        fresh = nn.Linear(width, width)
        self.in_features = width
        self.weight: torch.Tensor
        self.bias: torch.Tensor
        self.register_buffer("weight", fresh.weight.detach())
        self.register_buffer("bias", fresh.bias.detach())

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return [B, d]."""
        return nn.functional.linear(vectors, self.weight, self.bias)


class FrozenPooler(Pooler):
    """BERT's pooler as it was pretrained, as in the code of Houlsby et al. 2019."""

    def __init__(self, width: int):
        """Make the matrix [d, d], random as yet."""
        super().__init__(width)
        self.dense = FrozenMatrix(width)


class ConcatenatedPoolings(nn.Module):
    """The vectors of several poolings side by side, [B, K d] for K of them."""

    def __init__(self, poolings: list[nn.Module]):
        super().__init__()
        self.poolings = nn.ModuleList(poolings)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [B, K d]."""
        return torch.cat([each(states, mask) for each in self.poolings], -1)


POOLINGS = {
    "first": lambda width: Plain(token_pooling.first_token),
    "last": lambda width: Plain(token_pooling.last_token),
    "mean": lambda width: Plain(token_pooling.mean),
    "max": lambda width: Plain(token_pooling.maximum),
    "attention": Attention,
    "pooler": Pooler,
    "frozen_pooler": FrozenPooler,
}


def make_pooling(name: str | Sequence[str], width: int) -> nn.Module:
    """Return the module of a pooling, or of several whose vectors are concatenated, for states of this width."""
    if not isinstance(name, str):
        return ConcatenatedPoolings([POOLINGS[one](width) for one in name])
    return POOLINGS[name](width)


def word_states(states: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the state of each word's first piece [B, W, d]; a word without one reads the first token's."""
    return states_at(states, batch.first_pieces.clamp(min=0))


def states_at(states: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return the states [B, n, d] at some places [B, n] of states [B, T, d].

    By whole rows: `gather` would need an index, and its gradient a sum, for each number of each state.
    """
    starts = torch.arange(len(states), device=states.device).unsqueeze(1) * states.shape[1]
    return states.flatten(0, 1)[starts + places]
