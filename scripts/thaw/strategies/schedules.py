"""Schedules: the share of the peak rate at each update.

Each is a function (step, steps, warmup) -> share in [0, 1]: `step` counts updates from 0, `steps` is their
number in the phase, `warmup` how many of them the rate rises over.

Warm-up gives update `step` the share (step + 1) / warmup, so that the first update is not wasted at rate 0
and the last of the warm-up is the first at the peak. The fall after it begins at the peak and would reach 0
one update after the last, so that the last is not wasted either. (transformers' schedules are the same
shifted by one update:
their first update has rate 0.)
"""

import math
from collections.abc import Callable

Schedule = Callable[[int, int, int], float]


def constant(step: int, steps: int, warmup: int) -> float:
    """Rise, then stay at the peak."""
    return min(1.0, (step + 1) / warmup) if warmup else 1.0


def linear(step: int, steps: int, warmup: int) -> float:
    """Rise, then fall in a straight line (Devlin et al. 2019)."""
    if step < warmup:
        return constant(step, steps, warmup)
    return 1.0 - _fallen(step, steps, warmup)


def cosine(step: int, steps: int, warmup: int) -> float:
    """Rise, then fall along half a cosine (Loshchilov and Hutter 2017)."""
    if step < warmup:
        return constant(step, steps, warmup)
    return 0.5 * (1.0 + math.cos(math.pi * _fallen(step, steps, warmup)))


SCHEDULES: dict[str, Schedule] = {"linear": linear, "constant": constant, "cosine": cosine}


def warmup_steps(share: float, steps: int) -> int:
    """Return how many of a phase's updates the rate rises over: the share, rounded, and never all of them."""
    return min(round(share * steps), steps - 1)


def _fallen(step: int, steps: int, warmup: int) -> float:
    """Return the share of the fall that lies behind: 0 at the update after warm-up, 1 after the last."""
    return min(1.0, (step - warmup) / (steps - warmup))
