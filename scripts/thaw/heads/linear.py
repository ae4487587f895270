"""The linear head: one matrix and a bias on a pooled text, or on the first piece of each word.

B examples, T tokens, W words, d width, C outputs.
"""

import numpy as np
import torch
from torch import nn

from thaw import settings
from thaw.features.batch import Batch
from thaw.heads.base import Head
from thaw.heads.pooling import POOLINGS, word_states


class LinearHead(Head):
    """Dropout, then `output` [C, d]; weights start normal with deviation 0.02, biases 0 (as in BERT)."""

    def __init__(self, entry: settings.Head, width: int, outputs: int, task_type: str):
        """Make the pooling (none for words) and the output layer."""
        super().__init__(entry, width, outputs, task_type)
        self.pooling = None if self.words else POOLINGS[entry.pooling](width)
        self.dropout = nn.Dropout(entry.dropout)
        self.output = nn.Linear(width, outputs)
        nn.init.normal_(self.output.weight, std=0.02)
        nn.init.zeros_(self.output.bias)

    def start(self, targets) -> None:
        """For scores, begin at their mean over train: the first updates need not find it."""
        if self.scores:
            nn.init.constant_(self.output.bias, float(np.mean(targets)))

    def forward(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return logits of states [B, T, d]: classes [B, C], scores [B], or tags [B, W, C]."""
        vectors = word_states(states, batch) if self.words else self.pooling(states, batch.mask)
        logits = self.output(self.dropout(vectors))
        return logits.squeeze(-1) if self.scores else logits
