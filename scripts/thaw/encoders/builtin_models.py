"""Models that are Thaw's own code: what they share with those of transformers, and how they are written and read.

A model has a `config` with model_type, num_hidden_layers, hidden_size and vocab_size, a list `layers` (empty where it
has none), and returns a tuple whose first entry is the last hidden state [B, T, d]. So one class opens all of them.

B examples, T tokens, d width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from thaw.core.files import read_json, write_json
from thaw.encoders.names import WEIGHTS


@dataclass(frozen=True)
class BuiltinModel:
    """A model: model(config) makes it, random; tokenizer(folder, words) makes its tokenizer."""

    model: Callable
    tokenizer: Callable


@dataclass(frozen=True)
class BuiltinCode:
    """The code of a kind of encoder: assemble(source, target, entry) writes its folder; its models by model_type."""

    assemble: Callable
    models: dict[str, BuiltinModel]


def builtin_config(**values) -> SimpleNamespace:
    """Return a configuration; its values are what config.json holds."""
    return SimpleNamespace(**values)


def write_builtin(model: nn.Module, folder: Path) -> None:
    write_json(folder / "config.json", vars(model.config))
    tensors = {name: value.detach().clone().contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})


def read_builtin(make, folder) -> nn.Module:
    """Return the model of a folder in fp32 and eval mode; `make(config)` builds it."""
    model = make(builtin_config(**read_json(Path(folder) / "config.json")))
    model.load_state_dict(load_file(Path(folder) / WEIGHTS))
    return model.float().eval()


class EmbeddingTable(nn.Module):
    """One vector for each token id, and no layer above: word vectors, or the vectors of whole texts."""

    def __init__(self, config):
        """Make the matrix [V, d], random; id 0 is padding and stays 0."""
        super().__init__()
        self.config = config
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.layers = nn.ModuleList()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor]:
        """Return the vectors [B, T, d] of ids [B, T]."""
        return (self.embeddings(input_ids),)
