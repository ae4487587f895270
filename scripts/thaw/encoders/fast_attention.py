"""Attention whose dropout draws its masks as quickly as all other dropout (see `thaw.encoders.dropout`).

Where there is dropout, torch's own on a processor computes in fp32, in twelve steps, and draws its masks one by one.
transformers is loaded with the first of its models, since processes without any should start quickly.

B examples, h heads, T tokens, e width of a head.
"""

import torch
from torch import nn

from thaw.encoders.dropout import noise

NAME = "thaw"


def attend(module, query, key, value, mask, dropout: float = 0.0, scaling: float | None = None, **others):
    """Return what the tokens read from each other, [B, T, h, e], from query, key, value [B, h, T, e]; and no maps.

    The mask [B or 1, h or 1, T, T] is true where a token may be read, or else is added to the scores. Without dropout,
    on a GPU, and where transformers asks for more than that, it is transformers' own scaled dot product.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

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


def replace(model: nn.Module) -> None:
    """Let a model of transformers that would attend by torch's scaled dot product attend by this."""
    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)
