"""Attention heads taken out of an encoder, so that it is smaller and faster, and computes what it does without them.

L layers, H heads of each, d width.
"""

import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.encoders.transformers import Encoder


def take_out(encoder: Encoder, removed: set[int]) -> None:
    """Take heads out of the matrices of queries, keys, values and of the output of their layers.

    A layer keeps one head at least: of one that would lose all, the first stays with an output of 0. Args: indices of
    heads, counted through all layers. Raises UserError for an encoder whose heads share a matrix or are a fixed number.
    """
    layers = encoder.model.get_submodule(encoder.anatomy.layers)
    count = getattr(encoder.model.config, "num_attention_heads", 0)
    for number, (layer, matrices) in enumerate(zip(layers, encoder.sublayers, strict=True)):
        if not count or matrices.fused or set(matrices.roles) != set("qkv"):
            raise UserError("head_removal: this encoder has no separate queries, keys and values in each layer")
        kept = [head for head in range(count) if number * count + head not in removed]
        for one in matrices.heads(kept or [0], count):
            _keep(layer.get_submodule(one.module), one.tensor, one.dimension, one.places)
        if not kept:
            nn.init.zeros_(layer.get_submodule(matrices.output).weight)


def _keep(module: nn.Linear, name: str, dimension: int, places: list[int]) -> None:
    """Keep some rows (dimension 0) or columns (1) of a matrix, or places of its bias."""
    tensor = getattr(module, name).detach().index_select(dimension, torch.tensor(places, device=module.weight.device))
    setattr(module, name, nn.Parameter(tensor.contiguous(), requires_grad=False))
    module.out_features, module.in_features = module.weight.shape
