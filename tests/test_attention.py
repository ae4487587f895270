"""Attention with quick dropout is transformers' own: the same without dropout, and on average with it.

B examples, h heads, T tokens, e width of a head.
"""

import pytest
import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from thaw.encoders.dropout import noise
from thaw.encoders.fast_attention import NAME, attend
from thaw.encoders.transformers import Encoder
from tiny import tiny_encoder

SHAPE = (2, 3, 5, 4)  # B, h, T, e


class Layer(nn.Module):
    """What transformers hands to an attention as the module that asks."""

    is_causal = False


def states():
    """Return query, key and value, [B, h, T, e], that ask for gradients."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(SHAPE, generator=generator).requires_grad_() for _ in range(3)]


def masks():
    """Return what may stand as a mask: nothing, what may be read, and what is added to the scores."""
    read = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    read[1, ..., 3:] = False
    return {"none": None, "boolean": read, "added": torch.zeros(2, 1, 5, 5).masked_fill(~read, -1e9)}


@pytest.mark.parametrize("kind", masks())
def test_without_dropout_it_is_that_of_transformers(kind):
    ours, theirs = (f(Layer(), *states(), masks()[kind])[0] for f in (attend, sdpa_attention_forward))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("kind", masks())
def test_with_dropout_it_is_the_same_on_average_values_and_gradients(kind):
    ours, theirs = states(), states()
    torch.manual_seed(1)
    found = torch.stack([attend(Layer(), *ours, masks()[kind], dropout=0.1)[0] for _ in range(3000)])
    expected = sdpa_attention_forward(Layer(), *theirs, masks()[kind])[0]
    torch.testing.assert_close(found.mean(0), expected, atol=0.05, rtol=0)
    assert (found[0] - expected).abs().max() > 0.05, "nothing was dropped"
    (found.mean(0) ** 2).sum().backward()
    (expected**2).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=0.1, rtol=0)


def test_what_is_masked_is_never_read_and_what_is_kept_is_scaled():
    query, key, value = states()
    torch.manual_seed(2)
    found = attend(Layer(), query, key, value, masks()["boolean"], dropout=0.5)[0]
    torch.manual_seed(2)
    shares = (query @ key.transpose(2, 3) / 2).masked_fill(~masks()["boolean"], -torch.inf).softmax(-1)
    torch.testing.assert_close(found, (shares * noise(shares.shape, 0.5) @ value).transpose(1, 2))


def test_a_causal_model_without_mask_is_left_to_transformers():
    torch.manual_seed(3)
    causal = nn.Module()  # no word of is_causal: transformers takes it as causal
    first = attend(causal, *states(), None, dropout=0.3)[0][:, 0]
    value = states()[2][:, :, 0]
    share = (first / value).flatten()  # the first token reads itself alone: kept and scaled, or dropped
    assert ((share.abs() < 1e-5) | ((share - 1 / 0.7).abs() < 1e-5)).all()


def test_keys_that_heads_share_are_left_to_transformers():
    shared = Layer()
    shared.num_key_value_groups = 3
    query, key, value = states()
    found, theirs = [], (query, key[:, :1], value[:, :1], None, 0.3)
    for function in (attend, sdpa_attention_forward):
        torch.manual_seed(4)
        found.append(function(shared, *theirs)[0])
    assert torch.equal(*found)


def test_an_encoder_attends_so_and_saves_nothing_of_it(tmp_path):
    encoder = Encoder.load(tiny_encoder("bert", tmp_path))
    assert encoder.model.config._attn_implementation == NAME
    assert f'"{NAME}"' not in encoder.model.config.to_json_string(use_diff=False)
