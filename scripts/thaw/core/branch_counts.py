"""What several tasks on one frozen trunk execute and store: closed forms, without torch.

The encoder has L layers. The branch of task t begins at boundary f_t: its f_t lower layers are the pretrained
encoder's, which all tasks share, and l_t layers are its own. The trunk reaches F = max f_t (Wei et al. 2022,
arXiv 2107.05377, section 3).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BranchSize:
    """A task's branch: how many layers are below it (f_t), and how many of its own it has (l_t)."""

    frozen: int
    own: int


@dataclass(frozen=True)
class EncoderSize:
    """Numbers of parameters: of the embeddings, of one layer; and how many layers there are (L)."""

    embeddings: int
    layer: int
    layers: int


def top_k(k: int, layers: int) -> BranchSize:
    """Return the branch of a run that trains the last k of L layers; k = 0 is a head on the frozen encoder."""
    return BranchSize(layers - k, k)


def executed(branches: Iterable[BranchSize]) -> int:
    """Return how many layers are executed for a text on which all tasks are run: F + sum of l_t."""
    branches = list(branches)
    return max(branch.frozen for branch in branches) + sum(branch.own for branch in branches)


def executed_by_input(branches: Mapping[str, BranchSize], inputs: Mapping[str, str]) -> dict[str, int]:
    """Return the executed layers for one text of each input: only tasks that read the same input share a pass.

    Args: branches by task; for each task the name of what it reads (its kind of text, how pairs are read, length).
    """
    groups: dict[str, list[BranchSize]] = {}
    for task, branch in branches.items():
        groups.setdefault(inputs[task], []).append(branch)
    return {name: executed(group) for name, group in groups.items()}


def stored_merged(branches: Iterable[BranchSize], size: EncoderSize, heads: Sequence[int]) -> int:
    """Return the parameters that are stored: the embeddings, F and all own layers once, and each task's head."""
    return size.embeddings + executed(branches) * size.layer + sum(heads)


def stored_separate(size: EncoderSize, heads: Sequence[int]) -> int:
    """Return the parameters of one whole model for each head."""
    return len(heads) * (size.embeddings + size.layers * size.layer) + sum(heads)


def stored_inserted(size: EncoderSize, inserted: Sequence[int], heads: Sequence[int]) -> int:
    """Return the parameters of one encoder, the modules that each task inserts (LoRA, adapters), and the heads."""
    return size.embeddings + size.layers * size.layer + sum(inserted) + sum(heads)
