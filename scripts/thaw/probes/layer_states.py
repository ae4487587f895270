"""The states of every layer on the tokens of some rows, and which of these tokens a word is.

K layers that are read, B rows, T tokens of the longest, W words of the longest, d width.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from thaw.core.boundaries import cached_layers_read
from thaw.core.errors import UserError
from thaw.encoders.anatomy import PROBE, probe_ids
from thaw.encoders.registry import builtin_kind
from thaw.encoders.transformers import Encoder
from thaw.features.batch import NONE, Batch
from thaw.probes.reading import phases_of
from thaw.training.run_inputs import Inputs
from thaw.training.task_model import BatchLoader, resumed

EQUAL = 1e-5  # largest difference of one token's states at two places, which another order of sums makes


class WordEmbeddings:
    """Gives layer 0 [B, T, d] of a batch from word pieces alone, scaled and normed as the encoder does it.

    Whether no position is left is found by computing, not by the architecture's name.
    """

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


class LayerStates:
    """Gives rows of a split with the states of all layers, from the store or, where it lacks one, from a lower one."""

    def __init__(self, spec: dict, inputs: Inputs, word_embeddings: bool = False):
        """Open what a probe's spec reads.

        Args: word_embeddings, whether layer 0, which is always read, is without positions and token types. Raises
        UserError where an encoder's layer 0 cannot be had so.
        """
        read = list(zip(spec["read"], phases_of(spec), strict=True))
        self.words = _word_embeddings(inputs) if word_embeddings else None
        read = read if self.words is None else read[1:]
        self.loader = BatchLoader(inputs.store, cached_layers_read([phase for _, phase in read]), inputs.device)
        self.sources = []
        for number, phase in read:
            encoder = resumed(inputs.encoder, phase["boundary"], number, {}, inputs.device)
            self.sources.append((number, phase["boundary"], encoder and encoder.eval()))

    @torch.no_grad()
    def __call__(self, split: str, rows: np.ndarray) -> tuple[Batch, torch.Tensor]:
        """Return some rows as a batch, and their states [K, B, T, d]."""
        batch, stored = self.loader(split, rows)
        layers = []
        if self.words is not None:
            layers.append(self.words(batch))
        for number, boundary, encoder in self.sources:
            if encoder:
                layers.append(encoder.compute_boundaries(batch, [number], stored.get(boundary))[number])
            else:
                layers.append(stored[boundary])
        return batch, torch.stack(layers)


def _word_embeddings(inputs: Inputs) -> WordEmbeddings | None:
    """Return what computes layer 0 without positions and token types; None where the stored one has neither."""
    if builtin_kind(inputs.encoder):  # word vectors and ELMo
        return None
    return WordEmbeddings(inputs.whole_encoder())


def pieces(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where the tokens of each word start and end, both [B, W]; -1 and -1 without a token.

    A word's tokens go on to the next word that has one, the last word's to the end of the text.
    """
    starts = batch.first_pieces
    positions = torch.arange(batch.mask.shape[1], device=starts.device)
    end = torch.where(batch.texts > 0, positions + 1, 0).amax(1, keepdim=True)
    following = torch.cat([starts.where(starts >= 0, end)[:, 1:], end], 1)
    ends = following.flip(1).cummin(1).values.flip(1)
    return starts, ends.where(starts >= 0, -1)
