"""Layer 0 without positions and token types: the embeddings of word pieces, scaled and normed as the encoder does it.

It is the encoder's own code that computes them, from tables of positions and token types that are 0. Whether no
position is left is found by computing, not by the architecture's name.

B examples, T tokens, d width.
"""

from dataclasses import replace

import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.encoders.anatomy import PROBE, probe_ids
from thaw.encoders.transformers import Encoder
from thaw.features.batch import NONE, Batch

EQUAL = 1e-5  # largest difference of one token's states at two places, which another order of sums makes


class WordEmbeddings:
    """Gives layer 0 [B, T, d] of a batch from word pieces alone."""

    @torch.no_grad()
    def __init__(self, encoder: Encoder):
        """Take an encoder over: its other tables of embeddings become 0, and layers above are not run.

        Raises UserError where the place of a token matters otherwise, as by sinusoids that are no table, or by its
        neighbours.
        """
        self.encoder, model = encoder, encoder.model
        words = model.get_input_embeddings()
        for module in model.modules():
            if isinstance(module, nn.Embedding) and module.weight is not words.weight:
                module.weight.zero_()
        encoder.shorten([1])
        ids = probe_ids(model.config).to(words.weight.device)
        states = self(Batch(ids, torch.ones(PROBE, dtype=torch.bool, device=ids.device), None, NONE, ids[:, 0]))
        if (states - states[:, :1]).abs().max() > EQUAL:
            raise UserError(
                f"layer_0: word_embeddings is not possible for {model.config.model_type}: its layer 0 depends on where "
                "a token is in more ways than by tables of embeddings; say layer_0: embeddings"
            )

    @torch.no_grad()
    def __call__(self, batch: Batch) -> torch.Tensor:
        """Return layer 0 of a batch, whose token types are left out: some models look them up in the table of words."""
        return self.encoder.compute_boundaries(replace(batch, type_ids=None), [0])[0]
