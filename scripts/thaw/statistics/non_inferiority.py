"""Which of several ways is the cheapest that is not worse than the best, and how sure that is.

Non-inferiority: a way is not worse if the whole interval of its difference to the best is above minus the margin.
D draws. Scores are in points (x 100).
"""

from dataclasses import dataclass

import numpy as np

from thaw.statistics.bootstrap import Interval, interval
from thaw.statistics.significance import FEWEST_SEEDS, seeds_needed

NOT_WORSE, WORSE, UNDECIDED = "not worse", "worse", "undecided"


@dataclass(frozen=True)
class Candidate:
    """A way to adapt an encoder: what it is, its mean score on validation, scores by seed, their draws [D], its costs.

    costs: by name, numbers where less is better; every candidate has the same.
    """

    row: object
    validation: float
    scores: list[float]
    draws: np.ndarray
    costs: dict[str, float]

    @property
    def score(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Judged:
    """A candidate compared with the best.

    The difference with its interval, the answer, how many more seeds an undecided one lacks (None where no number would
    do), and whether no other one beats it in the score and in all costs.
    """

    candidate: Candidate
    difference: Interval
    answer: str
    more: int | None
    on_front: bool


def judged(candidates: list[Candidate], margin: float) -> list[Judged]:
    """Compare all candidates with the best, which is chosen on validation and whose difference to itself is 0.

    Args: candidates with the same seeds; margin in points. With equal scores on validation the first is the best.
    """
    best = max(candidates, key=lambda candidate: candidate.validation)
    front = pareto([{"score": -one.score, **one.costs} for one in candidates])
    results = []
    for candidate, on_front in zip(candidates, front, strict=True):
        differences = np.subtract(candidate.scores, best.scores)
        difference = interval(float(differences.mean()), candidate.draws - best.draws)
        answer, more = UNDECIDED, None
        if candidate is best or difference.low > -margin:
            answer = NOT_WORSE
        elif difference.high < -margin:
            answer = WORSE
        elif seeds := seeds_needed(differences, -margin) if len(differences) > 1 else FEWEST_SEEDS:
            more = max(seeds - len(differences), 1)
        results.append(Judged(candidate, difference, answer, more, on_front))
    return results


def cheapest(candidates: list[Judged], cost: str) -> Judged:
    """Return the cheapest that is not worse than the best; ties go to the higher score."""
    kept = [one for one in candidates if one.answer == NOT_WORSE]
    return min(kept, key=lambda one: (one.candidate.costs[cost], -one.candidate.score))


def pareto(costs: list[dict[str, float]]) -> list[bool]:
    """Return for each whether no other one is as good in everything and better in something; less is better."""
    values = [tuple(cost.values()) for cost in costs]
    return [
        not any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in values)
        for one in values
    ]
