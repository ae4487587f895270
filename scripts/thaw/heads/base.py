"""The base of all heads: hidden states in, logits out, a loss, and predictions.

B examples, S sequences (B; 2B where the texts of pairs are read separately), T tokens, W words, d width, C outputs
(classes or tags; 1 for a score), F width of the vectors that a head's last matrix reads, M heads side by side.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from thaw.compute_cost.flops import matrix
from thaw.declarations.task_types import NO_TAG, PAIR_TYPES, TARGET_OF_TYPE
from thaw.features.batch import Batch
from thaw.schema.head import HeadConfig

if TYPE_CHECKING:
    from thaw.heads.combination import Combination

FORMER_NAMES = {"name_outputs": "set_labels", "start": "init_from_targets"}
IGNORED = -100  # target of a word that gives no loss: padding, or without a piece


def balanced_weights(targets: torch.Tensor, classes: int) -> torch.Tensor:
    """Return n / (k n_c) for each class [C], float32: n targets [N] of k classes, n_c of them of the class."""
    counts = torch.bincount(targets, minlength=classes)
    return (len(targets) / ((counts > 0).sum() * counts.clamp(min=1))).float()


class Head(nn.Module):
    """The task-specific module on top of the encoder.

    A kind of head overrides `forward`; one with a loss of its own (a CRF) `loss` and `decode`
    too. `width` is that of the vectors which its last layer reads.
    """

    @property
    def constant_vectors(self) -> bool:
        """Whether it is a `VectorHead` whose vectors nothing learned or random has a part in."""
        return False

    combination: "Combination"  # of the layers that it reads; `heads.registry` sets it

    def __init_subclass__(cls, **keywords):
        """Let a plug-in define, and call on its base, the methods of `FORMER_NAMES` by the names they once had."""
        super().__init_subclass__(**keywords)
        for former, name in FORMER_NAMES.items():
            if former in vars(cls) and name not in vars(cls):
                setattr(cls, name, vars(cls)[former])
            elif name in vars(cls) and former not in vars(cls):
                setattr(cls, former, vars(cls)[name])

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Keep what all heads need to know.

        Args: entry of the catalogue; width d of the states; number of outputs C; type of the task; whether the texts of
        a pair are read separately.
        """
        super().__init__()
        self.entry, self.width, self.outputs, self.separate_encoding = entry, width, outputs, separate_encoding
        self.target = TARGET_OF_TYPE[task_type]
        self.words, self.scores = self.target == "tags", self.target == "score"
        self.label_sets = self.target == "label_set"
        self.extracts = self.target == "answers"
        self.register_buffer("class_weight", None, persistent=False)  # [C], of training alone
        self.pairs = task_type in PAIR_TYPES

    def forward(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return logits of states [S, T, d]: classes [B, C], scores [B], or tags [B, W, C]."""
        raise NotImplementedError

    def set_labels(self, labels: list[str]) -> None:
        """Set the labels or tags in the order of the outputs; by default do nothing."""

    def init_from_targets(self, targets) -> None:
        """Look at all training targets (encoded) before the first update; by default do nothing."""

    name_outputs, start = set_labels, init_from_targets  # for super().start(...) in a plug-in

    def balance(self, targets: torch.Tensor) -> None:
        """Let the loss weigh classes by how rare they are among all training targets [N]."""
        self.class_weight = balanced_weights(targets, self.outputs)

    def flops(self, batch: Batch) -> float:
        """Return the forward operations on a batch, as `thaw.compute_cost.flops` counts; by default a linear head's."""
        return matrix(self.width, self.outputs, batch.first_pieces.numel() if self.words else len(batch))

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of a batch, in float32; of several heads at once that of each, [M].

        Cross-entropy over examples, or over all words of the batch whose target is not -100 (0 where there is
        none); mean squared error for scores; binary cross-entropy, the mean over examples and labels, for sets [B, C].
        """
        logits = logits.float()
        if self.scores:
            return functional.mse_loss(logits, targets.float(), reduction="none").mean(-1)
        if self.label_sets:
            each = functional.binary_cross_entropy_with_logits(logits, targets.float(), reduction="none")
            return each.mean((-2, -1))
        each = functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), self.class_weight, reduction="none")
        if not self.words:
            return each.view(targets.shape).mean(-1)
        return each.sum() / (targets != IGNORED).sum().clamp(min=1)

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor | None:
        """Return the probabilities [B, C] of classes, in float32; None for scores and tags, of which none are kept."""
        return logits.float().softmax(-1) if self.target == "label" else None

    def decode(self, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the predictions of a batch.

        They are class indices [B], scores [B], tag indices [B, W], -1 for unseen words, or, of sets of labels,
        probabilities [B, C]. Tags are the best of each word on its own: a sequence that BIO forbids is left to the
        metric.
        """
        if self.scores:
            return logits.float()
        if self.label_sets:
            return logits.float().sigmoid()
        best = logits.argmax(-1)
        return best.masked_fill(batch.first_pieces < 0, NO_TAG) if self.words else best


class VectorHead(Head):
    """A head that makes vectors of the states and ends in dropout and one matrix, `output` [C, F].

    A kind of head overrides `vectors` and, where it computes more than the matrix, `vector_flops`; at the end of its
    own `__init__` it calls `initialise`. Where nothing learned or random has a part in `vectors`, the head has
    `constant_vectors`: on a frozen encoder they are computed once, and what is trained is `logits` alone.
    """

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make the output layer; `width` is F here."""
        super().__init__(entry, width, outputs, task_type, separate_encoding)
        self.dropout = nn.Dropout(entry.dropout)
        self.output = nn.Linear(width, outputs)

    def initialise(self) -> None:
        """Start as the entry's `initialisation` says, bias of the output 0.

        bert: the output matrix normal with deviation 0.02 (Devlin et al. 2019), the rest as torch makes it. kaiming:
        every matrix and kernel normal with deviation sqrt(2 / inputs) (He et al. 2015, equation 10).
        """
        if self.entry.initialisation == "kaiming":
            for parameter in self.parameters():
                if parameter.ndim > 1:
                    nn.init.kaiming_normal_(parameter, nonlinearity="relu")
        else:
            nn.init.normal_(self.output.weight, std=0.02)
        nn.init.zeros_(self.output.bias)

    def init_from_targets(self, targets) -> None:
        """For scores, start at their mean over train, which saves the first updates; at 0 with `score_start: zero`."""
        if self.scores and self.entry.score_start == "mean":
            nn.init.constant_(self.output.bias, float(np.mean(targets)))

    def vectors(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return what the matrix reads of states [S, T, d]: [B, F], or [B, W, F] for words."""
        raise NotImplementedError

    def vector_flops(self, batch: Batch) -> float:
        """Return the forward operations of `vectors` on a batch; by default none."""
        return 0.0

    def logits(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the logits [..., C], or the scores [...], of vectors [..., F]."""
        logits = self.output(self.dropout(vectors))
        return logits.squeeze(-1) if self.scores else logits

    def logit_flops(self, count: int) -> float:
        """Return the forward operations of `logits` on so many vectors."""
        return matrix(self.width, self.outputs, count)

    def forward(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        return self.logits(self.vectors(states, batch))

    def flops(self, batch: Batch) -> float:
        """Return the forward operations on a batch: those of the vectors and of the matrix."""
        count = batch.first_pieces.numel() if self.words else len(batch)
        return self.vector_flops(batch) + self.logit_flops(count)


def word_targets(tags: list[list[int]], first_pieces: torch.Tensor) -> torch.Tensor:
    """Return tag targets [B, W] on the device of first_pieces.

    They are -100 for padding and for words without a piece (first_pieces -1).
    """
    targets = torch.full(first_pieces.shape, IGNORED, device="cpu")  # filled row by row there, and sent once
    for row, sentence in enumerate(tags):
        targets[row, : len(sentence)] = torch.tensor(sentence, device="cpu")
    return targets.to(first_pieces.device).masked_fill(first_pieces < 0, IGNORED)
