"""The parts of a pretrained model, identified by tracing one forward pass, not by its architecture's name.

B examples, T tokens, d width, L layers.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from thaw.core.errors import UserError

PROBE = (2, 5)  # B, T of the pass that is watched: too odd to be mistaken for anything else in a shape


@dataclass(frozen=True)
class Anatomy:
    """The layer list of a model and what surrounds it.

    layers: path of the nn.ModuleList that holds the L layers, none for an encoder of no layers.
    form: 0 where a layer returns a tensor, else the length of the tuple or list whose first entry is the hidden state.
    parts: path of every module outside the list of layers -> the layer it belongs to. Part 0 is all that
        works before layer 1; a final norm belongs to layer L. What is read without being called, as DeBERTa's
        relative position embeddings, belongs to 0 too: it feeds every layer, so nothing could be cached if it moved.
    outputs: of these, the parts called once that return a tensor [B, T, k] -> k.
    """

    layers: str
    form: int
    parts: dict[str, int]
    outputs: dict[str, int]

    @property
    def owner(self) -> str:
        """Return the path of the module that holds the layer list; empty where that is the model itself."""
        return self.layers.rpartition(".")[0]

    def component(self, name: str) -> int:
        """Return the layer, 1 to L, that a parameter belongs to, or 0 for the embeddings."""
        if name.startswith(self.layers + "."):
            return int(name.removeprefix(self.layers + ".").partition(".")[0]) + 1
        return next((layer for part, layer in self.parts.items() if name.startswith(part + ".")), 0)


def inspect_architecture(model: Any) -> Anatomy:
    """Find the layers of a model in eval mode; a model that is no encoder with a list of layers is a UserError."""
    kind, config = model.config.model_type, model.config
    if getattr(config, "is_encoder_decoder", False):
        raise UserError(f"{kind} is an encoder-decoder; Thaw adapts encoders alone")
    count = getattr(config, "num_hidden_layers", None)
    if count is None or not getattr(config, "vocab_size", None):
        raise UserError(f"{kind} is no text encoder: its config states no vocab_size or no num_hidden_layers")
    if getattr(config, "num_hidden_groups", count) < count:
        raise UserError(
            f"{kind} shares the weights of one layer among all {count}; no layer can train while those below it stay "
            "frozen, so choose an encoder with layers of their own"
        )
    form = type(model), repr(vars(config)), tuple(name for name, _ in model.named_modules())
    if form not in _known:
        _known[form] = _trace(model, count)
    if anatomy := _known[form]:
        return anatomy
    raise UserError(
        f"{kind} has no list of {count} layers that run one after the other on one hidden state [B, T, d]; "
        "it can not be resumed at a boundary; choose another encoder"
    )


_known: dict[tuple, Anatomy | None] = {}  # a job loads its encoder several times


def _trace(model: nn.Module, count: int) -> Anatomy | None:
    lists = (
        path for path, module in model.named_modules() if isinstance(module, nn.ModuleList) and len(module) == count
    )
    return next((anatomy for path in lists if (anatomy := _watch(model, path))), None)


def probe_ids(config) -> torch.Tensor:
    """Return token ids [2, 5], none of them the padding's; spelt out, [2, 5, C], for a model that reads them so."""
    size = config.vocab_size
    first, second = [i for i in (size // 2, size // 3, size // 4) if i != config.pad_token_id][:2]
    return spelt(torch.tensor([[first] * PROBE[1], [second] * PROBE[1]]), config)


def spelt(ids: torch.Tensor, config) -> torch.Tensor:
    """Return ids [B, T] as a model reads them: [B, T, C] where tokens are spelt in C pieces, here one of them alone."""
    pieces = getattr(config, "spelling", None)
    return ids if pieces is None else ids.unsqueeze(-1).expand(-1, -1, pieces)


def _watch(model: nn.Module, path: str) -> Anatomy | None:
    """Run the probe and note who is called when; None where the listed modules are not a stack of layers."""
    layers: Any = model.get_submodule(path)
    parts = dict(_parts(model, path))
    calls: list[tuple] = []
    entered: list = []

    def note(label):
        return lambda module, inputs, output: calls.append((label, len(entered), output))

    def note_entry(module, inputs, named):
        entered.append(_hidden(inputs[0] if inputs else named.get("hidden_states")))

    hooks = [layer.register_forward_pre_hook(note_entry, with_kwargs=True) for layer in layers]
    hooks += [layer.register_forward_hook(note(position)) for position, layer in enumerate(layers)]
    hooks += [module.register_forward_hook(note(name)) for name, module in parts.items()]
    try:
        _run(model)
    finally:
        for hook in hooks:
            hook.remove()
    passed = [(label, output) for label, _, output in calls if isinstance(label, int)]
    if [label for label, _ in passed] != list(range(len(layers))):
        return None
    if any(state is None for state in [*entered, *(_hidden(output) for _, output in passed)]):
        return None
    first = passed[0][1] if passed else None
    belongs, outputs = _places(parts, calls)
    return Anatomy(path, len(first) if isinstance(first, tuple | list) else 0, belongs, outputs)


def _parts(model: nn.Module, path: str):
    above = [path.rsplit(".", n)[0] for n in range(path.count(".") + 1)]
    for owner in ["", *above[1:]]:
        for name, child in model.get_submodule(owner).named_children():
            full = f"{owner}.{name}" if owner else name
            if full not in above:
                yield full, child


def _places(parts: dict, calls: list) -> tuple[dict[str, int], dict[str, int]]:
    """Return for each part the layer that it belongs to, and the width of what it returns if it is [B, T, k]."""
    belongs, outputs = dict.fromkeys(parts, 0), {}
    for name in parts:
        matches = [(layer, output) for label, layer, output in calls if label == name]
        if matches:
            belongs[name] = matches[0][0]
        if len(matches) == 1 and (state := _hidden(matches[0][1])) is not None:
            outputs[name] = state.shape[-1]
    return belongs, outputs


def _hidden(output) -> torch.Tensor | None:
    """Return the hidden state [B, T, k] in a layer's output, or None where there is none."""
    state = output[0] if isinstance(output, tuple | list) and output else output
    fits = torch.is_tensor(state) and state.is_floating_point() and state.dim() == 3
    return state if fits and tuple(state.shape[:2]) == PROBE else None


@torch.no_grad()
def _run(model: nn.Module) -> None:
    """Read the probe."""
    model(input_ids=probe_ids(model.config), attention_mask=torch.ones(PROBE, dtype=torch.int64))
