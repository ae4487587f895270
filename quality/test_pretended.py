"""The pretended CUDA device: it keeps torch's rules of devices, and its numbers are those of the CPU."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pretended import CUDA, OnCuda, pretended
from thaw.core.home import HOME

# What is done with two tensors [3, 3] of numbers, one of indices and one of bool, each on a device of its own.
OPERATIONS = {
    "add": lambda a, b, places, mask: a + b,
    "add a number": lambda a, b, places, mask: a + b.sum(),
    "a number and more": lambda a, b, places, mask: a.sum() * b,
    "add in place": lambda a, b, places, mask: a.add_(b),
    "product": lambda a, b, places, mask: a @ b,
    "linear": lambda a, b, places, mask: functional.linear(a, b),
    "masked fill": lambda a, b, places, mask: a.masked_fill(mask, 0),
    "where": lambda a, b, places, mask: torch.where(mask, a, b),
    "where, a number": lambda a, b, places, mask: torch.where(a > 0, a, 0.0),
    "gather": lambda a, b, places, mask: a.gather(0, places),
    "scatter": lambda a, b, places, mask: a.scatter(0, places, b),
    "rows by index": lambda a, b, places, mask: torch.ops.aten.index(a, [places]),
    "index select": lambda a, b, places, mask: a.index_select(0, places.flatten()),
    "index put": lambda a, b, places, mask: torch.ops.aten.index_put(a, [places.flatten()], b.sum(0)),
    "cat": lambda a, b, places, mask: torch.cat([a, b]),
    "stack": lambda a, b, places, mask: torch.stack([a, b]),
    "to the other": lambda a, b, places, mask: a.to(b.device),
    "like": lambda a, b, places, mask: torch.zeros_like(a) + b,
    "new": lambda a, b, places, mask: a.new_ones(3, 3) + b,
    "embedding": lambda a, b, places, mask: functional.embedding(places, a),
    "cross entropy": lambda a, b, places, mask: functional.cross_entropy(a, places.amax(0)),
    "squared error": lambda a, b, places, mask: functional.mse_loss(a, b),
    "layer norm": lambda a, b, places, mask: functional.layer_norm(a, (3,), b.sum(0)),
    "einsum": lambda a, b, places, mask: torch.einsum("ij,jk->ik", a, b),
    "lerp": lambda a, b, places, mask: a.lerp_(b, 0.1),
    "addcdiv": lambda a, b, places, mask: a.addcdiv_(a, b, value=0.1),
    "cosine": lambda a, b, places, mask: functional.cosine_similarity(a, b, dim=-1),
    "attention": lambda a, b, places, mask: functional.scaled_dot_product_attention(
        a.view(1, 1, 3, 3), a.view(1, 1, 3, 3), b.view(1, 1, 3, 3)
    ),
    "foreach": lambda a, b, places, mask: torch._foreach_mul([a], [b])[0],
    "foreach by number": lambda a, b, places, mask: torch._foreach_mul([a], 2.0)[0],
}


def verdict(operation, devices) -> str:
    """Return the device of what an operation gives, or that it does not mix."""
    first, second, third, fourth = devices
    values = torch.ones(3, 3, device=first), torch.ones(3, 3, device=second)
    try:
        found = operation(
            *values, torch.ones(3, 3, device=third).long(), torch.ones(3, 3, device=fourth, dtype=torch.bool)
        )
    except RuntimeError as error:
        assert any(words in str(error).lower() for words in ("same device", "device mismatch", "mismatching")), error
        return "does not mix"
    return found.device.type


MIXTURES = [
    [torch.device(kind, 0) if kind == "cuda" else torch.device(kind) for kind in kinds.split()]
    for kinds in (
        "cuda cuda cuda cuda",
        "cuda cpu cuda cuda",
        "cpu cuda cuda cuda",
        "cuda cuda cpu cuda",
        "cuda cuda cuda cpu",
        "cpu cpu cuda cpu",
        "cpu cpu cpu cuda",
    )
]


INDEXED = ("rows by index", "index put")  # FakeTensorMode lets the CPU's tensor be indexed from a card, CUDA does not


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_mixes_is_what_torch_says(name):
    for devices in MIXTURES:
        if name in INDEXED and devices[0].type == "cpu":
            continue
        with FakeTensorMode():
            due = verdict(OPERATIONS[name], devices)
        with pretended():
            assert verdict(OPERATIONS[name], devices) == due, devices


def test_a_copy_may_cross_over():
    """FakeTensorMode cannot say it: without CUDA it has no copies to a slice."""
    with pretended():
        there, here = torch.zeros(3, 3, device=CUDA), torch.ones(3, 3)
        there[0] = here[0]
        here.copy_(there)
        assert here[:, 0].tolist() == [1.0, 0.0, 0.0] and there.is_cuda and not here.is_cuda


def test_an_index_on_the_device_reads_nothing_of_the_cpu():
    with pretended():
        assert torch.ones(3, device=CUDA)[torch.tensor([0, 1])].is_cuda
        with pytest.raises(RuntimeError, match="same device"):
            torch.ones(3)[torch.tensor([0, 1], device=CUDA)]


def test_what_numpy_may_not_read():
    with pretended():
        there = torch.ones(3, device=CUDA)
        for read in (lambda tensor: tensor.numpy(), lambda tensor: tensor.detach().numpy(), np.asarray):
            with pytest.raises(TypeError, match="cuda:0 device type tensor to numpy"):
                read(there)
        assert (there.cpu().numpy() == 1).all() and there.tolist() == [1.0] * 3 and there.sum().item() == 3.0


def test_what_torch_wants_on_the_cpu():
    with pretended():
        states, lengths = torch.ones(2, 3, 4, device=CUDA), torch.tensor([3, 2])
        packed = pack_padded_sequence(states, lengths, batch_first=True)
        assert packed.data.is_cuda and not packed.batch_sizes.is_cuda
        back, sizes = pad_packed_sequence(packed, batch_first=True)
        assert back.is_cuda and not sizes.is_cuda
        with pytest.raises(RuntimeError, match="must be on the CPU"):
            torch._VF._pack_padded_sequence(states, lengths.to(CUDA), True)


def trained(device) -> list[torch.Tensor]:
    """Return losses and parameters of a small network of all that heads are made of, after three updates."""
    torch.manual_seed(1)
    ids, mask = torch.randint(9, (4, 6)).to(device), torch.ones(4, 6, dtype=torch.bool, device=device)
    model = torch.nn.ModuleDict(
        {
            "embedding": torch.nn.Embedding(9, 8),
            "lstm": torch.nn.LSTM(8, 4, 2, batch_first=True, bidirectional=True),
            "norm": torch.nn.LayerNorm(8),
            "output": torch.nn.Linear(8, 3),
        }
    ).to(device)
    optimizer, found = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True), []
    for _ in range(3):
        states = model["lstm"](model["embedding"](ids))[0].view(4, 6, 2, 4).transpose(1, 2)
        states = functional.scaled_dot_product_attention(states, states, states).transpose(1, 2).flatten(2)
        pooled = model["norm"](states).masked_fill(~mask.unsqueeze(2), -torch.inf).amax(1)
        loss = functional.cross_entropy(model["output"](pooled), torch.arange(4, device=device) % 3)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss)
    return [tensor.detach().cpu() for tensor in (*found, *model.parameters())]


def test_what_trains_there_has_the_cpus_numbers():
    torch.set_num_threads(1)
    here = trained(torch.device("cpu"))
    with pretended():
        there = trained(CUDA)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(here, there, strict=True))


def test_nothing_stays_behind():
    with pretended():
        assert isinstance(torch.nn.Linear(2, 2).to(CUDA).weight, OnCuda)
    assert not torch.cuda.is_available() or torch.ones(1, device="cuda").sum().item() == 1.0
    with pytest.raises((RuntimeError, AssertionError)) if not torch.cuda.is_available() else pretended():
        torch.ones(1, device="cuda:0")


@pytest.mark.slow
def test_the_tests_for_a_card_run_on_the_pretended_one():
    """They lean on helpers of other tests, and no other test would see that these have changed."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", HOME / "quality/gpu"]
    environment = os.environ | {"THAW_TEST_DEVICE": "pretended"}
    done = subprocess.run(command, cwd=HOME, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout).group(1)) > 100
