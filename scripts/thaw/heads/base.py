"""What every head is: states in, logits out, a loss, and answers.

B examples, S sequences (B; 2B where the texts of pairs are read apart), T tokens, W words, d width, C outputs (classes
or tags; 1 for a score).
"""

import torch
from torch import nn
from torch.nn import functional

from thaw import settings
from thaw.features.batch import Batch

IGNORED = -100  # target of a word that gives no loss: padding, or without a piece
NO_TAG = -1  # answer for a word that the model never saw (thaw.analysis.metrics counts it as wrong)


class Head(nn.Module):
    """The task-specific module on top of the encoder.

    A kind of head overrides `forward`; one with a loss of its own (a CRF) `loss` and `decode`
    too. `width` is that of the vectors which its last layer reads.
    """

    def __init__(self, entry: settings.Head, width: int, outputs: int, task_type: str, apart: bool = False):
        """Keep what all heads need to know.

        Args: entry of the catalogue; width d of the states; number of outputs C; type of the task; whether the texts of
        a pair are read apart.
        """
        super().__init__()
        self.entry, self.width, self.outputs, self.apart = entry, width, outputs, apart
        self.words = task_type in ("tagging", "spans")
        self.scores = task_type.endswith("regression")

    def forward(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return logits of states [S, T, d]: classes [B, C], scores [B], or tags [B, W, C]."""
        raise NotImplementedError

    def start(self, targets) -> None:
        """Look at all training targets (encoded) before the first update; by default do nothing."""

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of a batch, in float32.

        Cross-entropy over examples, or over all words of the batch whose target is not -100 (0 where there is
        none); mean squared error for scores.
        """
        logits = logits.float()
        if self.scores:
            return functional.mse_loss(logits, targets.float())
        if not self.words:
            return functional.cross_entropy(logits, targets)
        total = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
        return total / (targets != IGNORED).sum().clamp(min=1)

    def decode(self, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the answers: class indices [B], scores [B], or tag indices [B, W], -1 for unseen words.

        Tags are the best of each word on its own: a sequence that BIO forbids is left to the metric.
        """
        if self.scores:
            return logits.float()
        best = logits.argmax(-1)
        return best.masked_fill(batch.first_pieces < 0, NO_TAG) if self.words else best


def word_targets(tags: list[list[int]], first_pieces: torch.Tensor) -> torch.Tensor:
    """Return tag targets [B, W]: -100 for padding and for words without a piece (first_pieces -1)."""
    targets = torch.full(first_pieces.shape, IGNORED)
    for row, sentence in enumerate(tags):
        targets[row, : len(sentence)] = torch.tensor(sentence)
    return targets.masked_fill(first_pieces < 0, IGNORED)
