"""How much of the variance of scores belongs to what: initialisation, order of the data, subset.

F factors, each with its levels; an effect is a set of factors: a factor alone, or an interaction of several.
"""

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from thaw.core.errors import UserError


@dataclass(frozen=True)
class Component:
    """A variance, which sampling may bring below 0, and the degrees of freedom of its estimate by Satterthwaite."""

    variance: float
    freedom: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the variance from chi-squared; (0, infinity) of one at or below 0."""
        from scipy.stats import chi2

        if self.variance <= 0:
            return 0.0, np.inf
        ends = chi2.ppf([(1 + level) / 2, (1 - level) / 2], self.freedom)
        low, high = (self.freedom * self.variance / end if end > 0 else np.inf for end in ends)
        return float(low), float(high)


def components(scores: dict[tuple, float], factors: tuple[str, ...]) -> dict[frozenset, Component]:
    """Return the variance of each effect; that of all factors at once holds the noise too.

    Balanced random effects by the method of moments with all interactions: mean squares, solved for the variances that
    they are expected to be made of, from the largest interaction down (Searle et al. 1992, chapter 4). Args: scores by
    their level of each factor, in the order of `factors`, one for every combination of levels. Raises UserError where
    a combination is missing or a factor has one level.
    """
    table = _table(scores, factors)
    axes = dict(zip(factors, range(table.ndim), strict=True))
    effects = [frozenset(chosen) for size in range(table.ndim, 0, -1) for chosen in combinations(factors, size)]
    squares, freedom = {}, {}
    for effect in effects:
        deviations = _deviations(table, [axes[name] for name in effect])
        freedom[effect] = prod(table.shape[axes[name]] - 1 for name in effect)
        squares[effect] = (deviations**2).sum() * table.size / deviations.size / freedom[effect]
    by_effect = {}
    for effect in effects:
        # the mean square of an effect, less those of its interactions with others: signs by inclusion and exclusion
        terms = {other: (-1) ** len(other - effect) for other in effects if effect <= other}
        repeats = prod(size for name, size in zip(factors, table.shape, strict=True) if name not in effect)
        total = sum(sign * squares[other] for other, sign in terms.items())
        spread = sum(squares[other] ** 2 / freedom[other] for other in terms)
        by_effect[effect] = Component(float(total / repeats), float(total**2 / spread) if spread > 0 else 1.0)
    return by_effect


def split(scores: dict[tuple, float], factors: tuple[str, ...]) -> dict[str, Component]:
    """Return the component of each factor, and `rest`: interactions and noise, those below 0 counted as 0.

    Args: as for `components`.
    """
    by_effect = components(scores, factors)
    mixed = [max(0.0, one.variance) for effect, one in by_effect.items() if len(effect) > 1]
    rest = Component(float(sum(mixed)), np.nan)
    return {name: by_effect[frozenset([name])] for name in factors} | {"rest": rest}


def _table(scores: dict[tuple, float], factors: tuple[str, ...]) -> np.ndarray:
    """Return the scores as an array with an axis for each factor."""
    levels = [sorted({key[index] for key in scores}) for index in range(len(factors))]
    table = np.full([len(of_factor) for of_factor in levels], np.nan)
    for key, value in scores.items():
        table[tuple(of_factor.index(level) for of_factor, level in zip(levels, key, strict=True))] = value
    for name, of_factor in zip(factors, levels, strict=True):
        if len(of_factor) < 2:
            raise UserError(f"the variance of {name} needs two levels or more of it")
    if np.isnan(table).any():
        raise UserError(f"the variance of {' and '.join(factors)} needs a run for each combination of their levels")
    return table


def _deviations(table: np.ndarray, axes: list[int]) -> np.ndarray:
    """Return the deviations that an effect alone makes: its means, less those of all effects that it holds."""
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    means = table.mean(axis=others, keepdims=True)
    for axis in axes:
        means = means - means.mean(axis=axis, keepdims=True)
    return means
