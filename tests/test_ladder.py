"""The ladder side network: its numbers and its operations against plain loops.

S sequences, T tokens, d width, w width of the network, h attention heads.
"""

import math

import numpy as np
import pytest
import torch

from test_layers import layers_of
from thaw.features.batch import Batch
from thaw.heads.combination import combination

SMALL = {"combine": "ladder", "width": 8, "heads": 2, "feed_forward": 2}
WIDE, LAYERS, TOKENS = 12, 3, 6


def ladder(**entry):
    """Return a side network on an encoder of three layers of width 12, every number of it random."""
    torch.manual_seed(3)
    found = combination(layers_of(**(SMALL | entry)), WIDE, LAYERS).eval()
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.normal_(std=0.4)
        found.network.alphas.copy_(torch.tensor([0.15, -0.2, 0.05]))
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
        ({"norm": True}, [0, 1, 2, 3]),
    ],
)
def test_a_ladder_is_its_formula(entry, read):
    module, (states, mask) = ladder(**entry), states_and_mask()
    alphas, temperature = [0.15, -0.2, 0.05], entry.get("temperature", 0.1)

    def gate(n):
        return 1 / (1 + math.exp(-alphas[n] / temperature))

    expected = looped(module, states, mask, read, gate, entry.get("norm", False), entry.get("heads", 2))
    with torch.no_grad():
        given = module(states, mask)
    assert module.read == read and given.shape == (3, TOKENS, WIDE) and module.width == WIDE
    assert given[mask].numpy() == pytest.approx(expected[mask.numpy()], abs=2e-5)


def test_its_operations_are_counted():
    """Each matrix by its own inputs and outputs, twice for each token; scores and weighted sums of attention."""
    module, (states, mask) = ladder(), states_and_mask()
    seen = []
    for part in module.modules():
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(lambda p, i, o: seen.append(2 * i[0].numel() * o.shape[-1]))
    module(states, mask)
    batch = Batch(torch.zeros(3, TOKENS, dtype=torch.int64), mask, None, None, torch.arange(3))
    attention = 2 * (2 * 3 * TOKENS * TOKENS * 8) * len(module.network.blocks)
    assert module.flops(batch) == sum(seen) + attention
