"""Building a head from its entry in the catalogue: one of Thaw's kinds, or a plugin by its import path.

B examples, S sequences (B; 2B where the texts of pairs are read separately), T tokens, W words, d width, C outputs.
"""

import torch

from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.declarations.heads import HEAD_KINDS
from thaw.features.batch import Batch
from thaw.heads.base import Head
from thaw.heads.combination import combination
from thaw.schema.head import HeadConfig


def build(
    entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool = False, layers: int = 0
) -> Head:
    """Return a new head on an encoder of this width and of L layers; its numbers come from torch's global generator.

    Its `combination` makes one state of the boundaries that it reads; the head itself sees no more than that.
    Args: separate_encoding, whether the texts of a pair are read separately, in two sequences. Raises UserError for a
    plugin whose logits have another shape than they must have: it is tried on two made-up examples, before training.
    """
    combined = combination(entry.layers, width, layers)
    make = _plugin_head if plugins.is_plugin(entry.kind) else HEAD_KINDS[entry.kind].load()
    head = make(entry, combined.width, outputs, task_type, separate_encoding)
    head.combination = combined
    return head


def _plugin_head(entry: HeadConfig, width: int, outputs: int, task_type: str, separate_encoding: bool) -> Head:
    part, make = plugins.parse_plugin(entry.kind), plugins.load(entry.kind)
    if not (isinstance(make, type) and issubclass(make, Head)):
        raise UserError(f"{part.place}: {entry.kind} is no class derived from thaw.heads.base.Head")
    try:
        head = make(entry, width, outputs, task_type, separate_encoding)
        with torch.random.fork_rng(), torch.no_grad():
            shape = tuple(head.eval()(*example(width, head.words, separate_encoding)).shape)
    except Exception as error:  # it is the user's code and may raise anything
        raise UserError(f"{entry.kind}: {plugins.said(error, part.path)}") from error
    if shape != logit_shape(head, 2):
        expected = list(logit_shape(head, 2))
        raise UserError(f"{part.place}: {entry.kind}: logits of shape {list(shape)} where {expected} is expected")
    return head.train()


def example(width: int, words: bool, separate_encoding: bool) -> tuple[torch.Tensor, Batch]:
    """Return states [S, 3, d] of ones and their batch, of two made-up examples (with two words each)."""
    sequences = 4 if separate_encoding else 2
    ids = torch.zeros(sequences, 3, dtype=torch.int64)
    pieces = torch.tensor([[1, 2], [1, -1]]) if words else torch.empty(2, 0, dtype=torch.int64)
    texts = 1 + torch.arange(sequences).unsqueeze(1) % 2 if separate_encoding else torch.tensor([[1, 1, 2]])
    return torch.ones(sequences, 3, width), Batch(ids, ids == 0, None, pieces, torch.arange(2), texts.expand(ids.shape))


def logit_shape(head: Head, examples: int, words: int = 2) -> tuple[int, ...]:
    """Return the required shape of a head's logits. Args: examples, or windows; words, or tokens, of each."""
    if head.words or head.extracts:
        return examples, words, head.outputs
    return (examples,) if head.scores else (examples, head.outputs)
