"""How much of the variance of scores belongs to what: initialisation, order of the data, subset."""

import numpy as np

from thaw.core.errors import UserError


def split(scores: dict[tuple, float], factors: tuple[str, ...]) -> dict[str, float]:
    """Return the variance that belongs to each factor, and `rest`: interactions and noise.

    Args: scores by their level of each factor, in the order of `factors`, one for every combination of levels.
    Components of a balanced random-effects analysis of variance by the method of moments (Searle et al. 1992, chapter
    4); one below 0 is 0. Raises UserError where a combination is missing or a factor has one level.
    """
    levels = [sorted({key[index] for key in scores}) for index in range(len(factors))]
    table = np.full([len(of_factor) for of_factor in levels], np.nan)
    for key, value in scores.items():
        table[tuple(of_factor.index(level) for of_factor, level in zip(levels, key, strict=True))] = value
    for name, of_factor in zip(factors, levels, strict=True):
        if len(of_factor) < 2:
            raise UserError(f"the variance of {name} needs two levels or more of it")
    if np.isnan(table).any():
        raise UserError(f"the variance of {' and '.join(factors)} needs a run for each combination of their levels")
    deviations = table - table.mean()
    squares, freedom, left = {}, {}, (deviations**2).sum()
    for axis, name in enumerate(factors):
        others = tuple(other for other in range(table.ndim) if other != axis)
        effects = deviations.mean(axis=others)
        squares[name] = (effects**2).sum() * table.size / len(effects)
        freedom[name] = len(effects) - 1
    rest = (left - sum(squares.values())) / (table.size - 1 - sum(freedom.values())) if table.ndim > 1 else 0.0
    components = {
        name: max(0.0, (squares[name] / freedom[name] - rest) * (freedom[name] + 1) / table.size) for name in factors
    }
    return {name: float(value) for name, value in (components | {"rest": max(0.0, rest)}).items()}
