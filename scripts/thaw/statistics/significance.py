"""Whether two strategies differ: paired differences over seeds, their test and their effect size."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thaw.declarations.decision import ALPHA, FEWEST_SEEDS
from thaw.statistics.bootstrap import Interval, Resampled, joint_reach
from thaw.statistics.sign_flips import adjusted

HIGHER, LOWER = "higher", "lower"
NOT_DISTINGUISHABLE, TOO_FEW_SEEDS = "not distinguishable", "too few seeds"


def effect_size(differences) -> float | None:
    """Return d_z, the mean of paired differences in their own standard deviations; None without one, or of two pairs.

    Corrected for few pairs by 1 - 3 / (4 df - 1) (Hedges 1981): without it six seeds inflate it by 1.19, three by 1.75.
    """
    differences = np.asarray(differences, dtype=np.float64)
    df = len(differences) - 1
    spread = differences.std(ddof=1) if df > 1 else 0.0
    return float((1 - 3 / (4 * df - 1)) * differences.mean() / spread) if spread > 0 else None


@dataclass(frozen=True)
class PairedTest:
    """The result of a test. answer: higher, lower, not distinguishable, or too few seeds to say."""

    difference: float
    p: float
    adjusted: float
    effect: float | None
    seeds: int
    answer: str


def margin_kept(p: float, seeds: int, ci: Interval, margin: Mapping[str, float]) -> bool | None:
    """Return whether a mean keeps its margin; None where the test over seeds and the interval do not agree on that.

    Either alone is no answer: the p of many seeds on one draw and one test set says nothing of other rows, and seeds of
    a fit to convergence are copies, whose p is small however little they differ. With fewer than six seeds no answer is
    possible at 0.05. Args: p adjusted for the family of tests; the interval over seeds and test rows, its
    `joint_interval`; the margin, {above: points} or {within: points}.
    """
    if p > ALPHA or seeds < FEWEST_SEEDS:
        return None
    if "above" in margin:
        end, kept = margin["above"], ci.value > margin["above"]
        clear = ci.low > end if kept else ci.high < end
    else:
        end, kept = margin["within"], abs(ci.value) < margin["within"]
        clear = -end < ci.low and ci.high < end if kept else ci.low > end or ci.high < -end
    return kept if clear else None


def joint_interval(ci: Interval, mean: Resampled, reach: float) -> Interval:
    """Return the interval of a test in its family: its 95 % CI, and as many standard errors as the family reaches.

    The intervals of a family hold all its means in 95 % of the draws. Args: see `family_reach`.
    """
    half = reach * mean.spread.error
    return Interval(ci.value, min(ci.low, ci.value - half), max(ci.high, ci.value + half))


def family_reach(means: list[Resampled]) -> float:
    """Return how many standard errors the intervals of a family reach on either side; 0 for one test, which has its CI.

    Means of fewer than six seeds, of which no test has an answer, are outside of the family.
    """
    family = [mean for mean in means if mean.spread.seeds >= FEWEST_SEEDS]
    return joint_reach(family) if len(family) > 1 else 0.0


def compare(contrasts: list[Mapping[int, float]], means: list[Resampled]) -> list[PairedTest]:
    """Return the comparisons of a family, p-values adjusted over it (`sign_flips.adjusted`).

    Args: for each comparison its differences by seed, and their mean with its draws.
    """
    reach, tests = family_reach(means), []
    for by_seed, mean, (p, over_all) in zip(contrasts, means, adjusted(contrasts), strict=True):
        differences, ci = list(by_seed.values()), mean.ci
        answer = TOO_FEW_SEEDS
        if len(differences) >= FEWEST_SEEDS:
            kept = margin_kept(over_all, len(differences), joint_interval(ci, mean, reach), {"above": 0})
            answer = {True: HIGHER, False: LOWER, None: NOT_DISTINGUISHABLE}[kept]
        tests.append(PairedTest(mean.value, p, over_all, effect_size(differences), len(differences), answer))
    return tests
