"""Whether two sides are equally good: the same metric, by a test of equivalence over seeds."""

import math
import statistics

from scipy.stats import t

MARGIN = 0.01  # a point of accuracy


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
    """Return both sides' mean and deviation, their difference and its 90 % interval over seeds (Welch).

    `equivalent` is whether the interval lies within the margin: two one-sided tests at 5 % (TOST); `different`,
    whether it lies beyond it. `equivalent` is None where a side has fewer than two seeds: then there is no interval.
    """
    found = {"ours": _summary(ours), "peer": _summary(theirs), "equivalent": None}
    if len(ours) > 1 and len(theirs) > 1:
        shares = [statistics.variance(scores) / len(scores) for scores in (ours, theirs)]
        terms = sum(one**2 / (len(scores) - 1) for one, scores in zip(shares, (ours, theirs), strict=True))
        spread, degrees = math.sqrt(sum(shares)), sum(shares) ** 2 / terms if terms else math.inf
        wide = float(t.ppf(0.95, degrees)) * spread
        difference = found["ours"]["mean"] - found["peer"]["mean"]
        inside, outside = abs(difference) + wide < MARGIN, abs(difference) - wide > MARGIN
        found |= {"difference": difference, "interval": wide, "equivalent": inside, "different": outside}
    return found


def _summary(scores: list[float]) -> dict:
    """Return the mean, the deviation and the number of some scores."""
    deviation = statistics.stdev(scores) if len(scores) > 1 else None
    return {"mean": statistics.mean(scores), "deviation": deviation, "seeds": len(scores)}
