"""Rounds: the parts of a phase that end where it may be evaluated. No torch here: the plan counts them too."""

from itertools import accumulate, pairwise
from typing import NamedTuple

from thaw.schema.phases import PhaseConfig

ROUNDS = 10  # of a phase with `updates` that does not say how often it is evaluated


class Round(NamedTuple):
    """A part of a phase: its updates, and whether it ends where the phase is evaluated."""

    updates: int
    judged: bool = True


def rounds(phase: PhaseConfig, stages: list[dict], per_epoch: int) -> list[list[Round]]:
    """Return the rounds of each stage of a phase.

    A round is an epoch. Of a phase with `updates` it is one of `judge` parts, equal but for rounding; a stage that ends
    within a part cuts it in two, and the first of them is not evaluated. Args: the phase; its stages, as
    `stages_of` gives them; the updates of an epoch.
    """
    if phase.updates is None:
        return [[Round(per_epoch)] * stage["epochs"] for stage in stages]
    count = phase.judge or min(ROUNDS, phase.updates)
    points = {round(phase.updates * part / count) for part in range(1, count + 1)}
    ends = [0, *accumulate(stage["updates"] for stage in stages)]
    cuts = sorted(points | set(ends))
    parts = [(end, Round(end - start, end in points)) for start, end in pairwise(cuts)]
    return [[part for end, part in parts if first < end <= last] for first, last in pairwise(ends)]


def lengths(every: list[list[Round]]) -> list[int]:
    """Return the updates of each stage."""
    return [sum(part.updates for part in stage) for stage in every]
