"""A conditional random field over the words' linear scores: a sentence's tags are chosen together.

B sentences, W words of the longest, C tags.
"""

import torch

from thaw.features.batch import Batch
from thaw.heads.base import IGNORED, NO_TAG
from thaw.heads.chain import LinearChainCrf
from thaw.heads.linear import LinearHead
from thaw.schema.head import HeadConfig


class CrfHead(LinearHead):
    """A linear head whose logits are the emissions of a chain (Lample et al. 2016, section 2.2)."""

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make what a head on words has, and the chain."""
        super().__init__(entry, width, outputs, task_type, separate_encoding)
        self.spans = task_type == "spans"
        self.chain = LinearChainCrf(outputs)

    def set_labels(self, labels: list[str]) -> None:
        """Restrict predictions to what BIO allows, where the tags are spans."""
        if self.spans:
            self.chain.constrain(labels)

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the negative log-likelihood of the sentences by word, over words whose target is not -100."""
        mask = targets != IGNORED
        likelihood = self.chain.log_likelihood(logits.float(), targets, mask)
        return -likelihood.sum() / mask.sum().clamp(min=1)

    def decode(self, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the best sequence of tags [B, W] of each sentence, -1 for unseen words."""
        seen = batch.first_pieces >= 0
        return self.chain.best(logits.float(), seen).masked_fill(~seen, NO_TAG)

    def flops(self, batch: Batch) -> float:
        """Return the operations on a batch; one pass over all pairs of tags at each word counts as a product."""
        return super().flops(batch) + 2.0 * self.outputs**2 * batch.first_pieces.numel()
