"""Layers of a whole encoder that run in the place of a student's, in some batches (Xu et al. 2020)."""

from itertools import pairwise

import torch
from torch import nn

from thaw.encoders.transformers import Encoder


class Replacement:
    """The predecessor's layers in the place of each layer that a student keeps.

    Of a student that keeps layers 2 and 4, layers 1 and 2 are in the place of 2, and layers 3 and 4 in that of 4. `now`
    says by layer whether they run in its place; in eval mode they never do.
    """

    def __init__(self, student: Encoder, predecessor: Encoder, kept: list[int], above: int, device: torch.device):
        """Let the predecessor's modules, in eval mode, run in the place of the student's layers above a boundary."""
        every = predecessor.model.get_submodule(predecessor.anatomy.layers)
        layers = student.model.get_submodule(student.anatomy.layers)
        self.now: dict[int, bool] = {}
        for below, layer in pairwise([0, *kept]):
            if layer > above:
                self.now[layer] = False
                predecessors = [every[position].to(device).eval() for position in range(below, layer)]
                self._cover(layers[layer - 1], predecessors, layer)

    def _cover(self, successor: nn.Module, predecessors: list[nn.Module], layer: int) -> None:
        """Make a layer run its predecessors where `now` says so; its parameters keep their names."""
        own = successor.forward

        def forward(*inputs, **named):
            if not (successor.training and self.now[layer]):
                return own(*inputs, **named)
            output = None
            for predecessor in predecessors:
                if output is not None:
                    state = output[0] if isinstance(output, tuple) else output
                    inputs, named = ((state, *inputs[1:]), named) if inputs else ((), named | {"hidden_states": state})
                output = predecessor(*inputs, **named)
            return output

        successor.forward = forward
