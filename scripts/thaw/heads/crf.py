"""A linear-chain conditional random field over the words' scores: a sentence's tags are chosen together.

B sentences, W words of the longest, C tags. Emissions [B, W, C], mask [B, W] bool: the words that are in the chain;
what is masked is left out, at any position. Each sentence needs at least one word in the chain, or has a
log-likelihood of 0.
"""

import torch
from torch import nn

from thaw.features.batch import Batch
from thaw.heads.base import IGNORED, NO_TAG
from thaw.heads.bilstm import BiLstmHead
from thaw.heads.linear import LinearHead
from thaw.schema.head import HeadConfig

FORBIDDEN = -1e4  # added to what the constraints exclude; finite, so that some sequence always remains


class LinearChainCrf(nn.Module):
    """Scores of a tag after another, of a tag at the start, and at the end (Lafferty et al. 2001; Lample et al. 2016).

    They start uniform in -0.1 to 0.1. The constraints hold for predictions alone: in training a gold sequence
    may break them, where a word between two others was not seen.
    """

    def __init__(self, tags: int):
        """Make the scores: transitions [C, C] from row to column, start [C], end [C]."""
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(tags, tags))
        self.start, self.end = nn.Parameter(torch.empty(tags)), nn.Parameter(torch.empty(tags))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)
        self.forbidden: torch.Tensor
        self.forbidden_start: torch.Tensor
        self.register_buffer("forbidden", torch.zeros(tags, tags), persistent=False)
        self.register_buffer("forbidden_start", torch.zeros(tags), persistent=False)

    def constrain(self, labels: list[str]) -> None:
        """Restrict predictions to valid BIO: I-X only after B-X or I-X, never at the start."""
        for after, label in enumerate(labels):
            if label.startswith("I-"):
                self.forbidden_start[after] = FORBIDDEN
                for before, earlier in enumerate(labels):
                    if earlier not in (label, f"B-{label[2:]}"):
                        self.forbidden[before, after] = FORBIDDEN

    def log_likelihood(self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the log-likelihood [B] of tags [B, W]: their score less the logarithm of the sum over all sequences.

        The sum is taken by the forward algorithm in log space. The score of the tags is summed separately on a CPU,
        and at once on a GPU, where each word's few operations would wait for their launches.
        """
        tags, at_once = tags.masked_fill(~mask, 0), emissions.device.type != "cpu"
        own = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        score, total = torch.zeros_like(own[:, 0]), torch.zeros_like(emissions[:, 0])
        begun, last = torch.zeros_like(mask[:, 0]), torch.zeros_like(tags[:, 0])
        for word in range(emissions.shape[1]):
            now, seen = tags[:, word], mask[:, word]
            if not at_once:
                step = torch.where(begun, self.transitions[last, now], self.start[now])
                score = torch.where(seen, score + step + own[:, word], score)
            paths = (total.unsqueeze(2) + self.transitions).logsumexp(1)
            reached = torch.where(begun.unsqueeze(1), paths, self.start) + emissions[:, word]
            total = torch.where(seen.unsqueeze(1), reached, total)
            last, begun = torch.where(seen, now, last), begun | seen
        score = self.score(emissions, tags, mask) if at_once else score + self.end[last]
        return torch.where(begun, score - (total + self.end).logsumexp(1), 0.0)

    def score(self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the score [B] of tags [B, W], which are real ones where the mask is False too."""
        words = torch.arange(mask.shape[1], device=mask.device)
        latest = words.where(mask, -1).cummax(1).values  # the last seen word up to each, -1 before the first
        before = torch.cat([torch.full_like(latest[:, :1], -1), latest[:, :-1]], 1)
        moved = self.transitions[tags.gather(1, before.clamp(min=0)), tags]
        steps = torch.where(before < 0, self.start[tags], moved)
        own = emissions[torch.arange(len(tags), device=mask.device).unsqueeze(1), words, tags]
        last = tags.gather(1, latest[:, -1:].clamp(min=0)).squeeze(1)
        return (steps + own).masked_fill(~mask, 0.0).sum(1) + self.end[last]

    def best(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the best sequence of tags [B, W] within the constraints, by Viterbi; any tag where mask is False."""
        transitions, start = self.transitions + self.forbidden, self.start + self.forbidden_start
        total, begun, origins = torch.zeros_like(emissions[:, 0]), torch.zeros_like(mask[:, 0]), []
        stay = torch.arange(len(start), device=mask.device).expand_as(total)
        for word in range(emissions.shape[1]):
            seen = mask[:, word, None]
            value, origin = (total.unsqueeze(2) + transitions).max(1)
            reached = torch.where(begun.unsqueeze(1), value, start) + emissions[:, word]
            total = torch.where(seen, reached, total)
            origins.append(torch.where(seen & begun.unsqueeze(1), origin, stay))
            begun = begun | seen[:, 0]
        tag = (total + self.end).argmax(1)
        tags = []
        for origin in reversed(origins):
            tags.append(tag)
            tag = origin.gather(1, tag.unsqueeze(1)).squeeze(1)
        return torch.stack(tags[::-1], 1)


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
        seen = batch.first_pieces >= 0
        return self.chain.best(logits.float(), seen).masked_fill(~seen, NO_TAG)

    def flops(self, batch: Batch) -> float:
        """Return the operations on a batch; one pass over all pairs of tags at each word counts as a product."""
        return super().flops(batch) + 2.0 * self.outputs**2 * batch.first_pieces.numel()


class BiLstmCrfHead(CrfHead, BiLstmHead):
    """`BiLstmHead` as a chain's emissions: the tagger of Lample et al. 2016, and of Peters et al. 2019 for NER."""
