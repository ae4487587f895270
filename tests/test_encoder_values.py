"""Values of encoders: boundaries as transformers itself gives them, and adapters by BERT's formulas in NumPy.

B examples, T tokens, d width, m bottleneck width.
"""

from math import erf

import numpy as np
import pytest
import torch
from transformers import AutoModel

from head_formulas import affine, layer_norm, softmax
from test_resume import LAYERS, padded_batch
from thaw.adaptation.peft_modules import BottleneckAdapter, Inserts
from thaw.encoders.transformers import Encoder
from thaw.schema.phases import InsertConfig
from tiny import FAMILIES

HEADS = 4


@pytest.mark.parametrize("family", FAMILIES)
def test_boundaries_are_the_hidden_states_of_transformers(folders, family):
    """Its own model, with the attention that it writes out, on the same padded texts; each boundary alone and all."""
    encoder = Encoder.load(folders[family])
    batch = padded_batch(encoder)
    reference = AutoModel.from_pretrained(folders[family], attn_implementation="eager").eval()
    with torch.no_grad():
        expected = reference(**encoder.inputs(batch), output_hidden_states=True).hidden_states
        assert len(expected) == LAYERS + 1
        for wanted in ([0, 1, 2, 3], [2], [0, 3]):
            states = encoder.compute_boundaries(batch, wanted)
            assert list(states) == wanted
            for boundary in wanted:
                given, other = states[boundary][batch.mask], expected[boundary][batch.mask]
                torch.testing.assert_close(given, other, rtol=1e-5, atol=1e-5)
    apart = [(a - b)[batch.mask].abs().max() for a, b in zip(expected, expected[1:], strict=False)]
    assert min(apart) > 0.01, "two boundaries are alike: a wrong number would not show"


def gelu(x):
    """Return x times the normal distribution's share below x (Hendrycks and Gimpel 2016)."""
    return x * np.vectorize(lambda value: (1 + erf(value / 2**0.5)) / 2)(x)


def adapted(p, name, x, inserted):
    """Return W x + b, and of that with an adapter y + up(gelu(down(y))) (Houlsby et al. 2019, section 2.1)."""
    if not inserted:
        return affine(p, name, x)
    y = affine(p, f"{name}.base_layer", x)
    return y + affine(p, f"{name}.adapter.up", gelu(affine(p, f"{name}.adapter.down", y)))


def bert_layer(p, name, x, inserted):
    """Return x [T, d] after a layer of BERT: the adapter comes before the skip connection and the norm (figure 2)."""
    size = x.shape[1] // HEADS
    q, k, v = (affine(p, f"{name}.attention.self.{role}", x) for role in ("query", "key", "value"))
    heads = [slice(head * size, (head + 1) * size) for head in range(HEADS)]
    read = np.concatenate([softmax(q[:, h] @ k[:, h].T / np.sqrt(size)) @ v[:, h] for h in heads], 1)
    x = x + adapted(p, f"{name}.attention.output.dense", read, inserted)
    x = layer_norm(p, f"{name}.attention.output.LayerNorm", x, 1e-12)
    inner = gelu(affine(p, f"{name}.intermediate.dense", x))
    x = x + adapted(p, f"{name}.output.dense", inner, inserted)
    return layer_norm(p, f"{name}.output.LayerNorm", x, 1e-12)


def test_a_bert_with_adapters_computes_the_papers_formula(folders):
    """Adapters with numbers that are not near 0 in the upper two of three layers; padding has no part in it."""
    encoder = Encoder.load(folders["bert"])
    assert encoder.model.config.layer_norm_eps == 1e-12
    Inserts(InsertConfig(kind="adapters", size=5), (2, 3), seed=1).into(encoder)
    torch.manual_seed(2)
    with torch.no_grad():
        for _, parameter in encoder.inserted():
            parameter.normal_(std=0.4)
    batch = padded_batch(encoder)
    states = encoder.boundaries(batch)
    p = {name: tensor.double().numpy() for name, tensor in encoder.model.state_dict().items()}
    for row, mask in enumerate(batch.mask):
        x = states[0][row][mask].double().numpy()
        for layer in range(LAYERS):
            x = bert_layer(p, f"encoder.layer.{layer}", x, layer >= 1)
            np.testing.assert_allclose(states[layer + 1][row][mask], x, rtol=1e-5, atol=1e-5)


def test_the_first_weights_of_adapters_have_the_deviation_that_is_asked_for_and_are_cut_at_two():
    for std in (1e-3, 0.1):
        weights = BottleneckAdapter(torch.nn.Identity(), 400, 50, std).adapter["down"].weight.detach()
        # a normal distribution that is cut at two standard deviations has 0.8796 of its own
        assert float(weights.std()) == pytest.approx(0.8796 * std, rel=0.02) and float(weights.abs().max()) <= 2 * std
