"""Which arm to take: the one with the least expected loss; and what each cheaper arm would lose.

K arms, S seeds, D draws. All of it is on validation: test is for what was taken. Scores are in points.

Draws. Validation rows are drawn with replacement, the same for all arms. The mean over seeds moves by a multivariate t
with the covariance of the seeds' scores, shrunk towards SEED_DEVIATION, which counts for PRIOR_SEEDS seeds. So one seed
is no special case. Intervals are read off these draws.

Prior. Strategies of one task differ by SPREAD from what is expected of them, so that noise of few rows does not look
like a large loss. Those that disagree on more rows differ more: their covariance is that of the noise, at another
scale. So all differences shrink by one factor, as with James and Stein (1961). They shrink to the level of those arms
that are not undertrained, by the noise of these. The others may lie far below and say nothing about either. Expected
losses and chances are read off the draws with it. scripts/replay.py compares them with what came on the grid: from 30
to 1,000 rows, among the standard set or all strategies, losses have a slope of 0.83 to 1.12.
"""

from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import numpy as np

from thaw.decision.arms import COLLAPSED, UNDERTRAINED, Arm, Placed, placed
from thaw.decision.contrasts import TIE, Difference, simultaneous

SEED_DEVIATION = 0.6  # points, by another seed, of what is not fitted to convergence; the grid: 0.4 to 0.6 on TREC-6
PRIOR_SEEDS = 4  # seeds that this deviation counts for
SPREAD = 5.1  # points, of strategies of one task about what is expected: the geometric mean over datasets of the grid


@dataclass(frozen=True)
class Judged:
    """What is said of an arm.

    estimate: its own score, low and high: its 95 % CI, see `Arm`. difference: it less the arm that is taken, on one
    scale. chance: to be the best. loss: points that it is expected to lose to the best. listed: whether it is on the
    price list, cheaper than what is taken and on the front of price and loss. All else is the arm's.
    """

    name: str
    estimate: float
    low: float
    high: float
    difference: Difference
    chance: float
    loss: float
    expected: float
    pairs: str
    price: float
    parameters: float
    listed: bool
    encoder: bool
    converged: bool
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """The answer about one task: the name of the arm to take, and all arms from cheap to dear.

    resolution: the smallest difference to the dearest other arm that these rows and seeds can show; 0 with one arm.
    noise: the mean variance of scores, by rows and seeds. rows: those behind it; folded: rows on which cross-validated
    arms are scored, and others are placed, 0 without any; seeds: of what is taken; within and price_weight as `decide`
    has them.
    """

    taken: str
    arms: tuple[Judged, ...]
    resolution: float
    noise: float
    rows: int
    folded: int
    seeds: int
    within: float
    price_weight: float

    @property
    def answer(self) -> Judged:
        return next(arm for arm in self.arms if arm.name == self.taken)

    @property
    def price_list(self) -> list[Judged]:
        """The cheaper arms on the front of price and expected loss, from cheap to dear."""
        return [arm for arm in self.arms if arm.listed]

    @property
    def promising(self) -> Judged | None:
        """The more expensive arm that may gain most over what is taken; None where none may gain."""
        sound = [arm for arm in self.arms if COLLAPSED not in arm.flags]
        above = [arm for arm in sound if arm.price > self.answer.price and arm.difference.high > 0]
        return max(above, key=lambda arm: arm.difference.high, default=None)


@dataclass(frozen=True)
class Draws:
    """Arms relative to the highest of them: values [K] and draws [D, K].

    sound [K]: which arms may be taken; alike [K]: which arms the prior is about; level [K]: those of them that tell the
    level of all; expected [K]: their points before validation was seen; spread: as SPREAD.
    """

    values: np.ndarray
    draws: np.ndarray
    sound: np.ndarray
    alike: np.ndarray
    level: np.ndarray
    expected: np.ndarray
    spread: float

    @cached_property
    def likely(self) -> np.ndarray:
        """The draws [D, K] given that sound arms with an encoder differ by `spread` from what was expected of them.

        The posterior of a normal prior: the variance that is true has this share of the variance that is seen. The
        level of all arms together has no prior.
        """
        alike, of, likely = self.alike, self.level, self.draws.copy()
        if alike.sum() > 1:
            level = self.draws[:, of].mean(1, keepdims=True)
            expected = self.expected[alike] - self.expected[of].mean()
            values = self.values[alike] - self.values[of].mean()
            seen = self.draws[:, alike] - level
            kept = self.spread**2 / (self.spread**2 + self.noise)
            likely[:, alike] = level + expected + (values - expected) * kept + (seen - values) * np.sqrt(kept)
        return likely

    @property
    def noise(self) -> float:
        """The mean variance of the draws about their level, of arms that tell it; 0 of one arm, and of none."""
        of = self.level if self.level.sum() > 1 else self.alike
        if (count := of.sum()) < 2:
            return 0.0
        seen = self.draws[:, of]
        return float((seen - seen.mean(1, keepdims=True)).var(0, ddof=1).sum() / (count - 1))

    @property
    def losses(self) -> np.ndarray:
        """By arm the mean over draws of how far it is from the best arm of the draw; 0 of one that is above it."""
        return (self._best - self.likely).mean(0).clip(min=0)

    @property
    def chances(self) -> np.ndarray:
        """By arm the share of draws in which it is the best; equals share a draw."""
        best = (self.likely >= self._best - TIE) & self.sound
        return (best / best.sum(1, keepdims=True)).mean(0)

    @property
    def _best(self) -> np.ndarray:
        return self.likely[:, self.sound].max(1, keepdims=True)


def decide(arms: list[Arm], within: float = 0.0, price_weight: float = 0.0, spread: float = SPREAD) -> Decision:
    """Return what to take: the arm with the least expected loss plus `price_weight` times its price.

    With `within` it is the cheapest arm whose expected loss is at most so many points, or the least there is. A
    collapsed arm is taken only where all are. Args: arms with the same validation rows; points; points for a unit of
    price; the prior's deviation. Raises UserError without arms, or where arms cannot be compared.
    """
    of, price = placed(arms), np.array([arm.price for arm in arms])
    drawn = draws_of(arms, of, spread)
    loss, chance, sound = drawn.losses, drawn.chances, drawn.sound
    cost = np.where(sound, loss if within else loss + price_weight * price, np.inf)
    near = np.flatnonzero(cost <= max(within, cost.min()) + TIE)
    taken = min(near.tolist(), key=lambda place: (price[place], loss[place]))
    contrasts = _to(taken, arms, drawn)
    listed = _front(price, loss, sound) & (price < price[taken])
    judged = [
        Judged(
            name=arm.name,
            estimate=arm.score,
            low=arm.interval.low,
            high=arm.interval.high,
            difference=contrasts[place],
            chance=float(chance[place]),
            loss=float(loss[place]),
            expected=arm.expected,
            pairs=arm.pairs,
            price=arm.price,
            parameters=arm.parameters,
            listed=bool(listed[place]),
            encoder=arm.encoder,
            converged=arm.converged,
            flags=arm.flags,
        )
        for place, arm in enumerate(arms)
    ]
    others = [place for place in range(len(arms)) if place != taken]
    dearest = max(others, key=lambda place: price[place], default=taken)
    resolution = (contrasts[dearest].high - contrasts[dearest].low) / 2
    return Decision(
        taken=arms[taken].name,
        arms=tuple(sorted(judged, key=lambda one: (one.price, one.loss))),
        resolution=resolution,
        noise=drawn.noise,
        rows=_rows_of(arms[taken], arms[dearest]),
        folded=max((arm.folds.rows for arm in arms if arm.folds), default=0),
        seeds=arms[taken].seeds or len(arms[taken].scores),
        within=within,
        price_weight=price_weight,
    )


def draws_of(arms: list[Arm], of: Placed, spread: float) -> Draws:
    """Return the joint draws of arms. Args: the arms; the same as `placed`; the prior's deviation."""
    first = int(of.scores.mean(1).argmax())
    scores, by_row = of.scores - of.scores[first], of.by_row - of.by_row[first]
    values, away = scores.mean(1), by_row - by_row.mean(2, keepdims=True)  # centred: equal scores have equal losses
    seeds = np.array([arm.seeds or len(arm.scores) for arm in arms])
    moved = _seeds_moved([arm.name for arm in arms], scores, away, of.converged, seeds)
    sound = np.array([COLLAPSED not in arm.flags for arm in arms])
    sound |= ~sound.any()
    alike = sound & np.array([arm.encoder for arm in arms])
    trained = alike & np.array([UNDERTRAINED not in arm.flags for arm in arms])
    expected = np.array([arm.expected for arm in arms])
    draws = (values[:, None] + away.mean(1) + moved - moved[first]).T
    return Draws(values, draws, sound, alike, trained if trained.any() else alike, expected, spread)


def _seeds_moved(
    names: list[str], scores: np.ndarray, away: np.ndarray, converged: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """Return by how much other seeds may move the mean of each arm, [K, D]; an arm's numbers follow from its name.

    What differs by seed and row at once is in the draws of rows, and is taken out of what differs by seed. Args: scores
    [K, S]; by how much drawn rows move them, [K, S, D]; converged [K]; the seeds [K] that each mean is of.
    """
    _, seeds, draws = away.shape
    free = PRIOR_SEEDS + seeds - 1
    covariance = PRIOR_SEEDS * np.diag(np.where(converged, 0.0, SEED_DEVIATION**2))
    if seeds > 1:
        by_seed = np.mean([np.cov(away[:, seed]) for seed in range(seeds)], axis=0)
        both = (by_seed - np.cov(away.mean(1))) * seeds / (seeds - 1)
        root = _root(np.cov(scores) - both)
        covariance = covariance + (seeds - 1) * root @ root
    half = draws // 2  # and their negatives: the mean does not move
    normal = np.stack([np.random.default_rng(crc32(name.encode())).standard_normal(half) for name in names])
    wide = np.sqrt(np.random.default_rng(free).chisquare(free, half) / free)
    moved = _root(covariance / free / np.sqrt(np.outer(own, own))) @ normal / wide
    return np.concatenate([moved, -moved, np.zeros((len(names), draws - 2 * half))], axis=1)


def _root(matrix: np.ndarray) -> np.ndarray:
    """Return the symmetric root of what is positive of a symmetric matrix, [K, K]."""
    values, vectors = np.linalg.eigh(np.atleast_2d(matrix))
    return vectors * np.sqrt(values.clip(min=0)) @ vectors.T


def _to(taken: int, arms: list[Arm], drawn: Draws) -> list[Difference]:
    """Return each arm less the one that is taken, which is 0 from itself."""
    others = [place for place in range(len(arms)) if place != taken]
    against = drawn.draws - drawn.draws[:, [taken]]
    rows = [_rows_of(arms[place], arms[taken]) for place in others]
    values = drawn.values[others] - drawn.values[taken]
    made = simultaneous(values, against[:, others], against[:, others].std(0), np.array(rows))
    made.insert(taken, Difference(0.0, 0.0, 0.0))
    return made


def _rows_of(*arms: Arm) -> int:
    """Return the rows that all of some arms are scored on."""
    return min(arm.rows if arm.folds is None else arm.folds.rows for arm in arms)


def _front(price: np.ndarray, loss: np.ndarray, sound: np.ndarray) -> np.ndarray:
    """Return which sound arms no other one beats: as good in price and expected loss, and better in one of them."""
    as_good = (price[:, None] <= price) & (loss[:, None] <= loss + TIE) & sound[:, None]
    better = (price[:, None] < price) | (loss[:, None] < loss - TIE)
    return sound & ~(as_good & better).any(0)
