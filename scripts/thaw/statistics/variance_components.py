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
    """A variance, which sampling may bring below 0, with its 95 % CI, whose ends are at least 0."""

    variance: float
    low: float
    high: float


def components(
    scores: dict[tuple, float], factors: tuple[str, ...], outer: str | None = None
) -> dict[frozenset, Component]:
    """Return the variance of each effect; that of all factors at once holds the noise too.

    Balanced random effects by the method of moments: mean squares, solved for the variances that they are expected to
    be made of, from the largest effect down (Searle et al. 1992, chapter 4). All other factors are nested in `outer`:
    their levels mean nothing outside its own, so that their effects are effects within it. Without it all are crossed,
    with all interactions. Args: scores by their level of each factor, in the order of `factors`, one for every
    combination of levels. Raises UserError where a combination is missing or a factor has one level.
    """
    table = _table(scores, factors, outer)
    axes = dict(zip(factors, range(table.ndim), strict=True))
    effects = [frozenset(chosen) for size in range(table.ndim, 0, -1) for chosen in combinations(factors, size)]
    effects = [effect for effect in effects if outer is None or outer in effect]
    squares, freedom = {}, {}
    for effect in effects:
        own = [axes[name] for name in effect if name != outer or len(effect) == 1]
        deviations = _deviations(table, [axes[name] for name in effect], own)
        freedom[effect] = prod(size - (axis in own) for axis, size in enumerate(deviations.shape) if size > 1)
        squares[effect] = (deviations**2).sum() * table.size / deviations.size / freedom[effect]
    by_effect = {}
    for effect in effects:
        # the mean square of an effect, less those of its interactions with others: signs by inclusion and exclusion
        terms = {other: (-1) ** len(other - effect) for other in effects if effect <= other}
        repeats = prod(size for name, size in zip(factors, table.shape, strict=True) if name not in effect)
        parts = [(sign * squares[other] / repeats, freedom[other]) for other, sign in terms.items()]
        by_effect[effect] = _component(parts)
    return by_effect


def split(scores: dict[tuple, float], factors: tuple[str, ...], outer: str | None = None) -> dict[str, Component]:
    """Return the component of each factor, and of several `rest`: interactions and noise, those below 0 counted as 0.

    The noise of a single factor, and of one within `outer`, is in that factor. Args: as for `components`.
    """
    by_effect = components(scores, factors, outer)
    of_factors = {name: by_effect.pop(frozenset({name, outer} - {None})) for name in factors}
    rest = sum(max(0.0, one.variance) for one in by_effect.values())
    return of_factors | ({"rest": Component(float(rest), np.nan, np.nan)} if by_effect else {})


def _component(parts: list[tuple[float, int]], level: float = 0.95) -> Component:
    """Return a sum of mean squares, some with a minus, with its interval by the modified large-sample method.

    The interval is that of Graybill and Wang (1980), for differences as in Burdick and Graybill (1992), without its
    cross terms. Of a single mean square it is exact. Args: mean squares with sign, and their degrees of freedom.
    """
    from scipy.stats import chi2

    total, below, above = 0.0, 0.0, 0.0
    for value, freedom in parts:
        # how far the expected mean square may be below and above what was found
        less, more = (abs(freedom / chi2.ppf(p, freedom) - 1) for p in ((1 + level) / 2, (1 - level) / 2))
        if value < 0:
            less, more = more, less
        total, below, above = total + value, below + (less * value) ** 2, above + (more * value) ** 2
    return Component(float(total), float(max(0.0, total - below**0.5)), float(max(0.0, total + above**0.5)))


def _table(scores: dict[tuple, float], factors: tuple[str, ...], outer: str | None) -> np.ndarray:
    """Return the scores as an array with an axis for each factor; levels of nested ones are counted within `outer`."""

    def place(key: tuple, index: int) -> tuple:
        return index, None if outer in (None, factors[index]) else key[factors.index(outer)]

    levels: dict[tuple, list] = {}
    for key in sorted(scores):
        for index, level in enumerate(key):
            known = levels.setdefault(place(key, index), [])
            known += [level] * (level not in known)
    sizes = [max(len(known) for (of, _), known in levels.items() if of == index) for index in range(len(factors))]
    table = np.full(sizes, np.nan)
    for key, value in scores.items():
        table[tuple(levels[place(key, index)].index(level) for index, level in enumerate(key))] = value
    for name, size in zip(factors, sizes, strict=True):
        if size < 2:
            raise UserError(f"the variance of {name} needs two levels or more of it")
    if np.isnan(table).any():
        raise UserError(f"the variance of {' and '.join(factors)} needs a run for each combination of their levels")
    return table


def _deviations(table: np.ndarray, axes: list[int], own: list[int]) -> np.ndarray:
    """Return the deviations that an effect alone makes: means over all but `axes`, less means along each of `own`."""
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    means = table.mean(axis=others, keepdims=True)
    for axis in own:
        means = means - means.mean(axis=axis, keepdims=True)
    return means
