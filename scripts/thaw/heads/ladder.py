"""The ladder side network (Sung et al. 2022) as a combination of layers, in the place of the last one.

S sequences, T tokens, d width, w width of the network, K boundaries that are read.
"""

from pathlib import Path

import torch

from thaw.core.errors import UserError
from thaw.encoders import dropout
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.heads.combination import Combination
from thaw.heads.ladder_network import LadderNetwork
from thaw.heads.ladder_pruning import copy_pruned_layers
from thaw.heads.operations import attention, matrix
from thaw.schema.layers import LadderConfig


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

        Raises UserError for an encoder with inserts, and as `thaw.heads.ladder_pruning.copy_pruned_layers` does.
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
