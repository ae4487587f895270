"""Schedules in closed form and as properties; parameter groups."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import LayerNorm, Linear

from thaw.adaptation.optimizers import groups, peak
from thaw.adaptation.schedules import constant, cosine, linear, lr_factor, slanted_triangular
from thaw.schema.phases import PhaseConfig

SHARES = st.floats(0, 0.99)


def shares(batches: int, epochs: list[int] = (1,), stage: int = 0, **settings) -> list[float]:
    """Return the shares of all updates of a phase, or of one of its stages."""
    phase, first = PhaseConfig(**settings), sum(epochs[:stage]) * batches
    steps = range(first, first + epochs[stage] * batches)
    return [lr_factor(phase, [batches * count for count in epochs], stage, step, batches) for step in steps]


def test_values_by_hand():
    rise = [0.25, 0.5, 0.75, 1.0]
    assert [linear(step, 8, 4) for step in range(8)] == [*rise, 1.0, 0.75, 0.5, 0.25]
    assert [constant(step, 8, 4) for step in range(8)] == [*rise, 1.0, 1.0, 1.0, 1.0]
    half = [0.5 * (1 + math.cos(math.pi * i / 4)) for i in range(4)]
    assert [cosine(step, 8, 4) for step in range(8)] == pytest.approx([*rise, *half])
    assert linear(0, 1, 0) == constant(0, 1, 0) == cosine(0, 1, 0) == 1.0


@given(st.integers(1, 300), SHARES, st.sampled_from(["linear", "constant", "cosine"]))
def test_shares_lie_above_0_reach_1_and_never_fall_before_it(steps, warmup, name):
    found, rise = shares(steps, schedule=name, warmup=warmup), min(round(warmup * steps), steps - 1)
    assert all(0 < value <= 1 for value in found)
    assert found[max(rise - 1, 0)] == found[rise] == 1.0
    assert found[: rise + 1] == sorted(found[: rise + 1])
    assert found[rise:] == sorted(found[rise:], reverse=True)


def test_slanted_triangular_is_the_formula_of_the_paper():
    """Howard and Ruder 2018, equation 3, where cut_frac times T is whole, at the paper's own values."""

    def paper(t: int, total: int, cut_frac: float = 0.1, ratio: float = 32) -> float:
        cut = math.floor(total * cut_frac)
        p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / cut_frac - 1))
        return (1 + p * (ratio - 1)) / ratio

    for total in (10, 100, 1600):
        found = shares(total, schedule="slanted_triangular")
        assert found == pytest.approx([paper(t, total) for t in range(total)])
    assert slanted_triangular(0, 100, 10) == pytest.approx(1 / 32) and slanted_triangular(10, 100, 10) == 1.0


@given(st.integers(1, 300))
def test_slanted_triangular_never_leaves_its_range_however_few_the_steps(steps):
    found = shares(steps, schedule="slanted_triangular")
    assert all(1 / 32 - 1e-9 <= value <= 1 for value in found) and max(found) == 1.0


def test_warmup_is_a_share_of_the_phase_or_of_one_epoch():
    whole = shares(10, [4], warmup=0.1)
    one = shares(10, [4], warmup=0.1, warmup_of="epoch")
    assert whole[:4] == [0.25, 0.5, 0.75, 1.0] and one[0] == 1.0
    assert shares(10, [4], warmup=0.5, warmup_of="epoch")[:6] == [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]


def test_a_schedule_spans_the_stages_or_restarts_with_each():
    """AllenNLP's: a triangle for each epoch while layers are frozen, then one for all that remains."""
    slanted, epochs = {"schedule": "slanted_triangular"}, [1, 1, 3]
    through = [shares(10, epochs, stage, unfreeze={}, **slanted) for stage in range(3)]
    assert sum(through, []) == shares(10, [5], **slanted)
    again = [shares(10, epochs, stage, unfreeze={"restart": True}, **slanted) for stage in range(3)]
    assert again == [shares(10, [count], **slanted) for count in epochs]


def test_groups_give_rates_and_decay():
    components = {
        "head": list(Linear(4, 2).named_parameters()),
        "layer.1": [*Linear(4, 4).named_parameters(), *LayerNorm(4).named_parameters()],
    }
    found = groups(components, PhaseConfig(rate=1e-4, head_rate=1e-2, weight_decay=0.1), 1)
    kinds = {(g["peak"], g["weight_decay"], len(g["params"]), g["params"][0].ndim) for g in found}
    assert kinds == {(1e-2, 0.1, 1, 2), (1e-2, 0.0, 1, 1), (1e-4, 0.1, 1, 2), (1e-4, 0.0, 3, 1)}
    assert all(g["lr"] == g["peak"] for g in found)
    assert {g["component"] for g in found} == set(components)
    assert {g["peak"] for g in groups(components, PhaseConfig(rate=1e-4), 1)} == {1e-4}


def test_rates_by_layer():
    """From the top layer down, the embeddings below layer 1; the head keeps its own."""
    names = ["head", "layer.3", "layer.2:bias", "layer.1", "embeddings"]

    def peaks(**settings) -> list[float]:
        return [peak(name, PhaseConfig(rate=1e-3, head_rate=0.5, **settings), 3) for name in names]

    assert peaks() == [0.5, 1e-3, 1e-3, 1e-3, 1e-3]
    assert peaks(layer_decay=0.5) == [0.5, 1e-3, 5e-4, 2.5e-4, 1.25e-4]
    assert peak("layer.1", PhaseConfig(rate=0.01, layer_decay=1 / 2.6), 4) == pytest.approx(0.01 / 2.6**3)
