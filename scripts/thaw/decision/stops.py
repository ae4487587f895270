"""Where `thaw advise` stops: what another run may gain on average, and what it has to gain."""

from statistics import NormalDist

from thaw.decision.arms import COLLAPSED, UNDERTRAINED
from thaw.decision.decide import SPREAD, Decision

SPREAD_OF_TRAINED = 2.0  # points, as SPREAD, of strategies that train layers
LEAST_GAIN = 0.1  # points: a run that may gain less is not made, however cheap it is


def has_to_gain(price_weight: float, price: float) -> float:
    """Return the points that a run has to gain. Args: points for a unit of price, as `decide` has them; its price."""
    return max(LEAST_GAIN, price_weight * price)


def gain_of_unseen(
    decision: Decision, expected: float, pairs: str, spread: float = SPREAD, trained: float = SPREAD_OF_TRAINED
) -> float:
    """Return the points that a run of a strategy which was not tried may gain on average over the best of today.

    The strategies that were tried tell the level, those that train layers and read pairs as it does alone once there
    are any. About it the strategy has a deviation, of which the run shows a part: its score is as noisy as theirs. The
    gain is the mean of max(0, what it then is expected to be - best). Where none of them tells the level it is
    infinite; where the best has the highest score it is 0. Args: the decision between those; `Arm.expected` and
    `Arm.pairs` of the strategy; deviations of all strategies, and of those that train layers.
    """
    sound = [arm for arm in decision.arms if COLLAPSED not in arm.flags]
    tried = [arm for arm in sound if arm.encoder]
    tried = [arm for arm in tried if UNDERTRAINED not in arm.flags] or tried
    if not tried:
        return float("inf")
    if alike := [arm for arm in tried if arm.expected and arm.pairs == pairs]:  # it is 0 of what trains no layer
        tried, spread = alike, trained
    best = min(sound, key=lambda arm: arm.loss)
    if best.estimate > 100 - LEAST_GAIN:  # no metric has more
        return 0.0
    level = sum(best.loss - arm.loss - arm.expected for arm in tried) / len(tried)  # below the best of today
    variance = spread**2 * (1 + 1 / len(tried))
    mean, deviation = level + expected, variance / (variance + decision.noise) ** 0.5
    return deviation**2 * NormalDist(mean, deviation).pdf(0) + mean * NormalDist().cdf(mean / deviation)
