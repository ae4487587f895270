"""A side network that begins as the encoder's own layers, pruned by structure (Sung et al. 2022, section on pruning).

What is kept has the largest weights, by the sum of their absolute values, ties by place: the authors' code offers that
and Fisher information, which the paper takes and which needs data. One set of w hidden dimensions is kept in all
layers, so that states of different blocks can be added; projections begin as the choice of these dimensions, where the
authors' begin at random. With w = d, all attention heads and every gate at 0 the network is the encoder.

L layers, d width, H attention heads of s = d / H, f feed-forward width; of the network w, h, e = w / h and g.
"""

from dataclasses import dataclass

import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.encoders.sublayers import is_norm
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.heads.ladder_network import LadderBlock, LadderNetwork

CLOSE = 1e-3  # by which a layer that is computed as BERT's may differ from the encoder's own, as a share of its states

TRIED = (2, 7)  # texts and tokens that it is tried on


@dataclass(frozen=True)
class Layer:
    """The modules of an encoder's layer, under the names that they have in a LadderBlock."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear
    inner: nn.Linear
    outer: nn.Linear
    attention_norm: nn.LayerNorm
    norm: nn.LayerNorm


@dataclass(frozen=True)
class Kept:
    """What a block keeps of a layer, as places.

    dimensions: hidden dimensions [w]; matched: units of queries and keys [w]; read: units of values [w]; units of the
    feed-forward part [g].
    """

    dimensions: torch.Tensor
    matched: torch.Tensor
    read: torch.Tensor
    units: torch.Tensor


@torch.no_grad()
def copy_pruned_layers(network: LadderNetwork, encoder: Encoder, numbers: list[int]) -> None:
    """Give each block the weights of one of the encoder's layers, as far as they fit.

    Args: numbers of the layers, the lowest first. Raises UserError for an encoder whose layers compute otherwise than a
    block does, or that is smaller than the network.
    """
    layers = layers_like_bert(encoder)
    count = encoder.model.config.num_attention_heads
    check_sizes(network, layers[0], count)
    chosen = [layers[number - 1] for number in numbers]
    dimensions = largest(sum(map(use_of_dimensions, chosen)), network.up.in_features)
    for block, layer in zip(network.blocks, chosen, strict=True):
        fill(block, layer, largest_units(layer, dimensions, count, block))
    picked = torch.eye(encoder.width)[dimensions]
    for projection, weight in [(network.up, picked.T), *((down, picked) for down in network.down)]:
        projection.weight.copy_(weight)
        projection.bias.zero_()


def layers_like_bert(encoder: Encoder) -> list[Layer]:
    """Return the modules of all layers; layers that do not compute what a LadderBlock does are a UserError."""
    stack = encoder.model.get_submodule(encoder.anatomy.layers)
    layers = [modules_of(layer, parts) for layer, parts in zip(stack, encoder.sublayers, strict=True)]
    if not layers or None in layers or not computes_the_same(encoder, layers):
        raise UserError(
            f"layers: start: pruned needs an encoder whose layers are those of BERT (attention, feed-forward part with "
            f"GELU, a norm after each), and those of {encoder.model.config.model_type} are others; write start: random"
        )
    return layers


def modules_of(layer: nn.Module, parts) -> Layer | None:
    """Return the modules of a layer, None where it has others than BERT's. Args: layer; its Sublayers."""
    norms = [module for module in layer.modules() if is_norm(module)]
    paths = [*(parts.roles.get(role) for role in "qkv"), parts.output, *parts.feed_forward]
    if len(norms) != 2 or len(paths) != 6 or None in paths:
        return None
    modules = [*(layer.get_submodule(path) for path in paths), *norms]
    plain = all(type(module) is nn.Linear for module in modules[:6]) and all(type(m) is nn.LayerNorm for m in norms)
    return Layer(*modules) if plain and all(module.bias is not None for module in modules) else None


def computes_the_same(encoder: Encoder, layers: list[Layer]) -> bool:
    """Return whether blocks of the layers' whole weights give the encoder's own states of a few different tokens."""
    size = encoder.model.config.vocab_size
    ids = (torch.arange(TRIED[0] * TRIED[1]) * (size // 17) % size).view(TRIED)
    batch = Batch(ids, torch.ones_like(ids, dtype=torch.bool), None, None, torch.arange(len(ids)))
    below, count = encoder.boundaries(batch), encoder.model.config.num_attention_heads
    for number, layer in enumerate(layers):
        block = LadderBlock(encoder.width, count, layer.inner.out_features, 0.0)
        whole = [torch.arange(size) for size in (encoder.width,) * 3 + (layer.inner.out_features,)]
        fill(block, layer, Kept(*whole))
        expected = below[number + 1]
        if (block(below[number], batch.mask) - expected).abs().max() > CLOSE * expected.abs().max():
            return False
    return True


def check_sizes(network: LadderNetwork, layer: Layer, count: int) -> None:
    """Find out whether a network is as narrow as the encoder, or narrower. Args: network; a layer; its heads H."""
    width, block = layer.query.in_features, network.blocks[0]
    narrow = network.up.in_features
    sizes = {
        "width": (narrow, width),
        "heads": (block.heads, count),
        "width of an attention head": (narrow // block.heads, width // count),
        "width of the feed-forward part": (block.inner.out_features, layer.inner.out_features),
    }
    for name, (asked, there) in sizes.items():
        if asked > there:
            raise UserError(f"layers: start: pruned: {name} is {asked}, and the encoder's layers have {there}")


def use_of_dimensions(layer: Layer) -> torch.Tensor:
    """Return how large the weights are that read or write each hidden dimension [d]."""
    reading = (layer.query, layer.key, layer.value, layer.inner)
    written = sum(module.weight.abs().sum(1) for module in (layer.output, layer.outer))
    return written + sum(module.weight.abs().sum(0) for module in reading)


def largest_units(layer: Layer, dimensions: torch.Tensor, count: int, block: LadderBlock) -> Kept:
    """Return what a block keeps of a layer, by the weights that are left on the dimensions that are kept.

    Of the H attention heads the h with the largest weights, of each of them e units of queries and keys together, and e
    of values and the output together.
    """
    query, key, value, inner = (
        module.weight[:, dimensions].abs().sum(1) for module in (layer.query, layer.key, layer.value, layer.inner)
    )
    output, outer = (module.weight[dimensions].abs().sum(0) for module in (layer.output, layer.outer))
    matched, read = (query + key).view(count, -1), (value + output).view(count, -1)
    heads = largest((matched + read).sum(1), block.heads).tolist()
    each = len(dimensions) // block.heads
    units = [[head * matched.shape[1] + largest(use[head], each) for head in heads] for use in (matched, read)]
    return Kept(dimensions, *map(torch.cat, units), largest(inner + outer, block.inner.out_features))


def fill(block: LadderBlock, layer: Layer, kept: Kept) -> None:
    """Give a block the kept weights of a layer."""
    rows = {"query": kept.matched, "key": kept.matched, "value": kept.read, "inner": kept.units}
    for name, places in rows.items():
        copy(getattr(block, name), getattr(layer, name), places, kept.dimensions)
    copy(block.output, layer.output, kept.dimensions, kept.read)
    copy(block.outer, layer.outer, kept.dimensions, kept.units)
    for name in ("attention_norm", "norm"):
        copy(getattr(block, name), getattr(layer, name), kept.dimensions)


@torch.no_grad()
def copy(target: nn.Module, source: nn.Module, rows: torch.Tensor, columns: torch.Tensor | None = None) -> None:
    """Copy some rows, and of them some columns, of a module's weight, and these places of its bias."""
    weight = source.weight[rows] if columns is None else source.weight[rows][:, columns]
    target.weight.copy_(weight)
    target.bias.copy_(source.bias[rows])


def largest(values: torch.Tensor, count: int) -> torch.Tensor:
    """Return the places of the largest of some values [n], in rising order [count]; of equal ones the first."""
    return values.argsort(descending=True, stable=True)[:count].sort().values
