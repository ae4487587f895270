"""What validation says of a task's runs: which one is best, by how much, and whether it is above the baselines.

Scores are in points (x 100).
"""

from dataclasses import dataclass
from math import isnan

from thaw.outputs import wording
from thaw.outputs.frame.candidates import MAJORITY, none_above
from thaw.statistics.non_inferiority import Candidate, highest, not_exceeded


@dataclass(frozen=True)
class Difference:
    """By how much the best run is above another result on validation, with the ends of its 95 % interval.

    The ends are None where no resampled validation set has both scores.
    """

    name: str
    score: float
    value: float
    low: float | None
    high: float | None

    @property
    def shown(self) -> bool:
        """Whether the best run is shown to be better."""
        return self.low is not None and self.low > 0

    @property
    def text(self) -> str:
        """The difference with its interval in print."""
        return f"difference {wording.with_interval(self.value, self.low, self.high)}"

    @property
    def facts(self) -> dict:
        """The difference for advised.json."""
        ends = {"low": self.low, "high": self.high, "shown_to_be_lower": self.shown}
        return {"name": self.name, "validation": self.score, "difference": self.value, **ends}


@dataclass(frozen=True)
class ValidatedChoice:
    """The best of a task's runs on validation, and what it is compared with.

    Attributes: best, its name; score; next, the best less the second best, None with one run; baseline, the best less
    the highest baseline, None without any; refused, why no run is to be taken, empty where one is.
    """

    best: str
    score: float
    next: Difference | None
    baseline: Difference | None
    refused: str


def validated_choice(runs: list[Candidate], baselines: list[Candidate]) -> ValidatedChoice:
    """Return the best of some runs on validation, of equals the first.

    Args: the runs, with one seed; baselines that train no encoder.
    """
    best = highest(runs)
    others = [one for one in runs if one is not best]
    above = _less_highest(best, baselines)
    return ValidatedChoice(best.name, best.validation, _less_highest(best, others), above, _refused(runs, baselines))


def _less_highest(best: Candidate, others: list[Candidate]) -> Difference | None:
    """Return the best less the highest of some others: a bootstrap of validation rows, in pairs; None without any."""
    if not others:
        return None
    other = highest(others)
    made = best.less(other)
    low, high = (None if isnan(end) else end for end in (made.ci.low, made.ci.high))
    return Difference(other.name, other.validation, made.value, low, high)


def _refused(runs: list[Candidate], baselines: list[Candidate]) -> str:
    not_below = not_exceeded(baselines, runs)
    if not not_below:
        return ""
    first = not_below[0]
    so = "label more rows" if first.name == MAJORITY else "take that, or label more rows"
    return f"on validation {none_above(first)}: {so}"
