"""Schedules in closed form and as properties; parameter groups."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import LayerNorm, Linear

from thaw.settings import Phase
from thaw.strategies.groups import groups
from thaw.strategies.schedules import SCHEDULES, constant, cosine, linear, warmup_steps

STEPS = st.integers(1, 300).flatmap(lambda steps: st.tuples(st.just(steps), st.floats(0, 0.99)))


def test_names_are_those_of_the_settings():
    assert set(SCHEDULES) == set(Phase.model_fields["schedule"].annotation.__args__)


def test_values_by_hand():
    rise = [0.25, 0.5, 0.75, 1.0]
    assert [linear(step, 8, 4) for step in range(8)] == [*rise, 1.0, 0.75, 0.5, 0.25]
    assert [constant(step, 8, 4) for step in range(8)] == [*rise, 1.0, 1.0, 1.0, 1.0]
    half = [0.5 * (1 + math.cos(math.pi * i / 4)) for i in range(4)]
    assert [cosine(step, 8, 4) for step in range(8)] == pytest.approx([*rise, *half])
    assert linear(0, 1, 0) == constant(0, 1, 0) == cosine(0, 1, 0) == 1.0


@given(STEPS, st.sampled_from(sorted(SCHEDULES)))
def test_shares_lie_above_0_reach_1_and_never_fall_before_it(sizes, name):
    steps, share = sizes
    warmup = warmup_steps(share, steps)
    assert 0 <= warmup < steps
    shares = [SCHEDULES[name](step, steps, warmup) for step in range(steps)]
    assert all(0 < value <= 1 for value in shares)
    assert shares[max(warmup - 1, 0)] == shares[warmup] == 1.0 or (warmup == 0 and shares[0] == 1.0)
    assert shares[: warmup + 1] == sorted(shares[: warmup + 1])
    assert shares[warmup:] == sorted(shares[warmup:], reverse=True)


def test_groups_give_rates_and_decay():
    components = {
        "head": list(Linear(4, 2).named_parameters()),
        "layer.1": [*Linear(4, 4).named_parameters(), *LayerNorm(4).named_parameters()],
    }
    found = groups(components, Phase(rate=1e-4, head_rate=1e-2, weight_decay=0.1))
    kinds = {(g["peak"], g["weight_decay"], len(g["params"]), g["params"][0].ndim) for g in found}
    assert kinds == {(1e-2, 0.1, 1, 2), (1e-2, 0.0, 1, 1), (1e-4, 0.1, 1, 2), (1e-4, 0.0, 3, 1)}
    assert all(g["lr"] == g["peak"] for g in found)
    assert {g["peak"] for g in groups(components, Phase(rate=1e-4))} == {1e-4}
