"""Which of several ways is the cheapest that is not worse than the best, and how sure that is.

Non-inferiority: a way is not worse if the whole interval of its way to the best is above minus the margin. The best is
not known, so the intervals are simultaneous: multiple comparisons with the best (Edwards and Hsu 1983), with quantiles
from resampled seeds and examples. All of it is on validation: test is for what was chosen. K candidates, S seeds, D
draws. Scores are in points (x 100).
"""

from dataclasses import dataclass

import numpy as np

from thaw.declarations.decision import FEWEST_OF_INTERVAL
from thaw.statistics.bootstrap import LEVEL, Interval, Resampled, joint_reach, resampled, unseen_share
from thaw.statistics.sample_size import MOST_SEEDS, Needed

NOT_WORSE, WORSE, UNDECIDED = "not worse", "worse", "undecided"
MOST_DOUBLINGS = 10  # of the rows of validation that are tried, none among them: 512 times as many
ROUNDING = 1e-9  # points: the mean of equal scores may differ from them in its last digits


@dataclass(frozen=True)
class Candidate:
    """A way to adapt an encoder, or a baseline: its name, its scores on validation, and its costs.

    scores [S] by seed; by_row [S, D], the same on resampled examples; rows, how many examples; costs by name, numbers
    where less is better; the seeds. All candidates have the same seeds, examples and names of costs.
    """

    name: str
    scores: np.ndarray
    by_row: np.ndarray
    rows: int
    costs: dict[str, float]
    seeds: tuple[int, ...]

    @property
    def validation(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.scores))

    def less(self, other: "Candidate") -> Resampled:
        """Return this one's mean less another's."""
        return resampled(self.scores - other.scores, self.by_row - other.by_row, self.rows, paired=True)


@dataclass(frozen=True)
class Judged:
    """A candidate compared with the best.

    Its difference to the highest on validation, with bounds of its difference to the best, whichever that is, which
    hold for all candidates together; the answer; what an undecided one lacks (None where nothing that is tried
    would do); and whether no other one is ahead in the score and in all costs.
    """

    candidate: Candidate
    difference: Interval
    answer: str
    needed: Needed | None
    on_front: bool


def judged(candidates: list[Candidate], margin: float) -> list[Judged]:
    """Compare all candidates with the best. Args: margin in points.

    With fewer than three seeds, whose intervals say nothing of seeds, nothing is decided.
    """
    front = pareto([{"score": -one.validation, **one.costs} for one in candidates])
    contrasts = [[one.less(other) for one in candidates] for other in candidates]
    widths = np.array([joint_reach(row) for row in contrasts])
    values = np.array([[made.value for made in row] for row in contrasts])
    errors = np.array([[made.spread.error for made in row] for row in contrasts])
    lows, highs = _to_best(values, errors, widths, candidates[0].rows)
    lacking = _lacking(contrasts, values, widths, margin)
    best, results = highest(candidates), []
    for candidate, low, high, lacks, on_front in zip(candidates, lows, highs, lacking, front, strict=True):
        difference = Interval(candidate.validation - best.validation, float(low), float(high))
        answer = _answer(difference, len(candidate.scores), margin)
        results.append(Judged(candidate, difference, answer, lacks if answer == UNDECIDED else None, on_front))
    return results


def _to_best(values: np.ndarray, errors: np.ndarray, widths: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds [..., K] of each candidate's difference to the best, whichever that is.

    Args: values [K, K], of each candidate (last) less each other one; their standard errors [..., K, K]; how many of
    these the bounds are away, by the other one [K]; rows of validation. The best may be any that no one is above for
    sure. No two are said to be nearer than rows that were not seen allow, taken as independent, in points of accuracy.
    """
    reach = np.maximum(widths[:, None] * errors, 100 * unseen_share(rows, LEVEL))
    lows, highs = values - reach, values + reach
    possible = (lows <= 0).all(-1)
    others = possible[..., None] & ~np.eye(len(values), dtype=bool)
    low = np.where(others, lows, np.inf).min(-2)
    high = np.where(possible, 0.0, np.where(others, highs, -np.inf).max(-2))
    return np.minimum(low, 0.0), np.where(np.isfinite(high), np.minimum(high, 0.0), 0.0)


def _lacking(contrasts: list, values: np.ndarray, widths: np.ndarray, margin: float) -> list[Needed | None]:
    """Return for each candidate what would decide it by the same bounds, if means and standard deviations stay.

    The bounds stay as many standard errors away, which is more than more seeds need. Seeds alone where MOST_SEEDS or
    fewer do, else twice, four times ... as many rows, with no more seeds where rows alone do; None where none of them
    does. The bounds are intervals: three seeds are enough for them, and of fewer no more is known than that. Strategies
    that are no longer possible as the best, or scores without a deviation over seeds, ask for no seeds.
    """
    spreads = [[made.spread for made in row] for row in contrasts]
    seeds, rows = spreads[0][0].seeds, spreads[0][0].rows
    if seeds < FEWEST_OF_INTERVAL:
        return [Needed(FEWEST_OF_INTERVAL - seeds, None)] * len(values)
    by_seed, by_rows = (
        np.array([[getattr(s, name) for s in row] for row in spreads]) for name in ("by_seed", "by_rows")
    )
    lacking = [None] * len(values)
    for times in 2 ** np.arange(MOST_DOUBLINGS):
        numbers = np.arange(seeds if times > 1 else seeds + 1, MOST_SEEDS + 1)
        errors = np.sqrt(by_rows / times + by_seed / numbers[:, None, None])
        low, high = _to_best(values, errors, widths, rows * times)
        decided = (low > -margin) | (high < -margin)
        for index in np.flatnonzero(decided.any(0)):
            more = int(numbers[decided[:, index].argmax()]) - seeds
            lacking[index] = lacking[index] or Needed(more, int(rows * times) if times > 1 else None)
    return lacking


def highest(candidates: list[Candidate]) -> Candidate:
    """Return the candidate with the highest mean on validation, of equals the first."""
    return max(candidates, key=lambda candidate: candidate.validation)


def cheapest(candidates: list[Judged], cost: str) -> Judged:
    """Return the cheapest that is not worse than the best; of the highest on validation where that is said of none.

    Ties go to the higher score.
    """
    kept = [one for one in candidates if one.answer == NOT_WORSE]
    if not kept:
        best = max(one.candidate.validation for one in candidates)
        kept = [one for one in candidates if one.candidate.validation >= best - ROUNDING]
    return min(kept, key=lambda one: (one.candidate.costs[cost], -one.candidate.validation))


def not_exceeded(baselines: list[Candidate], candidates: list[Candidate]) -> list[Candidate]:
    """Return the baselines that no candidate is above on validation, the highest first; a tie is not above."""
    best = highest(candidates).validation
    return sorted((one for one in baselines if one.validation >= best - ROUNDING), key=lambda one: -one.validation)


def any_above(candidates: list[Candidate], reference: Candidate) -> bool:
    """Return whether some candidate is above a reference for sure, by bounds that hold for all of them together."""
    contrasts = [one.less(reference) for one in candidates]
    width = joint_reach(contrasts)
    return any(made.value - width * made.spread.error > 0 for made in contrasts)


def pareto(costs: list[dict[str, float]]) -> list[bool]:
    """Return for each whether no other one is as good in everything and better in something; less is better."""
    values = [tuple(cost.values()) for cost in costs]
    return [
        not any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in values)
        for one in values
    ]


def _answer(difference: Interval, seeds: int, margin: float) -> str:
    if seeds < FEWEST_OF_INTERVAL:
        return UNDECIDED
    return NOT_WORSE if difference.low > -margin else WORSE if difference.high < -margin else UNDECIDED
