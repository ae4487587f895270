"""The ladder side network (Sung et al. 2022) as a combination of layers, in the place of the last one.

S sequences, T tokens, d width, w width of the network, K boundaries that are read, L layers.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from thaw.core.boundaries import uppermost
from thaw.schema.keys import Key
from thaw.schema.layers import NORM, CombinationKind, LayersConfig


class LadderConfig(LayersConfig):
    """A ladder side network: a narrow transformer that reads all layers and trains with the head (Sung et al. 2022)."""

    learned: ClassVar[bool] = True
    combine: Literal["ladder"] = Field(description="ladder: ladder side network (Sung et al. 2022)")
    norm: bool = NORM
    dropout: Annotated[float, Key(unit="probability")] = Field(
        0.0, ge=0, lt=1, description="dropout of the projected layers and in the blocks"
    )
    width: int | None = Field(None, ge=1, description="width of its blocks; null: an eighth of the encoder's")
    heads: int = Field(4, ge=1, description="attention heads of each block; they divide its width")
    feed_forward: float = Field(
        4.0, gt=0, description="width of the feed-forward part of a block, as a multiple of its width"
    )
    temperature: float = Field(
        0.1, gt=0, description="the share is sigmoid(alpha / temperature), and alpha begins at 0"
    )

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
        return uppermost(None, layers)


COMBINATIONS = {"ladder": CombinationKind("thaw.papers.ladder:Ladder", LadderConfig)}


import torch

from thaw.compute_cost.flops import attention, matrix
from thaw.encoders import dropout
from thaw.features.batch import Batch
from thaw.heads.combination import Combination
from thaw.papers import ladder_network
from thaw.papers.ladder_network import LadderNetwork


class Ladder(Combination):
    """A narrow transformer that reads the layers of the encoder and trains with the head.

    No layer of the encoder is computed again, and no gradient goes through one. As in the authors' code for encoders
    the block at layer n reads that layer's output and the block below it, and blocks have their norms after attention
    and feed-forward part; dropped layers have no block.
    """

    def __init__(self, entry: LadderConfig, width: int, read: list[int]):
        """Make the network, of random numbers as yet."""
        super().__init__(entry, width, read)
        self.network = LadderNetwork(len(read), width, *network_sizes(entry, width), **network_settings(entry))
        dropout.replace(self.network)

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
    return {"dropout": entry.dropout, "temperature": entry.temperature, "norm": entry.norm}
