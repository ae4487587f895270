"""Whether two sides are equally good: the same metric, by a test of equivalence over seeds."""

import math
import statistics
from dataclasses import dataclass

from scipy.stats import t

MARGIN = 0.01  # a point of accuracy


@dataclass(frozen=True)
class Equivalence:
    """Mean difference of two sides and its 90 % interval."""

    difference: float
    half: float

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.difference - self.half

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.difference + self.half

    def within(self, margin: float) -> bool:
        """Tell whether the sides are equivalent, by two one-sided tests at 5 % (TOST)."""
        return abs(self.difference) + self.half <= margin

    def beyond(self, margin: float) -> bool:
        """Tell whether the whole interval is beyond the margin."""
        return abs(self.difference) - self.half > margin


def equivalence(pairs: list[tuple[list[float], list[float]]]) -> Equivalence:
    """Return the difference of two sides with the interval of Welch's t; of several tasks, that of their mean.

    Args: for each task the scores of either side by seed, two or more.
    """
    mean = statistics.mean(statistics.mean(ours) - statistics.mean(theirs) for ours, theirs in pairs)
    parts = [(statistics.variance(scores) / len(scores), len(scores) - 1) for pair in pairs for scores in pair]
    error = math.sqrt(sum(part for part, _ in parts)) / len(pairs)
    if not error:
        return Equivalence(mean, 0.0)
    degrees = sum(part for part, _ in parts) ** 2 / sum(part**2 / free for part, free in parts)
    return Equivalence(mean, float(t.ppf(0.95, degrees)) * error)


def of_runs(rows: list[dict], names: tuple, role: str) -> dict[str, list[float]]:
    """Return the scores in rows of thaw.results, the lowest seed's first, by some of their columns, joined by "/"."""
    found: dict[str, list[float]] = {}
    for row in sorted(rows, key=_seed):
        if row["role"] == role:
            found.setdefault("/".join(str(row[name]) for name in names), []).append(row["value"])
    return found


def of_cells(cells: list[dict], names: tuple, split: str) -> dict[str, list[float]]:
    """Return the scores in the cells of a peer, the lowest seed's first, by some of their keys, joined by "/"."""
    found: dict[str, list[float]] = {}
    for cell in sorted(cells, key=_seed):
        if split in cell["scores"]:
            found.setdefault("/".join(str(cell[name]) for name in names), []).append(cell["scores"][split])
    return found


def _seed(one: dict) -> int:
    """Return the seed of a row or cell; cells that are fitted have none."""
    return one.get("seed", 0)


def compared(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> dict[str, dict]:
    """Return the verdict on each name that both sides have scores of."""
    return {name: verdict(scores, theirs[name]) for name, scores in ours.items() if name in theirs}


def over_rows(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> dict:
    """Return the verdict on the means over all names, seed by seed."""
    sides = [[statistics.mean(scores) for scores in zip(*side.values(), strict=True)] for side in (ours, theirs)]
    return verdict(*sides)


def verdict(ours: list[float], theirs: list[float]) -> dict:
    """Return both sides' mean and deviation, their difference, its 90 % interval, and whether they are equivalent.

    `equivalent` is None where a side has fewer than two seeds: then there is no interval. `different`: whether the
    interval lies beyond the margin.
    """
    found = {"ours": _summary(ours), "peer": _summary(theirs), "equivalent": None}
    if len(ours) > 1 and len(theirs) > 1:
        apart = equivalence([(ours, theirs)])
        found |= {"difference": apart.difference, "interval": apart.half}
        found |= {"equivalent": apart.within(MARGIN), "different": apart.beyond(MARGIN)}
    return found


def _summary(scores: list[float]) -> dict:
    """Return the mean, the deviation and the number of some scores."""
    deviation = statistics.stdev(scores) if len(scores) > 1 else None
    return {"mean": statistics.mean(scores), "deviation": deviation, "seeds": len(scores)}
