"""Layer 0 without positions and token types: the embeddings of word pieces, scaled and normed as the encoder does it.

It is the encoder's own code that computes them, from tables of positions and token types that are 0. Whether no
position is left is found by computing, not by the architecture's name.

B examples, T tokens, d width.
"""

from types import SimpleNamespace

import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.encoders.anatomy import PROBE, probe_ids
from thaw.encoders.transformers import Encoder

EQUAL = 1e-5  # largest difference of one token's states at two places, which another order of sums makes


@torch.no_grad()
def keep_word_embeddings(encoder: Encoder) -> Encoder:
    """Let boundary 0 [B, T, d] be that of word pieces alone, permanently; nothing above it has a meaning. Return it.

    Batches must have no type_ids, which some models look up in the table of words. Raises UserError where the place of
    a token matters otherwise, as by sinusoids that are no table, or by its neighbours.
    """
    model = encoder.model
    words = model.get_input_embeddings()
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.weight is not words.weight:
            module.weight.zero_()
    encoder.shorten([1])  # layers above are not run
    ids = probe_ids(model.config)
    mask = torch.ones(PROBE, dtype=torch.bool, device=ids.device)
    repeated = SimpleNamespace(input_ids=ids, mask=mask, type_ids=None)
    states = encoder.states(repeated, [0])[0]
    if (states - states[:, :1]).abs().max() > EQUAL:
        raise UserError(
            f"layer_0: word_embeddings is not possible for {model.config.model_type}: its layer 0 depends on where a "
            "token is in more ways than by tables of embeddings; say layer_0: embeddings"
        )
    return encoder
