"""Schedules: the share of the peak rate at each update.

Each is a function (step, steps, rise) -> share in [0, 1]: `step` counts updates from 0, `steps` is the number that the
schedule spans, `rise` how many of them the rate rises over.

Warm-up gives update `step` the share (step + 1) / rise, so that the first update is not wasted at rate 0 and the last
of the warm-up is the first at the peak. The fall after it begins at the peak and would reach 0 one update after the
last, so that the last is not wasted either. (transformers' schedules are the same shifted by one update: their first
update has rate 0.)
"""

import math

from thaw.schema.phases import PhaseConfig

CUT_FRAC, RATIO = 0.1, 32.0  # of the slanted triangle, as in the paper


def constant(step: int, steps: int, rise: int) -> float:
    """Rise, then stay at the peak."""
    return min(1.0, (step + 1) / rise) if rise else 1.0


def linear(step: int, steps: int, rise: int) -> float:
    """Rise, then fall in a straight line (Devlin et al. 2019)."""
    if step < rise:
        return constant(step, steps, rise)
    return 1.0 - _fallen(step, steps, rise)


def cosine(step: int, steps: int, rise: int) -> float:
    """Rise, then fall along half a cosine (Loshchilov and Hutter 2017)."""
    if step < rise:
        return constant(step, steps, rise)
    return 0.5 * (1.0 + math.cos(math.pi * _fallen(step, steps, rise)))


def slanted_triangular(step: int, steps: int, rise: int) -> float:
    """Rise from 1 / RATIO and fall back to it in straight lines (Howard and Ruder 2018, equation 3).

    `rise` is the paper's cut = floor(steps * cut_frac). Its fall takes cut * (1 / cut_frac - 1) updates, which is
    steps - cut but for the rounding of cut; with that rounding it would end below 0, so steps - cut it is.
    """
    part = step / rise if step < rise else 1.0 - _fallen(step, steps, rise)
    return (1.0 + part * (RATIO - 1.0)) / RATIO


SCHEDULES = {
    "linear": linear,
    "constant": constant,
    "cosine": cosine,
    "slanted_triangular": slanted_triangular,
    "plateau": constant,  # but for plateau_factor, which depends on scores
}
BETTER = 1e-4  # a score is better than another where it is by this share, as torch's ReduceLROnPlateau has it


def lr_factor(phase: PhaseConfig, lengths: list[int], stage: int, step: int, per_epoch: int) -> float:
    """Return the share of the peak rates at one update of a phase.

    Args: the phase; the updates of each of its stages; which of them it is in, from 0; the update, counted from the
    phase's first; the updates of an epoch. The schedule spans the phase, or where it restarts each stage by itself.
    """
    steps = sum(lengths)
    if phase.unfreeze and phase.unfreeze.restart:
        step, steps = step - sum(lengths[:stage]), lengths[stage]
    if phase.schedule == "slanted_triangular":
        return slanted_triangular(step, steps, math.floor(CUT_FRAC * steps))
    rising = phase.warmup * (per_epoch if phase.warmup_of == "epoch" else steps)
    return SCHEDULES[phase.schedule](step, steps, min(round(rising), steps - 1))


def plateau_factor(scores: list[float | None]) -> float:
    """Return the share of the peak rate after rounds with these validation scores: halved for each that is no better.

    As torch's ReduceLROnPlateau with mode max, factor 0.5 and patience 0, AllenNLP's for ESIM. An undefined score is no
    better than any.
    """
    best, factor = -math.inf, 1.0
    for score in scores:
        if score is not None and score > (best * (1 + BETTER) if best > -math.inf else best):
            best = score
        else:
            factor /= 2
    return factor


def _fallen(step: int, steps: int, rise: int) -> float:
    """Return the completed share of the decay: 0 at the update after the rise, 1 after the last."""
    return min(1.0, (step - rise) / (steps - rise))
