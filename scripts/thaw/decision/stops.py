"""Where `thaw advise` stops: what another run may gain on average, and what it has to gain."""

from statistics import NormalDist

from thaw.decision.arms import COLLAPSED
from thaw.decision.decide import SPREAD, Decision

LEAST_GAIN = 0.1  # points: a run that may gain less is not made, however cheap it is


def has_to_gain(price_weight: float, price: float) -> float:
    """Return the points that a run has to gain. Args: points for a unit of price, as `decide` has them; its price."""
    return max(LEAST_GAIN, price_weight * price)


def gain_of_unseen(decision: Decision, expected: float, spread: float = SPREAD) -> float:
    """Return the points that an arm which was not tried may gain on average over the best of today.

    It is the mean of max(0, arm - best) under the prior: arms of a task differ by `spread` from what is expected.
    The arms that were tried tell the level. Where none of them tells it the gain is infinite. Args: the decision
    between those; points that are expected of the arm, as `Arm.expected`.
    """
    sound = [arm for arm in decision.arms if COLLAPSED not in arm.flags]
    tried = [arm for arm in sound if arm.encoder]
    if not tried:
        return float("inf")
    least = min(arm.loss for arm in sound)
    level = sum(least - arm.loss - arm.expected for arm in tried) / len(tried)  # below the best of today
    mean, deviation = level + expected, spread * (1 + 1 / len(tried)) ** 0.5
    normal = NormalDist()
    return deviation**2 * NormalDist(mean, deviation).pdf(0) + mean * normal.cdf(mean / deviation)
