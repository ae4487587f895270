"""Which class a head's `kind` in the catalogue stands for: one of Thaw's, or an own one by its import path.

B examples, S sequences (B; 2B where the texts of pairs are read apart), T tokens, W words, d width, C outputs.
"""

import torch

from thaw.core import plugins
from thaw.core.errors import UserError
from thaw.features.batch import Batch
from thaw.heads.base import Head
from thaw.heads.bcn import BcnHead
from thaw.heads.bi_attention import BiAttentionHead
from thaw.heads.bilstm import BiLstmHead
from thaw.heads.bilstm_crf import BiLstmCrfHead
from thaw.heads.bimpm import BiMpmHead
from thaw.heads.bimpm_no_lstm import BiMpmNoLstmHead
from thaw.heads.crf import CrfHead
from thaw.heads.densenet import DenseNetHead
from thaw.heads.esim import EsimHead
from thaw.heads.highway_lstm import HighwayLstmHead
from thaw.heads.layer_mixing import combination
from thaw.heads.linear import CosineHead, LinearHead
from thaw.heads.mlp import MlpHead
from thaw.heads.sim_transformer import SimTransformerHead
from thaw.schema.head import HeadConfig

HEADS: dict[str, type[Head]] = {
    "linear": LinearHead,
    "cosine": CosineHead,
    "mlp": MlpHead,
    "bilstm": BiLstmHead,
    "crf": CrfHead,
    "bilstm_crf": BiLstmCrfHead,
    "highway_lstm": HighwayLstmHead,
    "densenet": DenseNetHead,
    "bcn": BcnHead,
    "esim": EsimHead,
    "bimpm": BiMpmHead,
    "bimpm_no_lstm": BiMpmNoLstmHead,
    "sim_transformer": SimTransformerHead,
    "bi_attention": BiAttentionHead,
}


def build(entry: HeadConfig, width: int, outputs: int, task_type: str, apart: bool = False, layers: int = 0) -> Head:
    """Return a new head on an encoder of this width and of L layers; its numbers come from torch's global generator.

    Its `combination` makes one state of the boundaries that it reads; the head itself sees no more than that. `apart`
    says whether the texts of a pair are read apart, in two sequences. Raises UserError for an own head whose
    logits have another shape than is due: it is tried on two made-up examples, before hours of training.
    """
    combined = combination(entry.layers, width, layers)
    make = _own if plugins.is_plugin(entry.kind) else HEADS[entry.kind]
    head = make(entry, combined.width, outputs, task_type, apart)
    head.combination = combined
    return head


def _own(entry: HeadConfig, width: int, outputs: int, task_type: str, apart: bool) -> Head:
    """Return a new head of one's own."""
    part, found = plugins.parse_plugin(entry.kind), plugins.load(entry.kind)
    if not (isinstance(found, type) and issubclass(found, Head)):
        raise UserError(f"{part.place}: {entry.kind} is no class derived from thaw.heads.base.Head")
    try:
        head = found(entry, width, outputs, task_type, apart)
        with torch.random.fork_rng(), torch.no_grad():
            shape = tuple(head.eval()(*example(width, head.words, apart)).shape)
    except Exception as error:  # it is the user's code and may raise anything
        raise UserError(f"{entry.kind}: {plugins.said(error, part.path)}") from error
    if shape != due_shape(head, 2):
        due = list(due_shape(head, 2))
        raise UserError(f"{part.place}: {entry.kind}: logits of shape {list(shape)} where {due} are due")
    return head.train()


def example(width: int, words: bool, apart: bool) -> tuple[torch.Tensor, Batch]:
    """Return states [S, 3, d] of ones and their batch, of two made-up examples (with two words each)."""
    sequences = 4 if apart else 2
    ids = torch.zeros(sequences, 3, dtype=torch.int64)
    pieces = torch.tensor([[1, 2], [1, -1]]) if words else None
    texts = 1 + torch.arange(sequences).unsqueeze(1) % 2 if apart else torch.tensor([[1, 1, 2]])
    return torch.ones(sequences, 3, width), Batch(ids, ids == 0, None, pieces, torch.arange(2), texts.expand(ids.shape))


def due_shape(head: Head, examples: int, words: int = 2) -> tuple[int, ...]:
    """Return the shape that a head's logits of so many examples (with so many words each) must have."""
    if head.words:
        return examples, words, head.outputs
    return (examples,) if head.scores else (examples, head.outputs)
