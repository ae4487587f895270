"""The encoder of an export ends at the highest layer that its head reads: no layer above it is written or run.

B examples, T tokens, d width, L layers.
"""

import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.encoders.anatomy import probe_ids
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch

CLOSE = 1e-5  # by which states of the same layers may differ


def cut(encoder: Encoder, read: list[int]) -> str | None:
    """Remove the layers above the highest boundary that is read, in place; embeddings alone keep layer 1.

    Args: the encoder; the boundaries that the head reads, ascending. Returns the path of the module whose output is the
    state of the highest boundary where the cut model's own output is another, since the model has a norm after its
    last layer; else None. A model that does not give these states once it is cut is a UserError.
    """
    model, highest = encoder.model, read[-1]
    ids = probe_ids(model.config)
    mask = torch.ones(ids.shape[:2], dtype=torch.bool)
    expected = encoder.states(Batch(ids, mask, None, None, torch.arange(len(ids))), read)
    kept = max(highest, 1)
    if kept < encoder.layers:
        owner, _, name = encoder.anatomy.layers.rpartition(".")
        setattr(model.get_submodule(owner), name, model.get_submodule(encoder.anatomy.layers)[:kept])
        _shorten(model.config, encoder.layers, kept)
    last = f"{encoder.anatomy.layers}.{kept - 1}"
    for path in (None, last):
        given = states(model, {"input_ids": ids, "attention_mask": mask.long()}, read, kept, path)
        if all(torch.allclose(given[n], expected[n], atol=CLOSE) for n in read):
            return path
    raise UserError(
        f"{model.config.model_type} gives other hidden states once it is cut after layer {kept}; export a run whose "
        "head reads the last layer"
    )


@torch.no_grad()
def states(model: nn.Module, inputs: dict, read: list[int], kept: int, last: str | None) -> dict[int, torch.Tensor]:
    """Return the states [B, T, d] of a model of so many layers at some boundaries, as the loader of an export does.

    Args: last, as returned by `cut`.
    """
    taken = []
    hook = model.get_submodule(last).register_forward_hook(lambda *call: taken.append(call[-1])) if last else None
    outputs = model(**inputs, output_hidden_states=True)
    if hook:
        hook.remove()
    top = outputs[0] if not taken else taken[0][0] if isinstance(taken[0], tuple) else taken[0]
    return {n: top if n == kept else outputs.hidden_states[n] for n in read}


def _shorten(config, layers: int, kept: int) -> None:
    """State the number of layers in a config, and what it lists by layer."""
    config.num_hidden_layers = kept
    for name, value in config.to_dict().items():
        if isinstance(value, list) and len(value) == layers and "layer" in name:
            setattr(config, name, value[:kept])
