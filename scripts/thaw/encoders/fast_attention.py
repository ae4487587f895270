"""Attention whose dropout draws its masks as quickly as all other dropout (see `thaw.encoders.dropout`).

Where there is dropout, torch's own on a processor computes in fp32, in twelve steps, and draws its masks one by one.
transformers is loaded with the first of its models, since processes without any should start quickly.

B examples, h heads, T tokens, e width of a head.
"""

import contextlib
from typing import Any

import torch
from torch import nn

from thaw.encoders.dropout import noise

NAME = "thaw"
_read: list = [None]  # the batch that an encoder reads now
_record: list = [None]  # the Recorder that notes what attention computes with, if any


class Recorder:
    """Queries, keys and values of some layers, {layer: three tensors [B, h, T, e]}, of the pass that is recorded."""

    def __init__(self):
        """Begin with nothing; `layer` is the one that computes now, None for one that is not wanted."""
        self.layer: int | None = None
        self.taken: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}

    def enter(self, layer: int | None) -> None:
        """Note which layer computes from now on."""
        self.layer = layer


@contextlib.contextmanager
def recording(layers: dict[int, nn.Module]):
    """Give a Recorder of some layers, by their number, of one pass within a context."""
    recorder = _record[0] = Recorder()
    hooks = [layer.register_forward_pre_hook(lambda *call, n=n: recorder.enter(n)) for n, layer in layers.items()] + [
        layer.register_forward_hook(lambda *call: recorder.enter(None)) for layer in layers.values()
    ]
    try:
        yield recorder
    finally:
        _record[0] = None
        for hook in hooks:
            hook.remove()


def attend(module, query, key, value, mask, dropout: float = 0.0, scaling: float | None = None, **others):
    """Return what the tokens read from each other, [B, T, h, e], from query, key, value [B, h, T, e]; and no maps.

    The mask [B or 1, h or 1, T, T] is true where a token may be read, or else is added to the scores. Without dropout,
    on a GPU, and where transformers asks for more than that, it is transformers' own scaled dot product.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if _record[0] is not None and _record[0].layer is not None:
        _record[0].taken[_record[0].layer] = (query, key, value)
    more = any(value is not None for value in others.values()) or key.shape[1] != query.shape[1]
    if not dropout or query.device.type != "cpu" or more or (mask is None and getattr(module, "is_causal", True)):
        return sdpa_attention_forward(module, query, key, value, mask, dropout, scaling, **others)
    scores = torch.matmul(query * (query.shape[-1] ** -0.5 if scaling is None else scaling), key.transpose(2, 3))
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(~mask, lowest) if mask.dtype == torch.bool else scores + mask
    shares = scores.softmax(-1, dtype=torch.float32)  # in bf16 the shares of a long text would not add up to 1
    kept = shares * noise(shares.shape, dropout)
    return torch.matmul(kept.to(value.dtype), value).transpose(1, 2).contiguous(), None


@contextlib.contextmanager
def reading(batch):
    """Let `mask` know, within a context, which batch an encoder reads."""
    _read[0] = batch
    try:
        yield
    finally:
        _read[0] = None


def mask(*given, attention_mask: torch.Tensor | None = None, **named: Any) -> torch.Tensor | None:
    """Return transformers' own mask for scaled dot products, None where none is needed.

    transformers looks for padding where the mask is, and in each pass waits for the GPU to say whether there is any;
    the batch of an encoder knows that on the CPU. The mask is the same.
    """
    from transformers.masking_utils import sdpa_mask

    host = getattr(_read[0], "host", None)
    if host is not None and attention_mask is not None and attention_mask.shape == host.mask.shape:
        if host.mask.all():
            attention_mask = None
        else:
            named |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    return sdpa_mask(*given, **named | {"attention_mask": attention_mask})


def replace(model: Any) -> None:
    """Let a model of transformers that would attend by torch's scaled dot product attend by this."""
    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, mask)
    model.set_attn_implementation(NAME)
