"""Parts of a layer: found in every family by its anatomy, and exactly what is named moves."""

import copy

import pytest
import torch
from transformers import AutoConfig, AutoModel

from thaw.core.errors import UserError
from thaw.encoders.sublayers import Sublayers
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from tiny import FAMILIES

LAYERS, WIDTH, INNER = 3, 32, 48
MATRIX = WIDTH * WIDTH + WIDTH  # with its bias
SIZES = {  # parameters of a layer's parts where matrices have biases, as in all families but ModernBERT
    "attention": 4 * MATRIX,
    "feed_forward": 2 * WIDTH * INNER + INNER + WIDTH,
    "query_value": 2 * MATRIX,
    "bias": 5 * WIDTH + INNER + 2 * WIDTH,
    "norm": 4 * WIDTH,
    "heads.0.3": 2 * (3 * (8 * WIDTH + 8) + 8 * WIDTH),
}
MODERNBERT = {  # one matrix for queries, keys and values, two for a gated inner part, no biases at all
    "attention": 4 * WIDTH**2,
    "feed_forward": 3 * WIDTH * INNER,
    "query_value": 2 * WIDTH**2,
    "norm": 2 * WIDTH,
    "heads.0.3": 2 * 4 * 8 * WIDTH,
}
OPENAI_GPT = SIZES | {  # an inner part of four times the width
    "feed_forward": 8 * WIDTH**2 + 5 * WIDTH,
    "bias": 5 * WIDTH + 4 * WIDTH + 2 * WIDTH,
}
LLAMA = {  # keys and values of half the width, a gated inner part, no biases
    "attention": 3 * WIDTH**2,
    "feed_forward": 3 * WIDTH * INNER,
    "query_value": WIDTH**2 + WIDTH**2 // 2,
    "norm": 2 * WIDTH,
}


def sizes(family: str) -> dict[str, int]:
    gated = dict.fromkeys(("modernbert", "eurobert", "modernbert_decoder"), MODERNBERT)
    return (gated | {"llama": LLAMA, "openai_gpt": OPENAI_GPT}).get(family, SIZES)


def moved(encoder: Encoder, component: str) -> tuple[dict, dict]:
    """Train one component for two steps, with weight decay; return all parameters before and after."""
    batch = Batch(torch.tensor([[5, 6, 7, 8], [9, 10, 11, 5]]), torch.ones(2, 4, dtype=torch.bool), None, None, None)
    before = copy.deepcopy(parameters(encoder))
    encoder.thaw({component})
    trained = [parameter for _, parameter in encoder.components([component])[component]]
    optimizer = torch.optim.AdamW(trained, lr=0.01, weight_decay=0.1)
    for _ in range(2):
        encoder(batch).pow(3).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return before, parameters(encoder) | encoder.tensors([component])


def parameters(encoder: Encoder) -> dict:
    return {name: value for named in encoder.components().values() for name, value in named}


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_have_the_size_that_the_architecture_gives_them(folders, family):
    encoder = Encoder.load(folders[family])
    for part, size in sizes(family).items():
        encoder.thaw({f"layer.2:{part}"})
        found = encoder.components([f"layer.2:{part}"])[f"layer.2:{part}"]
        assert sum(parameter.numel() for _, parameter in found) == size, part
        assert sum(p.numel() for p in encoder.parameters() if p.requires_grad) == size, part
    whole = sum(parameter.numel() for _, parameter in encoder.components()["layer.2"])
    assert sum(sizes(family)[part] for part in ("attention", "feed_forward", "norm")) == whole


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert"])
def test_exactly_the_named_part_moves(folders, family):
    for part in sizes(family):
        before, after = moved(Encoder.load(folders[family]), f"layer.2:{part}")
        changed = [name for name in before if not torch.equal(before[name], after[name])]
        assert changed and all(".1." in name for name in changed)
        if part == "bias":
            assert all(name.endswith("bias") for name in changed)
        if part == "heads.0.3":
            rows = [(after[name] - before[name]).abs() for name in changed if "value" in name or "v_lin" in name]
            for row in rows:
                assert row[8:24].max() == 0 and row[:8].min() > 0 and row[24:].min() > 0


def test_the_thirds_of_fused_matrices_are_queries_keys_and_values(folders):
    """For one token attention does not depend on queries and keys; for the first of many, queries depend on it alone.

    So the gradient reaches only the last third, and the first third by one token's state, that is, with rank 1.
    """
    config = AutoConfig.for_model("gpt2", vocab_size=50, n_embd=WIDTH, n_layer=LAYERS, n_head=4, n_inner=INNER)
    gpt2 = AutoModel.from_config(config).eval()
    modernbert = Encoder.load(folders["modernbert"]).model
    for model, layer, transposed in ((gpt2, gpt2.h[-1], True), (modernbert, modernbert.layers[-1], False)):
        found = Sublayers(layer)
        weight = layer.get_submodule(found.fused).weight.requires_grad_(True)
        thirds = {}
        for length in (1, 6):
            ids = torch.arange(5, 5 + length)[None]
            (gradient,) = torch.autograd.grad(model(input_ids=ids)[0][0, -1].pow(3).sum(), weight)
            thirds[length] = (gradient.T if transposed else gradient).split(WIDTH)
        query, key, value = thirds[1]
        assert query.abs().max() < 1e-6 * value.abs().max() > key.abs().max()
        assert [torch.linalg.matrix_rank(part, rtol=1e-4).item() == 1 for part in thirds[6]] == [True, False, False]
        for piece in found.query_value():
            assert piece.places == [*range(WIDTH), *range(2 * WIDTH, 3 * WIDTH)]


def test_decoders_are_laid_open_too():
    """GPT-2 has transposed matrices, Llama a gated inner part, norms without bias and keys that heads share."""
    gpt2 = AutoConfig.for_model("gpt2", vocab_size=50, n_embd=WIDTH, n_layer=LAYERS, n_head=4, n_inner=INNER)
    found = Sublayers(AutoModel.from_config(gpt2).h[0])
    assert (found.attention, found.feed_forward) == (["attn.c_attn", "attn.c_proj"], ["mlp.c_fc", "mlp.c_proj"])
    assert [piece.dimension for piece in found.heads([1], 4)] == [1, 0, 1, 0, 1, 0, 0]
    shape = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_attention_heads": 4, "num_key_value_heads": 2}
    llama = AutoConfig.for_model("llama", vocab_size=50, num_hidden_layers=LAYERS, **shape)
    found = Sublayers(AutoModel.from_config(llama).layers[0])
    assert found.attention == [f"self_attn.{letter}_proj" for letter in "qkvo"]
    assert found.words("self_attn.v_proj") == {"attention", "query_value"} != found.words("self_attn.k_proj")
    assert found.outer == "mlp.down_proj"
    with pytest.raises(UserError, match="do not have queries, keys and values of their own"):
        found.heads([0], 4)


def test_opened_rows_change_nothing_until_they_move(folders):
    """Names and values of all tensors stay, and rows that are named again keep their parameters."""
    encoder = Encoder.load(folders["modernbert"])
    before, chosen = copy.deepcopy(parameters(encoder)), ["layer.1:query_value", "layer.2:heads.0", "layer.2:heads.1"]
    encoder.thaw(chosen)
    assert list(parameters(encoder)) == list(before)
    assert all(torch.equal(value, before[name]) for name, value in encoder.tensors(chosen).items())
    first = encoder.components(chosen)
    encoder.thaw(chosen[:1])
    assert [name for name, value in encoder.named_parameters() if value.requires_grad] == [
        "model.layers.0.attn.Wqkv.parametrizations.weight.0.values"
    ]
    assert encoder.components(chosen) == first


def test_what_is_not_there_is_refused(folders):
    bert, modernbert = (Encoder.load(folders[family]) for family in ("bert", "modernbert"))
    with pytest.raises(UserError, match="modernbert has no bias that could train"):
        modernbert.thaw({"layer.1:bias", "layer.2:bias"})
    with pytest.raises(UserError, match="there is no head 4; a layer has 4, counted from 0"):
        bert.thaw({"layer.1:heads.0.4"})
    with pytest.raises(UserError, match=r"no layer\.9 to thaw; it has embeddings, layer\.1"):
        bert.thaw({"layer.9:bias"})
