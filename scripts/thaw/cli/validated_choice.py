"""What validation says of some runs of a task: which is best, by how much, and whether a baseline is as good.

Scores are in points (x 100); an undefined one counts as 0.
"""

from dataclasses import dataclass
from math import isnan

from thaw.outputs import wording
from thaw.outputs.frame.candidates import MAJORITY
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.statistics.bootstrap import interval


@dataclass(frozen=True)
class Validated:
    """A run or a baseline: its name, its folder below results, and its score on validation."""

    name: str
    folder: str
    score: float


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
        ends = "" if self.low is None else f" {wording.interval(self.low, self.high)}"
        return f"difference {wording.number(self.value)}{ends}"

    @property
    def facts(self) -> dict:
        """The difference for advised.json."""
        ends = {"low": self.low, "high": self.high, "shown_to_be_lower": self.shown}
        return {"name": self.name, "validation": self.score, "difference": self.value, **ends}


def printed_baseline(name: str) -> str:
    """Return what a baseline is called within a sentence."""
    label = wording.BASELINE_LABELS[name].partition(" (")[0]
    return f"the {label[0].lower()}{label[1:]}"


class ValidatedChoice:
    """The best of some runs of a task on validation, and what it is compared with."""

    def __init__(
        self, runs: list[Validated], baselines: list[Validated], metric: str, split: str, files: PredictionFiles
    ):
        """Args: the runs, of equals the one to take first; baselines; the main metric; the validation split."""
        self.best = max(runs, key=lambda run: run.score)
        others = [run for run in runs if run is not self.best]
        self.metric, self.split, self.files = metric, split, files
        self.next = self._less(max(others, key=lambda run: run.score)) if others else None
        self.baseline = max(baselines, key=lambda one: one.score, default=None)

    def _less(self, other: Validated) -> Difference:
        """Return the best less another result: a bootstrap of validation rows, grouped ones together, in pairs."""
        from pandas import DataFrame

        sides = [(100.0, self.best), (-100.0, other)]
        terms = [(times, DataFrame({"folder": [one.folder], "value": [one.score / 100]})) for times, one in sides]
        made = self.files.resampled(terms, self.metric, self.split)
        ci = interval(made.value, made.draws)
        low, high = (None if isnan(end) else end for end in (ci.low, ci.high))
        return Difference(other.name, other.score, made.value, low, high)

    @property
    def refused(self) -> str:
        """Why no run is to be taken; empty where one is."""
        first = self.baseline
        if first is None or self.best.score > first.score:
            return ""
        so = "label more rows" if first.name == MAJORITY else "take that, or label more rows"
        named = printed_baseline(first.name)
        return f"no strategy is above {named} on validation ({wording.number(first.score)}): {so}"

    def above_baseline(self) -> Difference | None:
        """Return by how much the best run is above the best baseline; None without any."""
        return self._less(self.baseline) if self.baseline else None
