"""Linear heads: one matrix and a bias on a pooled text, on two texts compared, or on the first piece of each word.

B examples, S sequences (B; 2B where the texts of pairs are read separately), T tokens, W words, d width, C outputs, F
width of what the matrix reads: d, 4d for two texts, 1 for their cosine.
"""

import torch
from torch import nn
from torch.nn import functional

from thaw.compute_cost.flops import matrix
from thaw.declarations.heads import HEAD_KINDS, MlpOptions
from thaw.declarations.task_types import WORD_TYPES
from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
from thaw.heads.pooling import Pooler, make_pooling, word_states
from thaw.schema.head import HeadConfig, as_list


class LinearHead(VectorHead):
    """Dropout, then `output` [C, F], by default initialised from N(0, 0.02), as in BERT."""

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the pooling (none for words) and the output layer, for tokens or words of this width."""
        pooling = entry.separate_pooling if separate_encoding else entry.pooling
        words = task_type in WORD_TYPES
        pooled = width * (1 if words else len(as_list(pooling)))
        super().__init__(entry, self.reads(pooled, separate_encoding), outputs, task_type, separate_encoding)
        self.pooling: nn.Module = nn.Identity() if words else make_pooling(pooling, width)
        self.initialise()

    @staticmethod
    def reads(width: int, separate_encoding: bool) -> int:
        return 4 * width if separate_encoding else width

    @property
    def constant_vectors(self) -> bool:
        """Whether its vectors depend on no trained parameter; unknown for a custom head."""
        kind = HEAD_KINDS.get(self.entry.kind)
        learned = [*self.combination.parameters(), *self.pooling.parameters()]
        return kind is not None and kind.constant_vectors and not learned

    def context(self, states: torch.Tensor, mask: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """Return tokens or words [N, n, D] that have seen each other, of states [N, n, d] with their mask.

        `counted` is the mask on the CPU. Here they stay as they are.
        """
        return states

    def vectors(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        mask = batch.first_pieces >= 0 if self.words else batch.mask
        counted = mask
        if batch.origin is not None:
            counted = batch.host.first_pieces >= 0 if self.words else batch.host.mask
        if self.words:
            return self.context(word_states(states, batch), mask, counted)
        return self.of_pooled(self.pooling(self.context(states, mask, counted), mask))

    def of_pooled(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return what the matrix reads [B, F] of the pooled vectors [S, D] of texts."""
        return self.compare(*pooled.view(-1, 2, pooled.shape[-1]).unbind(1)) if self.separate_encoding else pooled

    def vector_flops(self, batch: Batch) -> float:
        """Return the operations of a pretrained pooler's matrix; other poolings have none that is counted."""
        if not isinstance(self.pooling, Pooler):
            return 0.0
        width = self.pooling.dense.in_features
        return matrix(width, width, len(batch.mask))

    def compare(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Return [u; v; |u - v|; u * v], [B, 4d], of two texts' vectors [B, d] (Mou et al. 2016)."""
        return torch.cat([u, v, (u - v).abs(), u * v], -1)


class CosineHead(LinearHead):
    """The same on one number, the cosine of the two texts: a correlation with it equals that of the cosine baseline."""

    @staticmethod
    def reads(width: int, separate_encoding: bool) -> int:
        return 1

    def compare(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Return the cosine [B, 1] of two texts' vectors [B, d]."""
        return functional.cosine_similarity(u, v, dim=-1).unsqueeze(-1)


class MlpHead(LinearHead):
    """A hidden layer below the output.

    With ReLU, as Wang et al. 2019 put it on a BERT that is fine-tuned alone; with tanh and as wide as the encoder it is
    the head of RoBERTa (transformers, RobertaClassificationHead).
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the pooling, the hidden layer and the output."""
        super().__init__(entry, width, outputs, task_type, separate_encoding)
        options = MlpOptions.model_validate(entry.options)
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
