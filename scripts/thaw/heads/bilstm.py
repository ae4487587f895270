"""A BiLSTM over the words of a sentence or over the tokens of a text, then a linear head.

B examples, S sequences, N of them and n tokens or words of the longest, d width, h width of a direction, k layers.
Padding has no part in them.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from thaw.compute_cost.flops import bilstm
from thaw.declarations.heads import BiLstmOptions
from thaw.features.batch import Batch
from thaw.heads.linear import LinearHead
from thaw.schema.head import HeadConfig


class PackedBiLstm(nn.Module):
    """A BiLSTM with dropout between its layers (Hochreiter and Schmidhuber 1997; Graves and Schmidhuber 2005)."""

    def __init__(self, width: int, size: int, layers: int = 1, dropout: float = 0.0):
        """Make the layers, of `size` h in each direction."""
        super().__init__()
        dropout = dropout if layers > 1 else 0.0
        self.lstm = nn.LSTM(width, size, layers, batch_first=True, bidirectional=True, dropout=dropout)

    def forward(self, states: torch.Tensor, mask: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Return the top layer's states [N, n, 2h], forward half first, of states [N, n, d]; zero after the end.

        The end of a sequence is its last position with mask True; a sequence without one is read as its first
        position. Computed in float32 under autocast too, since rounding adds up along a sequence. `lengths` [N] are
        those ends, on the CPU, where packing wants them; without them a GPU is waited for.
        """
        lengths = ends(mask).cpu() if lengths is None else lengths
        packed = pack_padded_sequence(states.float(), lengths, batch_first=True, enforce_sorted=False)
        with torch.autocast(states.device.type, enabled=False):
            return pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=states.shape[1])[0]

    def whole(self, states: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return where each direction has read all, both [N, h], of what `forward` returned: its last, its first."""
        forward, backward = states.chunk(2, -1)
        last = (ends(mask) - 1).view(-1, 1, 1).expand(-1, 1, forward.shape[-1])
        return forward.gather(1, last).squeeze(1), backward[:, 0]


def ends(mask: torch.Tensor) -> torch.Tensor:
    """Return the length [N] of each sequence up to its last True in mask [N, n], at least 1."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return (places * mask).amax(1).clamp(min=1)


class BiLstmHead(LinearHead):
    """Dropout and layers of BiLSTM below a linear head (on words: Peters et al. 2019 and Wang et al. 2019 for NER).

    A word without a piece between other words reads the first token's state; those after the last seen one are
    not read.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        chosen = BiLstmOptions.model_validate(entry.options)
        super().__init__(entry, 2 * chosen.size, outputs, task_type, separate_encoding)
        self.recurrent = PackedBiLstm(width, chosen.size, chosen.layers, entry.dropout)
        self.initialise()

    def context(self, states: torch.Tensor, mask: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """Return the states [N, n, 2h] of the BiLSTM's top layer."""
        return self.recurrent(self.dropout(states), mask, ends(counted))

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of the BiLSTM on all tokens, or all seen words, without padding."""
        lstm, seen = self.recurrent.lstm, batch.first_pieces >= 0 if self.words else batch.mask
        return bilstm(lstm.input_size, lstm.hidden_size, lstm.num_layers, int(seen.sum()))
