"""Differences in points with one simultaneous 95 % interval, and the words that are read off it.

K differences, D draws. What decides is the interval that is printed.
"""

from dataclasses import dataclass

import numpy as np

from thaw.statistics.bootstrap import LEVEL, Interval, unseen_share

HIGHER, LOWER, OPEN, WITHIN = "higher", "lower", "open", "within"
TIE = 1e-9  # points: equal scores may differ by rounding


@dataclass(frozen=True)
class Difference(Interval):
    """A difference with the ends of its 95 % interval, and what is read off it."""

    @property
    def answer(self) -> str:
        """Higher or lower where the interval is on one side of 0, else open."""
        return self.compared_with(0.0, 0.0)

    def compared_with(self, low: float, high: float) -> str:
        """Within where the interval is between two numbers, higher or lower where it is beyond both, else open."""
        if low < self.low and self.high < high:
            return WITHIN
        return HIGHER if self.low > high else LOWER if self.high < low else OPEN


def simultaneous(values: np.ndarray, draws: np.ndarray, errors: np.ndarray, rows: np.ndarray) -> list[Difference]:
    """Return differences with intervals that hold all of them together in 95 % of the draws (max-|t|).

    Where no draw changes a difference, its interval is as wide as rows that were not seen allow. The ends are NaN where
    it is undefined on all draws. Args: values [K]; draws [D, K]; standard errors [K]; the rows [K] behind each.
    """
    moves = ~(errors <= TIE)
    reach = 0.0
    if moves.any():
        away = np.abs(draws - values)[:, moves] / errors[moves]
        reach = float(np.nanquantile(np.fmax.reduce(away, axis=1), LEVEL))
    half = np.where(moves, reach * errors, [100 * unseen_share(int(count), LEVEL) for count in rows])
    return [
        Difference(float(value), float(value - away), float(value + away))
        for value, away in zip(values, half, strict=True)
    ]
