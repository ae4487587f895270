"""Starting a model at a boundary: stubs in the place of what is not run, hooks that put the state in.

B examples, T tokens, d width, L layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:  # a merged folder holds a copy of this file, which runs without Thaw
    from thaw.encoders.anatomy import Anatomy


class IdentityLayer(nn.Module):
    """Replaces a layer that is not run: returns its input, in the form that the layers return.

    It carries the layer's plain attributes, which some models read in their loop (ModernBERT's attention_type).
    """

    def __init__(self, layer: nn.Module, form: int):
        super().__init__()
        for name, value in vars(layer).items():
            if not name.startswith("_") and isinstance(value, (str, int, float, bool)) and name != "training":
                setattr(self, name, value)
        self.form = form

    def forward(self, *inputs, **named):
        """Return the hidden state [B, T, d] as it came."""
        state = inputs[0] if inputs else named["hidden_states"]
        return (state, *[None] * (self.form - 1)) if self.form else state


class ZeroEmbeddings(nn.Module):
    """Replaces a part that is not run and returns [B, T, k]: zeros that take no memory."""

    def __init__(self, width: int, entry: StateInjector):
        super().__init__()
        self.width = width
        self.entry = entry

    def forward(self, *inputs, **named):
        """Return zeros [B, T, k] of the examples that the entry holds."""
        state = self.entry.state
        return state.new_zeros(1).expand(*state.shape[:2], self.width)


class StateInjector:
    """The hidden state [B, T, d] that a resumed model starts from, put in by forward pre-hooks."""

    def __init__(self):
        self.state: torch.Tensor | None = None

    def __call__(self, module, inputs: tuple, named: dict):
        """Give a module the state in the place of the hidden state that it was called with."""
        if inputs:
            return (self.state, *inputs[1:]), named
        return inputs, named | {"hidden_states": self.state}

    def at_owner(self, module, inputs: tuple, named: dict):
        """Do the same for the module that holds the layers, unless it transforms what it is given before layer 1."""
        given = inputs[0] if inputs else named.get("hidden_states")
        if torch.is_tensor(given) and self.state is not None and given.shape == self.state.shape:
            return self(module, inputs, named)
        return None


def drop_layers(model: nn.Module, anatomy: Anatomy, kept: list[int]) -> None:
    """Put a layer that passes its input on in the place of each that is not kept; kept ones are counted from 1."""
    layers: Any = model.get_submodule(anatomy.layers)
    for position, layer in enumerate(layers):
        if position + 1 not in kept:
            layers[position] = IdentityLayer(layer, anatomy.form)


def truncate_below(model: nn.Module, anatomy: Anatomy, start: int, entry: StateInjector) -> list:
    """Remove the layers below boundary `start` and feed the state in there; returns the hooks.

    Positions in the layer list stay as they are: models read attention patterns by position. The state enters layer
    start + 1 itself, and not through the last stub, since a model may change what its first layer returns
    (DeBERTa-v2's `conv`); for boundary 0 it enters the module that holds the layers as well, which that `conv` reads.
    """
    layers: Any = model.get_submodule(anatomy.layers)
    for position in range(start):
        if not isinstance(layers[position], IdentityLayer):
            layers[position] = IdentityLayer(layers[position], anatomy.form)
    for part, width in anatomy.outputs.items():
        if anatomy.parts[part] <= start:
            owner, _, name = part.rpartition(".")
            setattr(model.get_submodule(owner), name, ZeroEmbeddings(width, entry))
    hooks = [layers[start].register_forward_pre_hook(entry, with_kwargs=True)]
    if start == 0 and anatomy.owner:
        holder = model.get_submodule(anatomy.owner)
        hooks.append(holder.register_forward_pre_hook(entry.at_owner, with_kwargs=True))
    return hooks
