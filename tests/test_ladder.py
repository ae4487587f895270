"""The ladder side network: its numbers against plain loops, its start against the encoder, its part in runs.

S sequences, T tokens, d width, w width of the network, h attention heads.
"""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from test_layers import layers_of
from thaw.core.errors import UserError
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.heads.combination import combination
from thaw.training.checkpoints import Start
from tiny import tiny_encoder
from tiny_corpus import small_berts

SMALL = {"combine": "ladder", "width": 8, "heads": 2, "feed_forward": 2}
WIDE, LAYERS, TOKENS = 12, 3, 6
LIKE_BERT = ("bert", "roberta", "xlm_roberta", "electra", "distilbert")


def ladder(**entry):
    """Return a side network on an encoder of three layers of width 12, every number of it random."""
    torch.manual_seed(3)
    found = combination(layers_of(**(SMALL | entry)), WIDE, LAYERS).eval()
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.normal_(std=0.4)
        if found.network.alphas is not None:
            found.network.alphas.copy_(torch.tensor([0.15, -0.2, 0.05])[: len(found.network.alphas)])
    return found


def states_and_mask() -> tuple[dict[int, torch.Tensor], torch.Tensor]:
    draw = torch.Generator().manual_seed(5)
    states = {n: torch.randn(3, TOKENS, WIDE, generator=draw) for n in range(LAYERS + 1)}
    return states, torch.arange(TOKENS) < torch.tensor([[6], [4], [1]])


def normed(values, gain=1.0, bias=0.0):
    centred = values - values.mean()
    return centred / np.sqrt((centred**2).mean()) * gain + bias


def looped(module, states: dict, mask, read: list[int], gate, norm: bool = False, heads: int = 2) -> np.ndarray:
    """Return what a side network gives [S, T, d], one sequence and one token after the other.

    Args: `gate(n)`, the share of its boundary in what block n reads.
    """
    values = {name: value.detach().double().numpy() for name, value in module.network.state_dict().items()}

    def times(name, vector):
        return values[f"{name}.weight"] @ vector + values[f"{name}.bias"]

    def brought(rung, sequence, token):
        vector = states[read[rung]][sequence, token].double().numpy()
        return times(f"down.{rung}", normed(vector) if norm else vector)

    def block(name, vectors):
        size, found = len(vectors[0]) // heads, []
        for vector in vectors:
            read_here = []
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                query = times(f"{name}.query", vector)[part]
                scores = [query @ times(f"{name}.key", other)[part] / math.sqrt(size) for other in vectors]
                shares = np.exp(scores) / np.exp(scores).sum()
                read_here.append(sum(s * times(f"{name}.value", v)[part] for s, v in zip(shares, vectors, strict=True)))
            first = vector + times(f"{name}.output", np.concatenate(read_here))
            first = normed(first, values[f"{name}.attention_norm.weight"], values[f"{name}.attention_norm.bias"])
            inner = times(f"{name}.inner", first)
            inner = np.array([x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in inner])
            second = first + times(f"{name}.outer", inner)
            found.append(normed(second, values[f"{name}.norm.weight"], values[f"{name}.norm.bias"]))
        return found

    result = np.zeros((*mask.shape, WIDE))
    for sequence, length in enumerate(mask.sum(1).tolist()):
        below = [brought(0, sequence, token) for token in range(length)]
        for n in range(len(read) - 1):
            above = [brought(n + 1, sequence, token) for token in range(length)]
            mixed = [gate(n) * a + (1 - gate(n)) * b for a, b in zip(above, below, strict=True)]
            below = block(f"blocks.{n}", mixed)
        result[sequence, :length] = [times("up", vector) for vector in below]
    return result


@pytest.mark.parametrize(
    ("entry", "read"),
    [
        ({}, [0, 1, 2, 3]),
        ({"temperature": 1.0, "heads": 4}, [0, 1, 2, 3]),
        ({"every": 2, "norm": True}, [0, 1, 3]),
        ({"every": 3, "gates": "fixed"}, [0, 3]),
    ],
)
def test_a_ladder_is_its_formula(entry, read):
    module, (states, mask) = ladder(**entry), states_and_mask()
    alphas, temperature = [0.15, -0.2, 0.05], entry.get("temperature", 0.1)

    def gate(n):
        return 0.5 if "gates" in entry else 1 / (1 + math.exp(-alphas[n] / temperature))

    expected = looped(module, states, mask, read, gate, entry.get("norm", False), entry.get("heads", 2))
    with torch.no_grad():
        given = module(states, mask)
    assert module.read == read and given.shape == (3, TOKENS, WIDE) and module.width == WIDE
    assert given[mask].numpy() == pytest.approx(expected[mask.numpy()], abs=2e-5)


@pytest.mark.parametrize("family", LIKE_BERT)
def test_as_wide_as_the_encoder_and_with_closed_gates_a_pruned_start_is_the_encoder(family, tmp_path):
    folder = tiny_encoder(family, tmp_path)
    entry = layers_of(combine="ladder", start="pruned", width=32, heads=4, feed_forward=1.5)
    module = combination(entry, 32, 3).eval()
    module.start(folder)
    encoder, mask = Encoder.load(folder), torch.arange(7) < torch.tensor([[7], [4], [1]])
    ids = torch.randint(5, 30, (3, 7), generator=torch.Generator().manual_seed(1))
    found = encoder.boundaries(Batch(ids, mask, None, None, torch.arange(3)))
    states, outputs = dict(enumerate(found)), []
    hooks = [
        block.register_forward_hook(lambda b, i, output: outputs.append(output)) for block in module.network.blocks
    ]
    with torch.no_grad():
        module.network.alphas.fill_(-100.0)
        last = module(states, mask)
    for hook in hooks:
        hook.remove()
    for output, expected in zip([*outputs, last], [*found[1:], found[3]], strict=True):
        assert torch.allclose(output[mask], expected[mask], atol=1e-5)


def test_after_another_task_a_pruned_start_is_of_the_encoder_that_was_trained_there(benches):
    bench = benches("classification")
    spec = bench.spec(FROZEN, head=head_of(start="pruned", width=32, heads=4, feed_forward=1.5))
    whole = Encoder.load(bench.encoder)
    changed = {name: 2 * tensor for name, tensor in whole.tensors(["layer.2"]).items()}
    pretrained, after = bench.run(spec), bench.run(spec, Start({}, changed))
    blocks = [run.head.combination.network.blocks for run in (pretrained, after)]
    for number in range(3):
        before, now = (one[number].inner.weight for one in blocks)
        assert torch.equal(now, before * (2 if number == 1 else 1)) and before.any()
    with pytest.raises(UserError, match="start: pruned takes the weights of layers without inserts.*start: random"):
        pretrained.head.combination.start(bench.encoder, {}, inserts=True)


def kept_by_loops(layers: list[dict], read: list[int], width: int, heads: int, each: int, inner: int) -> dict:
    """Return places of hidden dimensions, and by layer those of queries and keys, of values, and of the inner part."""

    def top(values, count):
        order = sorted(range(len(values)), key=lambda place: (-values[place], place))
        return sorted(order[:count])

    size, dimensions = layers[0]["q"].shape[0], []
    for place in range(size):
        total = 0.0
        for number in read:
            layer = layers[number - 1]
            total += sum(layer[name][:, place].sum() for name in ("q", "k", "v", "i"))
            total += layer["o"][place].sum() + layer["u"][place].sum()
        dimensions.append(total)
    kept = {"dimensions": top(dimensions, width)}
    for number in read:
        layer, chosen = layers[number - 1], kept["dimensions"]
        matched = [layer["q"][row, chosen].sum() + layer["k"][row, chosen].sum() for row in range(size)]
        values = [layer["v"][row, chosen].sum() + layer["o"][chosen, row].sum() for row in range(size)]
        units = [layer["i"][row, chosen].sum() + layer["u"][chosen, row].sum() for row in range(len(layer["i"]))]
        wide = size // 4
        use = [sum(matched[h * wide + n] + values[h * wide + n] for n in range(wide)) for h in range(4)]
        places = [range(h * wide, (h + 1) * wide) for h in top(use, heads)]
        kept[number] = (
            [p[n] for p in places for n in top([matched[m] for m in p], each)],
            [p[n] for p in places for n in top([values[m] for m in p], each)],
            top(units, inner),
        )
    return kept


def test_pruning_keeps_what_has_the_largest_weights(tmp_path):
    """Heads, units and hidden dimensions, each against loops over the files' numbers, which differ much in size."""
    folder = tiny_encoder("bert", tmp_path)
    draw, weights = torch.Generator().manual_seed(2), load_file(folder / "model.safetensors")
    for name, weight in weights.items():
        if "encoder.layer" in name and weight.ndim == 2:
            rows, columns = (torch.randn(size, generator=draw).exp() for size in weight.shape)
            weight *= rows.unsqueeze(1) * columns
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    module = combination(layers_of(**SMALL, start="pruned", every=2), 32, 3)
    module.start(folder)
    model = Encoder.load(folder).model
    names = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value"}
    names |= {"o": "attention.output.dense", "i": "intermediate.dense", "u": "output.dense"}
    whole = [{key: layer.get_submodule(name) for key, name in names.items()} for layer in model.encoder.layer]
    sizes = [{key: part.weight.detach().abs().double().numpy() for key, part in layer.items()} for layer in whole]
    kept = kept_by_loops(sizes, [1, 3], width=8, heads=2, each=4, inner=16)
    chosen, state = kept["dimensions"], module.network.state_dict()
    for rung, number in enumerate([1, 3]):
        matched, values, units = kept[number]
        places = {"query": ("q", matched), "key": ("k", matched), "value": ("v", values), "inner": ("i", units)}
        for name, (key, rows) in places.items():
            part = whole[number - 1][key]
            assert torch.equal(state[f"blocks.{rung}.{name}.weight"], part.weight[rows][:, chosen]), (number, name)
            assert torch.equal(state[f"blocks.{rung}.{name}.bias"], part.bias[rows])
        for name, key, columns in (("output", "o", values), ("outer", "u", units)):
            part = whole[number - 1][key]
            assert torch.equal(state[f"blocks.{rung}.{name}.weight"], part.weight[chosen][:, columns]), (number, name)
            assert torch.equal(state[f"blocks.{rung}.{name}.bias"], part.bias[chosen])
    picked = torch.eye(32)[chosen]
    assert torch.equal(state["up.weight"], picked.T) and not state["up.bias"].any()
    assert all(torch.equal(state[f"down.{n}.weight"], picked) and not state[f"down.{n}.bias"].any() for n in range(3))


def test_its_operations_are_counted():
    """Each matrix by its own inputs and outputs, twice for each token; scores and weighted sums of attention."""
    module, (states, mask) = ladder(every=2), states_and_mask()
    seen = []
    for part in module.modules():
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(lambda p, i, o: seen.append(2 * i[0].numel() * o.shape[-1]))
    module(states, mask)
    batch = Batch(torch.zeros(3, TOKENS, dtype=torch.int64), mask, None, None, torch.arange(3))
    attention = 2 * (2 * 3 * TOKENS * TOKENS * 8) * len(module.network.blocks)
    assert module.flops(batch) == sum(seen) + attention


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """Small BERTs on small corpora, by type of task and reading of pairs."""
    return small_berts(tmp_path_factory)


FROZEN = {"train": ["head"], "boundary": 3, "reads": [0, 1, 2]}


def head_of(**changes) -> dict:
    return {"pooling": "mean", "layers": SMALL | changes}
