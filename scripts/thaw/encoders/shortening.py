"""Students: an encoder that keeps some of its layers, and the weights that these start from.

B examples, T tokens, d width, L layers.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.core.runtime import seeded
from thaw.encoders.transformers import Encoder


def starting_tensors(folder, student: dict, trained: dict[str, torch.Tensor], seed: int) -> dict[str, torch.Tensor]:
    """Return the tensors, by name, in which a student differs from the pretrained encoder before it trains.

    Args: folder of the encoder; `student` of the run's spec; what the run that it starts from has trained; the run's
    seed, for random layers. Raises UserError where a layer can not take the weights of another.
    """
    start = {int(layer): source for layer, source in student.get("start", {}).items()}
    if not trained and not start:
        return {}
    encoder = Encoder.load(folder)
    path = encoder.anatomy.layers
    encoder.put(trained)
    kept = {name: tensor for name, tensor in trained.items() if _layer(name, path) in (None, *student["layers"])}
    fresh = _random(encoder.model, seed) if "random" in start.values() else encoder.model
    for layer, source in start.items():
        origin, number = (fresh, layer) if source == "random" else (encoder.model, source)
        check_alike(encoder.model, path, layer, number)
        own = origin.get_submodule(f"{path}.{number - 1}").named_parameters()
        kept |= {f"{path}.{layer - 1}.{name}": value.detach().clone() for name, value in own}
    return kept


def check_alike(model: Any, path: str, layer: int, source: int) -> None:
    """Raise UserError where a layer cannot take the weights of another. Args: path of the list of layers."""
    first, second = (model.get_submodule(f"{path}.{n - 1}") for n in (layer, source))
    shapes = [{name: value.shape for name, value in one.named_parameters()} for one in (first, second)]
    if shapes[0] != shapes[1] or _settings(first) != _settings(second):
        raise UserError(
            f"student: start: layer {layer} of {model.config.model_type} works otherwise than layer {source}, whose "
            "weights it would take; say start: same"
        )


def compact(encoder: Encoder, kept: Sequence[int]) -> None:
    """Delete the layers that are not kept, so that the model has as many as it computes; a final norm stays.

    Entries of the config that list something by layer, as ModernBERT's layer_types, are shortened with them.
    """
    model, path = encoder.model, encoder.anatomy.layers
    owner, _, name = path.rpartition(".")
    layers = model.get_submodule(path)
    count = len(layers)
    setattr(model.get_submodule(owner), name, nn.ModuleList([layers[n - 1] for n in kept]))
    for position, layer in enumerate(model.get_submodule(path)):
        for module in layer.modules():
            if hasattr(module, "layer_idx"):
                module.layer_idx = position
    model.config = copy.deepcopy(model.config)
    model.config.num_hidden_layers = len(kept)
    for key, value in model.config.to_dict().items():
        if isinstance(value, list) and len(value) == count and "layer" in key:
            setattr(model.config, key, [value[n - 1] for n in kept])
    encoder.layers = len(kept)


def _layer(name: str, path: str) -> int | None:
    return int(name.removeprefix(path + ".").partition(".")[0]) + 1 if name.startswith(path + ".") else None


def _settings(layer: nn.Module) -> dict[str, str | bool]:
    return {
        f"{path}.{name}": value
        for path, module in layer.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, (str, bool)) and not name.startswith("_") and name != "training"
    }


def _random(model: nn.Module, seed: int) -> nn.Module:
    with seeded(seed, "student"):
        return type(model)(copy.deepcopy(model.config))
