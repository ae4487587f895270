"""Whether two sides are equally good: the same metric, within what seeds make of it."""

import math
import statistics

from scipy.stats import t


def of_runs(rows: list[dict], names: tuple, role: str) -> dict[str, list[float]]:
    """Return the scores over seeds in rows of thaw.results, by some of their columns, joined by "/"."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["role"] == role:
            found.setdefault("/".join(str(row[name]) for name in names), []).append(row["value"])
    return found


def of_cells(cells: list[dict], names: tuple, split: str) -> dict[str, list[float]]:
    """Return the scores over seeds in the cells of a peer, by some of their keys, joined by "/"."""
    found: dict[str, list[float]] = {}
    for cell in cells:
        if split in cell["scores"]:
            found.setdefault("/".join(str(cell[name]) for name in names), []).append(cell["scores"][split])
    return found


def compared(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> dict[str, dict]:
    """Return the verdict on each name that both sides have scores of."""
    return {name: verdict(scores, theirs[name]) for name, scores in ours.items() if name in theirs}


def verdict(ours: list[float], theirs: list[float]) -> dict:
    """Return both sides' mean and deviation, and whether the difference lies in its 95 % interval over seeds.

    `equal` is None where a side has fewer than two seeds: then there is no interval.
    """
    found = {"ours": _summary(ours), "peer": _summary(theirs), "equal": None}
    if len(ours) > 1 and len(theirs) > 1:
        spread = math.sqrt(statistics.variance(ours) / len(ours) + statistics.variance(theirs) / len(theirs))
        wide = float(t.ppf(0.975, len(ours) + len(theirs) - 2)) * spread
        difference = found["ours"]["mean"] - found["peer"]["mean"]
        found |= {"difference": difference, "interval": wide, "equal": abs(difference) <= wide}
    return found


def _summary(scores: list[float]) -> dict:
    """Return the mean, the deviation and the number of some scores."""
    deviation = statistics.stdev(scores) if len(scores) > 1 else None
    return {"mean": statistics.mean(scores), "deviation": deviation, "seeds": len(scores)}
