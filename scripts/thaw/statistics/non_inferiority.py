"""Which of several ways is the cheapest that is not worse than the best, and how sure that is.

Non-inferiority: a way is not worse if the whole interval of its way to the best is above minus the margin. The best is
not known, so the intervals are simultaneous: multiple comparisons with the best (Edwards and Hsu 1983), with quantiles
from resampled seeds and examples. All of it is on validation: test is for what was chosen. K candidates, S seeds, D
draws. Scores are in points (x 100).
"""

from dataclasses import dataclass

import numpy as np

from thaw.declarations.decision import FEWEST_OF_INTERVAL, FEWEST_SEEDS
from thaw.statistics.bootstrap import LEVEL, Interval, Resampled, resampled
from thaw.statistics.sample_size import Needed, needed

NOT_WORSE, WORSE, UNDECIDED = "not worse", "worse", "undecided"
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
    hold for all candidates together; the answer; what an undecided one lacks (None where nothing would do); and whether
    no other one is ahead in the score and in all costs.
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
    widths = [_quantile([made for made in row if made.spread.error > 0]) for row in contrasts]
    bounds = [
        [(made.value - width * made.spread.error, made.value + width * made.spread.error) for made in row]
        for row, width in zip(contrasts, widths, strict=True)
    ]
    possible = [index for index, row in enumerate(bounds) if all(low <= 0 for low, _ in row)]
    best = highest(candidates)
    results = []
    for index, (candidate, on_front) in enumerate(zip(candidates, front, strict=True)):
        others = [other for other in possible if other != index]
        low = min((bounds[other][index][0] for other in others), default=0.0)
        high = 0.0 if index in possible else max(bounds[other][index][1] for other in others)
        difference = Interval(candidate.validation - best.validation, min(low, 0.0), min(high, 0.0))
        answer, lacks = _answer(difference, len(candidate.scores), margin), None
        if answer == UNDECIDED:
            nearest = min(others, key=lambda other: bounds[other][index][0], default=index)
            lacks = _lacks(contrasts[nearest][index], margin)
        results.append(Judged(candidate, difference, answer, lacks, on_front))
    return results


def highest(candidates: list[Candidate]) -> Candidate:
    """Return the candidate with the highest mean on validation, of equals the first."""
    return max(candidates, key=lambda candidate: candidate.validation)


def cheapest(candidates: list[Judged], cost: str) -> Judged:
    """Return the cheapest that is not worse than the best; the highest on validation where that is said of none.

    Ties go to the higher score.
    """
    kept = [one for one in candidates if one.answer == NOT_WORSE]
    if not kept:
        return max(candidates, key=lambda one: one.candidate.validation)
    return min(kept, key=lambda one: (one.candidate.costs[cost], -one.candidate.validation))


def not_exceeded(baselines: list[Candidate], candidates: list[Candidate]) -> list[Candidate]:
    """Return the baselines that no candidate is above on validation, the highest first; a tie is not above."""
    best = highest(candidates).validation
    return sorted((one for one in baselines if one.validation >= best - ROUNDING), key=lambda one: -one.validation)


def any_above(candidates: list[Candidate], reference: Candidate) -> bool:
    """Return whether some candidate is above a reference for sure, by bounds that hold for all of them together."""
    contrasts = [one.less(reference) for one in candidates]
    width = _quantile([made for made in contrasts if made.spread.error > 0])
    return any(made.value - width * made.spread.error > 0 for made in contrasts)


def pareto(costs: list[dict[str, float]]) -> list[bool]:
    """Return for each whether no other one is as good in everything and better in something; less is better."""
    values = [tuple(cost.values()) for cost in costs]
    return [
        not any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in values)
        for one in values
    ]


def _quantile(contrasts: list[Resampled]) -> float:
    """Return how many standard errors hold all of some means in 95 % of the draws; 0 without any."""
    if not contrasts:
        return 0.0
    away = [np.abs(made.draws - made.value) / made.spread.error for made in contrasts]
    return float(np.nanquantile(np.max(away, axis=0), LEVEL))


def _answer(difference: Interval, seeds: int, margin: float) -> str:
    if seeds < FEWEST_OF_INTERVAL:
        return UNDECIDED
    return NOT_WORSE if difference.low > -margin else WORSE if difference.high < -margin else UNDECIDED


def _lacks(contrast: Resampled, margin: float) -> Needed | None:
    """Return what would separate a difference from the margin, as if it were the only one."""
    if contrast.spread.seeds < FEWEST_OF_INTERVAL:
        return Needed(FEWEST_SEEDS - contrast.spread.seeds, None)
    return needed(abs(contrast.value + margin), contrast.spread)
