"""Cost formulas against torch's own counter (eager attention) and against the theory of freezing."""

import time
from collections import Counter

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModel

from thaw.compute_cost.flops import Shape, encoder_flops, layer_flops, training_flops
from thaw.compute_cost.stopwatch import Stopwatch, peak_memory_mb
from thaw.core.errors import UserError

LAYERS = 4
SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 64,
}
FAMILIES = {
    "bert": SIZES,
    "distilbert": {
        "vocab_size": 50,
        "dim": 32,
        "n_layers": LAYERS,
        "n_heads": 2,
        "hidden_dim": 96,
        "max_position_embeddings": 64,
    },
    "modernbert": SIZES | {"pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2},
    "eurobert": SIZES | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "mask_token_id": 3},
    "modernbert-decoder": SIZES | {"pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2},
    "gpt2": {"vocab_size": 50, "n_embd": 32, "n_layer": LAYERS, "n_head": 2, "n_positions": 64},
    "openai-gpt": {"vocab_size": 50, "n_embd": 32, "n_layer": LAYERS, "n_head": 2, "n_positions": 64},
    "llama": SIZES | {"num_key_value_heads": 1},
    "deberta-v2": SIZES
    | {
        "relative_attention": True,
        "position_buckets": 8,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
    },
}


def model_of(family, attention="eager"):
    config = AutoConfig.for_model(family, **FAMILIES[family])
    config._attn_implementation = attention
    return AutoModel.from_config(config), Shape.of(config.to_dict())


def names(module, components):
    """The parameters of BERT's components by name."""
    for name, _ in module.named_parameters():
        parts = name.split(".")
        component = f"layer.{int(parts[2]) + 1}" if parts[0] == "encoder" else parts[0]
        if component in components:
            yield name


@pytest.mark.parametrize("family", FAMILIES)
def test_forward_against_torchs_counter(family):
    model, shape = model_of(family)
    batch, tokens = 8, 24
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.ones(batch, tokens, dtype=torch.long))
    pooler = 2 * batch * shape.width**2 if family == "bert" else 0
    assert encoder_flops(shape, [tokens] * batch) == pytest.approx(counter.get_total_flops() - pooler, rel=0.03)


def test_torch_counts_no_fused_attention_on_a_processor_and_the_formula_does():
    model, shape = model_of("bert", "sdpa")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()(torch.ones(8, 24, dtype=torch.long))
    fused = 8 * LAYERS * shape.attention(24)
    due = encoder_flops(shape, [24] * 8) - fused + 2 * 8 * shape.width**2
    assert fused > 0 and counter.get_total_flops() == pytest.approx(due, rel=1e-6)


@pytest.mark.parametrize(
    "components",
    [
        ["layer.4"],
        ["layer.2", "layer.3", "layer.4"],
        ["embeddings", "layer.1", "layer.2", "layer.3", "layer.4"],
        ["embeddings"],
        ["layer.1", "layer.2", "layer.3", "layer.4"],
    ],
    ids=lambda c: "+".join(c),
)
def test_training_against_torchs_counter(components):
    model, shape = model_of("bert")
    model.requires_grad_(False)
    chosen = set(names(model, components))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in chosen)
    with FlopCounterMode(display=False) as counter:
        model(torch.ones(3, 20, dtype=torch.long)).last_hidden_state.sum().backward()
    pooler = 2 * 3 * shape.width**2
    counted = counter.get_total_flops() - pooler
    assert training_flops(shape, [20] * 3, None, components) == pytest.approx(counted, rel=0.03)


def test_one_layer_by_hand():
    shape = Shape(layers=2, width=10, intermediate=40)
    assert layer_flops(shape, 5) == 8 * 5 * 100 + 4 * 25 * 10 + 4 * 5 * 10 * 40
    assert encoder_flops(shape, [5, 5], boundary=1) == 2 * layer_flops(shape, 5)
    assert training_flops(shape, [5], 2, ["head"]) == 0


@pytest.mark.parametrize("frozen", range(12))
def test_theory_of_freezing_and_resuming(frozen):
    shape = Shape(layers=12, width=768, intermediate=3072)
    components = [f"layer.{n}" for n in range(frozen + 1, 13)]
    full = training_flops(shape, [64], None, ["embeddings", *(f"layer.{n}" for n in range(1, 13))])
    assert full == 3 * encoder_flops(shape, [64])
    freezing = full / training_flops(shape, [64], None, components)
    resuming = full / training_flops(shape, [64], frozen, components)
    assert freezing == pytest.approx(36 / (36 - 2 * frozen), rel=0.15)
    assert resuming == pytest.approx(12 / (12 - frozen), rel=0.15)


def test_a_shape_without_its_numbers_is_an_error():
    with pytest.raises(UserError, match="none of num_hidden_layers, n_layers, n_layer; its cost cannot be counted"):
        Shape.of({"hidden_size": 3})


def test_seconds_by_part_and_memory():
    watch = Stopwatch()
    for _ in range(2):
        with watch("train"):
            time.sleep(0.01)
    seconds = watch.seconds()
    assert seconds["train"] >= 0.02 and seconds["total"] >= seconds["train"]
    assert set(seconds) == {"load", "train", "evaluate", "total"}
    assert 10 < peak_memory_mb(torch.device("cpu")) < 100_000


def test_operations_are_counted_once_for_each_length(monkeypatch):
    shape, lengths, asked = Shape(6, 384, 1536), [24, 7, 24, 24, 7, 128] * 50, []
    weights, everything = Shape.weights, ["embeddings", *(f"layer.{n}" for n in range(1, 7))]
    each = sum(training_flops(shape, [tokens], None, everything) for tokens in lengths)
    forward = sum(encoder_flops(shape, [tokens], 2) for tokens in lengths)
    monkeypatch.setattr(Shape, "weights", lambda self, tokens: asked.append(tokens) or weights(self, tokens))
    assert encoder_flops(shape, lengths, 2) == encoder_flops(shape, Counter(lengths), 2) == forward
    assert sorted(asked) == [7, 7, 24, 24, 128, 128]
    assert training_flops(shape, lengths, None, everything) == each
    assert training_flops(shape, Counter(lengths), None, everything) == each
    assert len(asked) == 6 + 2 * 3 * 7, "of each length, that of all layers and of the gradients of six"
