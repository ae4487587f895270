"""The ladder side network (Sung et al. 2022) as a combination of layers, in the place of the last one.

With `start: pruned` it begins as the encoder's own layers, pruned by structure (the paper's section on pruning).
What is kept has the largest weights, by the sum of their absolute values, ties by place: the authors' code offers that
and Fisher information, which the paper takes and which needs data. One set of w hidden dimensions is kept in all
layers, so that states of different blocks can be added; projections begin as the choice of these dimensions, where the
authors' begin at random. With w = d, all attention heads and every gate at 0 the network is the encoder.

S sequences, T tokens, d width, w width of the network, K boundaries that are read.
L layers, d width, H attention heads of s = d / H, f feed-forward width; of the network w, h, e = w / h and g.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from thaw.core.boundaries import spaced
from thaw.schema.keys import Key
from thaw.schema.layers import NORM, CombinationKind, LayersConfig


class LadderConfig(LayersConfig):
    """A ladder side network: a narrow transformer that reads all layers and trains with the head (Sung et al. 2022)."""

    learned: ClassVar[bool] = True
    combine: Literal["ladder"] = Field(description="ladder: ladder side network (Sung et al. 2022)")
    every: Annotated[int, Key(unit="layers")] = Field(
        1, ge=1, description="2 reads every second layer from the top, and the embeddings"
    )
    norm: bool = NORM
    dropout: Annotated[float, Key(unit="probability")] = Field(
        0.0, ge=0, lt=1, description="dropout of the projected layers and in the blocks"
    )
    width: int | None = Field(None, ge=1, description="width of its blocks; null: an eighth of the encoder's")
    heads: int = Field(4, ge=1, description="attention heads of each block; they divide its width")
    feed_forward: float = Field(
        4.0, gt=0, description="width of the feed-forward part of a block, as a multiple of its width"
    )
    gates: Literal["learned", "fixed"] = Field(
        "learned", description="share of a layer in what its block reads; fixed: 0.5"
    )
    temperature: float = Field(
        0.1, gt=0, description="the share is sigmoid(alpha / temperature), and alpha begins at 0"
    )
    start: Literal["random", "pruned"] = Field(
        "random",
        description="pruned starts each block from the largest weights of the encoder's own layer (encoders with the "
        "layers of BERT)",
    )

    def meaningless(self) -> dict[str, str]:
        """Fixed gates have no temperature."""
        return {"temperature": "with fixed gates"} if self.gates == "fixed" else {}

    @model_validator(mode="after")
    def _heads_divide_the_width(self):
        if self.width and self.width % self.heads:
            raise ValueError(f"width {self.width} is not divisible by {self.heads} heads")
        return self

    def block_width(self, wide: int) -> int:
        """Return the width of the blocks on an encoder of width d.

        An eighth of d that the attention heads do not divide is a ValueError.
        """
        width = self.width or wide // 8
        if not width or width % self.heads:
            raise ValueError(
                f"layers: a ladder of width {width} (an eighth of the encoder's) cannot have {self.heads} heads; "
                "give a width that its heads divide"
            )
        return width

    def check_width(self, width: int) -> None:
        """Raise ValueError for an encoder of whose width the heads do not divide an eighth."""
        self.block_width(width)

    def reads(self, layers: int) -> list[int]:
        """Return the boundaries that are read of an encoder of L layers; an encoder without any is a ValueError."""
        if not layers:
            raise ValueError("layers: combine: ladder needs an encoder with layers, and this one has none")
        return spaced(self.every, layers)


COMBINATIONS = {"ladder": CombinationKind("thaw.papers.ladder:Ladder", LadderConfig)}


from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from thaw.compute_cost.flops import attention, matrix
from thaw.core.errors import UserError
from thaw.encoders import dropout
from thaw.encoders.sublayers import is_norm
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.heads.combination import Combination
from thaw.papers import ladder_network
from thaw.papers.ladder_network import LadderBlock, LadderNetwork


class Ladder(Combination):
    """A narrow transformer that reads the layers of the encoder and trains with the head.

    No layer of the encoder is computed again, and no gradient goes through one. As in the authors' code for encoders
    the block at layer n reads that layer's output and the block below it, and blocks have their norms after attention
    and feed-forward part; dropped layers have no block.
    """

    def __init__(self, entry: LadderConfig, width: int, read: list[int]):
        """Make the network, of random numbers as yet."""
        super().__init__(entry, width, read)
        self.pruned = entry.start == "pruned"
        self.network = LadderNetwork(len(read), width, *network_sizes(entry, width), **network_settings(entry))
        dropout.replace(self.network)

    def start(self, encoder: Path, trained: dict[str, torch.Tensor] | None = None, inserts: bool = False) -> None:
        """Take the numbers of the encoder that training starts from, where the entry says so; see `Combination`.

        Raises UserError for an encoder with inserts, and as `copy_pruned_layers` does.
        """
        if not self.pruned:
            return
        if inserts:
            raise UserError(
                "layers: start: pruned takes the weights of layers without inserts, and the run that this one starts "
                "after left inserts; write start: random"
            )
        whole = Encoder.load(encoder)
        whole.put(trained or {})
        copy_pruned_layers(self.network, whole, self.read[1:])

    @staticmethod
    def network_file() -> str:
        """Return the file that an export takes along, which imports nothing but torch."""
        return ladder_network.__file__

    @staticmethod
    def exported(entry: LadderConfig, width: int, read: int) -> dict:
        """Return what that file makes the network of. Args: the entry; width d; number K of boundaries."""
        return {"sizes": [read, width, *network_sizes(entry, width)], "settings": network_settings(entry)}

    def forward(self, boundaries: dict[int, torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """Return the state [S, T, d] of boundaries by their number."""
        return self.network([boundaries[n] for n in self.read], mask)

    def flops(self, batch: Batch) -> float:
        """Return the operations of projections and blocks on a batch with its padding."""
        sequences, longest = batch.mask.shape
        tokens, network = sequences * longest, self.network
        width, wide = network.up.in_features, network.up.out_features
        inner = network.blocks[0].inner.out_features
        block = matrix(width, 4 * width + 2 * inner, tokens) + sequences * attention(width, longest, longest)
        return (len(self.read) + 1) * matrix(wide, width, tokens) + len(network.blocks) * block


def network_sizes(entry: LadderConfig, wide: int) -> tuple[int, int, int]:
    """Return the width, the attention heads and the width of the feed-forward parts for an encoder of width d."""
    width = entry.block_width(wide)
    return width, entry.heads, round(width * entry.feed_forward)


def network_settings(entry: LadderConfig) -> dict:
    """Return what else `LadderNetwork` takes."""
    learned = entry.gates == "learned"
    return {"dropout": entry.dropout, "temperature": entry.temperature, "gates": learned, "norm": entry.norm}


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
