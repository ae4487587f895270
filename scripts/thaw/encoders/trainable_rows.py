"""Letting some rows or columns of a frozen tensor train: the optimizer holds these alone, so nothing else can move."""

import torch
from torch import nn
from torch.nn.utils import parametrize


class Rows(nn.Module):
    """Puts trained values into their places in a frozen tensor, each time that it is read."""

    def __init__(self, whole: torch.Tensor, dimension: int, places: list[int]):
        """Begin with the values that the tensor has; `places` along one of its dimensions."""
        super().__init__()
        self.dimension = dimension
        self.register_buffer("places", torch.tensor(places, device=whole.device))
        self.values = nn.Parameter(whole.detach().index_select(dimension, self.places))

    def forward(self, whole: torch.Tensor) -> torch.Tensor:
        """Return the tensor with the values in their places."""
        return whole.index_copy(self.dimension, self.places, self.values)


def open_rows(module: nn.Module, tensor: str, dimension: int, places: list[int]) -> nn.Parameter:
    """Let some places of a module's tensor train, and return their values."""
    rows = Rows(getattr(module, tensor), dimension, places)
    parametrize.register_parametrization(module, tensor, rows)
    return rows.values
