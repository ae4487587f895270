"""Which code reads an encoder of which kind, and the models that are Thaw's own code.

An assembled folder says its kind in config.json, as model_type. A model of Thaw's has a `config` with model_type,
num_hidden_layers, hidden_size and vocab_size, a list `layers` (empty where it has none), and returns a tuple whose
first entry is the last hidden state [B, T, d]. So one class opens all of them.

B examples, T tokens, d width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from thaw.core.files import read_json, write_json
from thaw.declarations.encoders import KIND_OF_MODEL
from thaw.encoders import loading
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


def load_model(folder) -> Any:
    """Return the model of a folder in fp32 and eval mode; a folder that can not be read is a UserError."""
    kind = builtin_kind(folder)
    return read_builtin(kind.model, folder) if kind else loading.load_model(folder)


def import_code(folder) -> None:
    """Import the code that `load_model` needs for a folder: two seconds in which nothing is computed."""
    import transformers.modeling_utils  # noqa: F401
    from transformers import CONFIG_MAPPING, MODEL_MAPPING

    name = read_json(Path(folder) / "config.json").get("model_type")
    if name in CONFIG_MAPPING:
        MODEL_MAPPING.get(CONFIG_MAPPING[name], None)


def load_tokenizer(folder, words: bool = False, pairs: bool = False):
    """Return the tokenizer of a folder. Args: words, pairs: whether it will be given lists of words, or two texts."""
    kind = builtin_kind(folder)
    return kind.tokenizer(folder, words) if kind else loading.load_tokenizer(folder, words, pairs)


def builtin_kind(folder) -> BuiltinModel | None:
    """Return the model of a folder where it is Thaw's own code, None where transformers knows it."""
    config = Path(folder) / "config.json"
    content = read_json(config) if config.is_file() else {}
    name = content.get("model_type") if isinstance(content, dict) else None
    return KIND_OF_MODEL[name].load().models[name] if name in KIND_OF_MODEL else None
