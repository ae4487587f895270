"""The head of span extraction: of each token how likely an answer begins, and ends, there (Devlin et al. 2019, 4.2).

B questions, S windows over their contexts, T tokens of the longest, d width. Position 0 of a window, [CLS], is that of
no answer in it, as both start and end.
"""

import torch
from torch.nn import functional

from thaw.compute_cost.flops import matrix
from thaw.declarations.heads import StartEndOptions
from thaw.features.batch import Batch
from thaw.heads.base import VectorHead
from thaw.schema.head import HeadConfig

ANSWERS = 5  # to each question in predictions.parquet, the best first
FORBIDDEN = -1e9  # score of a pair of tokens that is no answer, and of padding; finite in float32


class StartEndHead(VectorHead):
    """Dropout, then one vector for the start and one for the end, `output` [2, d]."""

    def __init__(self, entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False):
        """Make both vectors; `outputs` is 2."""
        super().__init__(entry, width, outputs, task_type, separate_encoding)
        options = StartEndOptions.model_validate(entry.options)
        self.longest = options.max_answer_length
        self.initialise()

    def vectors(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        return states

    def forward(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the logits [S, T, 2] of states [S, T, d], in float32; padding can be neither start nor end."""
        return self.logits(states).float().masked_fill(~batch.mask.unsqueeze(-1), FORBIDDEN)

    def flops(self, batch: Batch) -> float:
        """Return the forward operations on the tokens of a batch, without padding."""
        return matrix(self.width, self.outputs, int(batch.mask.sum()))

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean of both cross-entropies over windows. Args: logits [S, T, 2]; tokens [S, 2]."""
        logits = logits.float()
        if logits.device.type != "cpu":  # whose kernel for [S, T, 2] is not deterministic
            logits, targets = logits.transpose(1, 2).flatten(0, 1), targets.flatten()
        return functional.cross_entropy(logits, targets)

    def decode(self, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the best answers to each question, float64 [B, n, 3]; see `best_answers`."""
        return best_answers(logits, batch, self.longest, ANSWERS)


def answer_tokens(gold: list[list[tuple[int, str]]], batch: Batch) -> torch.Tensor:
    """Return the first and the last token of each window's answer, int64 [S, 2]; 0 and 0 where it is not all in there.

    Args: by question its answers, of which the first one is learnt; their batch on the CPU.
    """
    firsts = [answers[0] if answers else (-2, "") for answers in gold]  # at -2 there is nothing
    ends = [(start + len(text) - len(text.lstrip()), start + len(text.rstrip())) for start, text in firsts]
    wanted = torch.tensor(ends, dtype=torch.int64, device="cpu").view(-1, 2).repeat_interleave(batch.windows, 0)
    first, last = wanted[:, :1], wanted[:, 1:] - 1
    begins, beyond = batch.characters.unbind(-1)
    holds = [(begins <= character) & (character < beyond) for character in (first, last)]
    inside = (holds[0].any(1) & holds[1].any(1)).unsqueeze(1)
    return torch.stack([held.int().argmax(1) for held in holds], 1) * inside


def best_answers(logits: torch.Tensor, batch: Batch, longest: int, count: int) -> torch.Tensor:
    """Return the `count` best answers of each question over all its windows, best first, float64 [B, count, 3].

    An answer is its first character, the one after it, and the score of no answer less its own; a score is the sum of
    both logits. No answer scores as in the window where it scores least, as in run_squad.py. All pairs of tokens of the
    context are compared that are in order and `longest` tokens long at most, where run_squad.py compares those of the
    20 best starts and ends. Fewer pairs than `count` leave the last ones without characters, (0, 0), and inf.
    """
    start, end = logits.double().cpu().unbind(-1)
    batch = batch.host
    windows, tokens = start.shape
    start, end = (scores.masked_fill(batch.characters[..., 0] < 0, -torch.inf) for scores in (start, end))
    reach = min(longest, tokens)
    ends = functional.pad(end, (0, reach - 1), value=-torch.inf).unfold(1, reach, 1)
    scores, best = (start.unsqueeze(-1) + ends).flatten(1).topk(min(count, tokens * reach), 1)
    first, length = best // reach, best % reach
    last = (first + length).clamp(max=tokens - 1)
    begins, beyond = batch.characters.unbind(-1)
    ends_of = torch.stack([begins.gather(1, first), beyond.gather(1, last)], -1).double()
    answers = torch.zeros(len(batch), count, 3, dtype=torch.float64, device="cpu")
    answers[..., 2] = torch.inf
    nothing = logits[:, 0].double().sum(-1).cpu()
    begin = 0
    for row, each in enumerate(batch.windows.tolist()):
        mine = slice(begin, begin + each)
        candidates = torch.cat([ends_of[mine], (nothing[mine].min() - scores[mine]).unsqueeze(-1)], -1).flatten(0, 1)
        for number, answer in enumerate(_distinct(candidates, count)):
            answers[row, number] = answer
        begin += each
    return answers


def _distinct(answers: torch.Tensor, count: int) -> list[torch.Tensor]:
    """Return the best answers [3] of several windows, each pair of ends once; overlapping windows hold some twice."""
    kept: dict[tuple, torch.Tensor] = {}
    for answer in answers[answers[:, 2].argsort(stable=True)]:
        if answer[2] < torch.inf:
            kept.setdefault(tuple(answer[:2].tolist()), answer)
        if len(kept) == count:
            break
    return list(kept.values())
