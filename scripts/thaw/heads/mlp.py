"""Two fully connected layers on a pooled text, on two texts compared, or on the first piece of each word.

B examples, S sequences (B; 2B where the texts of pairs are read separately), T tokens, W words, d width, F width of
what the hidden layer reads (d, or 4d for two texts), h its own.
"""

import torch
from torch import nn

from thaw.heads.linear import LinearHead
from thaw.heads.operations import matrix
from thaw.schema.head import HeadConfig


class MlpHead(LinearHead):
    """A hidden layer below the output.

    With ReLU, as Wang et al. 2019 put it on a BERT that is fine-tuned alone; with tanh and as wide as the encoder it is
    the head of RoBERTa (transformers, RobertaClassificationHead).
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the pooling, the hidden layer and the output."""
        super().__init__(entry, width, outputs, task_type, separate_encoding)
        options = entry.kind_options
        self.activation = {"relu": torch.relu, "tanh": torch.tanh}[options.activation]
        size = width if options.size == "encoder" else options.size
        self.hidden, self.width = nn.Linear(self.width, size), size
        self.output = nn.Linear(self.width, outputs)
        self.initialise()

    def logits(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the logits [..., C], or the scores [...], of vectors [..., F] by way of the hidden layer."""
        return super().logits(self.activation(self.hidden(self.dropout(vectors))))

    def logit_flops(self, count: int) -> float:
        """Return the operations of both layers on so many vectors."""
        return matrix(self.hidden.in_features, self.width, count) + super().logit_flops(count)
