"""What the intervals are worth: coverage, error rates and power, simulated with the functions that are used.

Differences between two strategies are drawn by seed and test row, in points: a part by seed, a part by row, and a part
by both. `PYTHONPATH=.:scripts python quality/simulate_statistics.py` writes the record in some minutes. The site's page
on statistics shows it (scripts/simulated_tables.py).
"""

import numpy as np

from simulated_tables import RECORD
from thaw.core.files import write_json
from thaw.decision.contrasts import HIGHER, LOWER, OPEN
from thaw.outputs.frame.paired_differences import jointly
from thaw.outputs.tables import relative
from thaw.statistics import bootstrap
from thaw.statistics.aggregation import least, least_lasting

# Variances of a row's difference: of one seed 0.055, of two seeds' mean 0.03, near what two real tasks have.
BY_ROW, BY_BOTH = 0.01, 0.045
ROWS = 500
TIMES = 5  # hundreds of repeats


def simulated(times: int = 1) -> dict[str, list[dict]]:
    """Return the tables of the page by name, a line as {column: number}. Args: repeats, in hundreds."""
    tables = (coverage, groups, differences, taken, layers, shares)
    return {table.__name__: table(np.random.default_rng(7), 100 * times) for table in tables}


def coverage(rng, number: int) -> list[dict]:
    """How often the 95 % CI of a difference holds the truth, by seeds and by their standard deviation."""
    lines = []
    for seeds in (1, 2, 3, 4, 6, 8, 10):
        line = {"seeds": seeds}
        for sd in (0, 1, 2):
            drawn = [_difference(rng, seeds, sd) for _ in range(number)]
            cis = [bootstrap.interval(made.value, made.draws) for made in drawn]
            line[f"sd_{sd}"] = _rate([ci.low <= 0 <= ci.high for ci in cis])
            line[f"width_{sd}"] = round(float(np.median([ci.high - ci.low for ci in cis])), 1)
        lines.append(line)
    return lines


def _difference(rng, seeds: int, sd: float, weights=None, values=None) -> bootstrap.Resampled:
    """Return a difference that is 0 in truth. Args: the standard deviation over seeds, in points."""
    if values is None:
        values = np.sqrt(BY_ROW) * rng.standard_normal((1, ROWS)) + np.sqrt(BY_BOTH) * rng.standard_normal(
            (seeds, ROWS)
        )
    by_seed = sd * rng.standard_normal((seeds, 1))
    weights = WEIGHTS if weights is None else weights
    scores, by_row = 100 * values.mean(1) + by_seed[:, 0], 100 * values @ weights.T + by_seed
    return bootstrap.resampled(scores, by_row, values.shape[1], paired=True)


def _weights(of) -> np.ndarray:
    drawn = np.concatenate(list(bootstrap.RowDraws(of).examples()))
    return drawn / drawn.sum(1, keepdims=True)


WEIGHTS = _weights(ROWS)


def groups(rng, number: int) -> list[dict]:
    """Coverage where pairs share sentences, so that the rows of a group err together: rows drawn alone, and groups."""
    sizes = np.array([100, 60, 40, *[10] * 20, *[2] * 50])
    of_row = np.repeat(np.arange(len(sizes)), sizes)
    cis = {"alone": _weights(len(of_row)), "by_group": _weights(of_row)}
    inside = {name: [] for name in cis}
    for _ in range(number):
        shared = np.sqrt(BY_BOTH / 3) * rng.standard_normal((6, len(sizes)))[:, of_row]
        shared += np.sqrt(BY_BOTH / 3) * rng.standard_normal((1, len(sizes)))[:, of_row]
        values = shared + np.sqrt(BY_BOTH / 3) * rng.standard_normal((6, len(of_row)))
        for name, weights in cis.items():
            made = _difference(rng, 6, 0.0, weights=weights, values=values)
            ci = bootstrap.interval(made.value, made.draws)
            inside[name].append(ci.low <= 0 <= ci.high)
    return [{"rows": len(of_row), "groups": len(sizes)} | {name: _rate(values) for name, values in inside.items()}]


def differences(rng, number: int) -> list[dict]:
    """How often a table of differences to one reference has any answer where nothing differs; and one of 5 points.

    With the interval of the table, and with one for each difference.
    """
    lines = []
    for tests, seeds in ((1, 3), (1, 6), (8, 1), (8, 2), (8, 3), (8, 6), (8, 10), (40, 8)):
        found = {"own": [], "joint": [], "power": []}
        widths = []
        for _ in range(number):
            reference, *others = [_scores(rng, 0.0, seeds) for _ in range(tests + 1)]
            means = [_less(one, reference) for one in others]
            answers = jointly(means)
            found["joint"].append(any(one.answer != OPEN for one in answers))
            found["own"].append(any(jointly([mean])[0].answer != OPEN for mean in means))
            means[0] = _less((others[0][0] + 5.0, others[0][1] + 5.0), reference)
            found["power"].append(jointly(means)[0].answer == HIGHER)
            widths.append(np.median([one.high - one.low for one in answers]))
        line = {"tests": tests, "seeds": seeds} | {name: _rate(values) for name, values in found.items()}
        lines.append(line | {"width": round(float(np.median(widths)), 1)})
    return lines


def _less(one: tuple, other: tuple) -> bootstrap.Resampled:
    """Return a strategy less another. Args: scores by seed and on resampled rows of each."""
    return bootstrap.resampled(one[0] - other[0], one[1] - other[1], ROWS, paired=True)


def taken(rng, number: int) -> list[dict]:
    """Of K equal strategies, the highest against the others on the same rows: how often one is said to be lower."""
    lines = []
    for ways, seeds in ((4, 3), (4, 6), (8, 3), (8, 6), (18, 6)):
        lower = []
        for _ in range(number // 2):
            made = [_scores(rng, 0.0, seeds) for _ in range(ways)]
            best = made.pop(int(np.argmax([scores.mean() for scores, _ in made])))
            lower.append(any(one.answer == LOWER for one in jointly([_less(one, best) for one in made])))
        lines.append({"strategies": ways, "seeds": seeds, "lower": _rate(lower)})
    return lines


def _scores(rng, mean, seeds: int = 6, sd: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return a strategy's scores by seed, [S], and on resampled rows, [S, D]. Args: mean, of all seeds or [S, 1]."""
    values = np.sqrt(BY_BOTH / 2) * rng.standard_normal((seeds, ROWS)) + np.sqrt(BY_ROW) * rng.standard_normal(
        (1, ROWS)
    )
    by_seed = mean + sd * rng.standard_normal((seeds, 1))
    return 100 * values.mean(1) + by_seed[:, 0], 100 * values @ WEIGHTS.T + by_seed


def layers(rng, number: int) -> list[dict]:
    """The least of six k that reaches nine tenths, where it is 4: by the first that does, and by all from there on."""
    truth, lines = np.array([0.69, 0.70, 0.71, 0.745, 0.77, 0.80]), []
    for sd in (0.5, 1.0, 2.0):
        noisy = truth + 0.01 * sd * rng.standard_normal((10 * number, 6))
        ways = {"first": least, "lasting": least_lasting}
        found = {name: [way(dict(enumerate(row, 1)), 0.80, 0.9) or 7 for row in noisy] for name, way in ways.items()}
        lines.append({"sd": sd} | {name: _mean(values) for name, values in found.items()})
    return lines


def shares(rng, number: int) -> list[dict]:
    """Share of the way, of which the truth is three quarters: how often it is shown, and how often its CI holds it."""
    lines = []
    for seeds in (3, 6, 8):
        line = {"seeds": seeds}
        for way in (20, 4):
            cis = []
            for _ in range(number // 2):
                rows = np.sqrt(BY_ROW) * rng.standard_normal((1, ROWS))
                sides = [_side(rng, seeds, mean, rows) for mean in (60.0, 60.0 + way, 60.0 + 0.75 * way)]
                start, whole, _ = sides
                gap = bootstrap.interval(whole.value - start.value, whole.draws - start.draws)
                cis.append(relative._share(*sides) if gap.low > 0 else None)
            shown = [ci for ci in cis if ci]
            line |= {f"shown_{way}": _rate([ci is not None for ci in cis])}
            line |= {f"inside_{way}": _rate([ci.low <= 75 <= ci.high for ci in shown])}
        lines.append(line)
    return lines


def _side(rng, seeds: int, mean: float, rows: np.ndarray) -> bootstrap.Resampled:
    """Return a strategy's mean score with its draws. Args: what all strategies have of each row, [1, ROWS]."""
    own = np.sqrt(BY_BOTH / 2) * rng.standard_normal((seeds, ROWS)) + np.sqrt(BY_ROW / 2) * rng.standard_normal(ROWS)
    by_seed = mean + rng.standard_normal((seeds, 1))
    values = rows + own
    return bootstrap.resampled(100 * values.mean(1) + by_seed[:, 0], 100 * values @ WEIGHTS.T + by_seed, ROWS)


def _rate(values) -> float:
    return round(float(np.mean(values)), 3)


def _mean(values) -> float:
    return round(float(np.mean(values)), 2)


if __name__ == "__main__":
    write_json(RECORD, {"rows": ROWS, "times": TIMES} | simulated(TIMES))
