"""A masked-language model: an encoder, and what predicts tokens from its last hidden state.

S sequences, T tokens, M chosen tokens of a batch, V vocabulary, d width.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from thaw.core.runtime import seeded
from thaw.encoders import fast_attention
from thaw.encoders.loading import find_pooler, load_masked, quiet
from thaw.encoders.transformers import Encoder


class Predictor(nn.Module):
    """The parameters that predict tokens and are not the encoder's, their loss and their cost.

    A decoder that is tied to the embeddings belongs to these.
    """

    def __init__(self, whole: nn.Module, encoder: Any):
        """Take them from a masked-language model and the encoder in it."""
        super().__init__()
        shared = {id(parameter) for parameter in encoder.parameters()}
        own = [parameter for parameter in whole.parameters() if id(parameter) not in shared]
        self.own = nn.ParameterList(own)
        matrices = [parameter for parameter in own if parameter.ndim > 1]
        table = encoder.get_input_embeddings().weight
        tied = not any(len(matrix) == len(table) for matrix in matrices)
        self.size = sum(matrix.numel() for matrix in matrices) + tied * table.numel()

    def loss(self, logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy in nats of logits [M, V] for the tokens [M] that were there; 0 where M is 0."""
        return functional.cross_entropy(logits.float(), tokens, reduction="sum") / max(len(tokens), 1)

    def flops(self, batch) -> float:
        """Return the forward operations on a batch, of which `batch.chosen` [S, T] are predicted."""
        return 2.0 * self.size * int(batch.chosen.sum())


class MaskedModel(nn.Module):
    """The masked-language model of an encoder's folder; `came` tells whether the predictor came with its weights."""

    def __init__(self, folder, seed: int):
        """Open a folder as fetch writes it; a predictor that it lacks is made from the seed. Raises UserError."""
        super().__init__()
        with seeded(seed, "initialisation"):
            whole, self.came = load_masked(folder)
        self.whole: Any = whole
        self.encoder = Encoder(self.whole.base_model)
        self.head = Predictor(self.whole, self.encoder.model)
        self.next_sentence: Any = None  # what judges next sentences, of `first`
        self.first = self.last = torch.empty(0)  # of the batch that was read the last hidden states [S, d], [S, T, d]
        self.dropped: dict[int, nn.Module] = {}  # layers that are not kept, from 1

    def forward(self, batch) -> torch.Tensor:
        """Return logits [M, V] of the chosen tokens, row after row; `batch.places` [M] are theirs among S x T.

        The model's own forward does it; only the chosen states are handed on from the encoder, since all others would
        be multiplied with the whole vocabulary for nothing.
        """

        def choose(module, inputs, output):
            self.first, self.last = output[0][:, 0], output[0]
            output["last_hidden_state"] = output[0].flatten(0, 1)[batch.places].unsqueeze(0)

        hook = self.encoder.model.register_forward_hook(choose)
        try:
            with fast_attention.reading(batch):
                return self.whole(**self.encoder.inputs(batch)).logits[0]
        finally:
            hook.remove()

    def shorten(self, kept: list[int]) -> None:
        """Keep some layers, counted from 1; the others pass their input on until the model is written."""
        layers = self.encoder.model.get_submodule(self.encoder.anatomy.layers)
        self.dropped = {n: layer for n, layer in enumerate(layers, start=1) if n not in kept}
        self.encoder.shorten(kept)

    def head_flops(self, batch) -> float:
        """Return the forward operations of the predictor on a batch."""
        further = self.next_sentence.flops(len(batch.mask)) if self.next_sentence else 0.0
        return self.head.flops(batch) + further

    def components(self, names: list[str]) -> dict[str, list[tuple[str, nn.Parameter]]]:
        """Return the named parameters of head, embeddings and layers; a tied decoder is the embeddings'."""
        judge: list = list(self.next_sentence.named_parameters()) if self.next_sentence else []
        parts = {"head": [*self.head.named_parameters(), *judge]} | self.encoder.components()
        return {name: parts[name] for name in names}

    def write(self, source: Path, target: Path) -> None:
        """Write config.json and model.safetensors, predictor included.

        The pooler of the source goes over unchanged, unless next sentences were predicted: then it has trained. Layers
        that were dropped are in their places again, as they were.
        """
        layers = self.encoder.model.get_submodule(self.encoder.anatomy.layers)
        for n, layer in self.dropped.items():
            layers[n - 1] = layer
        path = f"{self.whole.base_model_prefix}.pooler.dense"
        layers = {path: find_pooler(source)}
        if self.next_sentence:
            layers = {path: self.next_sentence.dense, "cls.seq_relationship": self.next_sentence.judge}
            layers = {path: layer.state_dict() for path, layer in layers.items()}
        further = {f"{path}.{name}": tensor for path, layer in layers.items() for name, tensor in layer.items()}
        with quiet():
            self.whole.save_pretrained(target, state_dict=self.whole.state_dict() | further)
