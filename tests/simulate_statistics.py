"""What the intervals and tests are worth: coverage, error rates and power, simulated with the functions that are used.

Differences between two strategies are drawn by seed and test row, in points: a part by seed, a part by row, and a part
by both. `python tests/statistics_page.py` writes docs/explanation/statistics.md from the record.
"""

import numpy as np
from thaw.outputs.tables.guidelines import SIDES, UNDECIDED, answer
from thaw.outputs.tables.share_of_way import share
from thaw.statistics.verdicts import verdicts

from thaw.statistics import bootstrap, non_inferiority, sign_flips, significance, variance_components
from thaw.statistics.aggregation import least, least_lasting

# Variances of a row's difference: of one seed 0.055, of two seeds' mean 0.03, near what two real tasks have.
BY_ROW, BY_BOTH = 0.01, 0.045
ROWS = 500


def simulated(times: int = 1) -> dict[str, list[dict]]:
    """Return the tables of the page by name, a line as {column: number}. Args: repeats, in hundreds."""
    tables = (
        family,
        coverage,
        groups,
        verdict_errors,
        tables_of_rows,
        winners,
        recommendations,
        components,
        layers,
        effects,
        shares,
    )
    return {table.__name__: table(np.random.default_rng(7), 100 * times) for table in tables}


def family(rng, number: int) -> list[dict]:
    """Error of a whole table of tests that share seeds, and power at d = 2: step-down max-T, and Holm."""
    lines = []
    for tests in (1, 8, 40, 73):
        for seeds in (6, 7, 8, 10, 12):
            errors, power, one, holm = [], [], [], []
            for _ in range(number):
                noise = np.sqrt(0.5) * (rng.standard_normal((seeds, 1)) + rng.standard_normal((seeds, tests)))
                alone = noise + 2 * (np.arange(tests) == 0)
                p, of_all = sign_flips.max_t(noise + 2)
                errors.append(min(sign_flips.max_t(noise)[1]) <= 0.05)
                power.append(np.mean(np.array(of_all) <= 0.05))
                one.append(sign_flips.max_t(alone)[1][0] <= 0.05)
                holm.append(np.mean(_holm(p) <= 0.05))
            rates = {"error": errors, "power": power, "power_one": one, "power_holm": holm}
            lines.append({"tests": tests, "seeds": seeds} | {name: _rate(values) for name, values in rates.items()})
    return lines


def _holm(values: list[float]) -> np.ndarray:
    order, adjusted = np.argsort(values), np.empty(len(values))
    steps = np.array(values)[order] * (len(values) - np.arange(len(values)))
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def coverage(rng, number: int) -> list[dict]:
    """How often the 95 % CI of a difference holds the truth, by seeds and by their standard deviation."""
    lines = []
    for seeds in (1, 2, 3, 4, 6, 8, 10):
        line = {"seeds": seeds}
        for sd in (0, 1, 2):
            drawn = [_difference(rng, seeds, sd) for _ in range(number)]
            cis = [bootstrap.interval(made.value, made.draws) for _, made in drawn]
            line[f"sd_{sd}"] = _rate([ci.low <= 0 <= ci.high for ci in cis])
            line[f"width_{sd}"] = round(float(np.median([ci.high - ci.low for ci in cis])), 1)
        lines.append(line)
    return lines


def _difference(rng, seeds: int, sd: float, mean: float = 0.0, weights=None, values=None):
    """Return a difference by seed and its resampled mean. Args: sd of seeds and true mean, in points."""
    if values is None:
        values = np.sqrt(BY_ROW) * rng.standard_normal((1, ROWS)) + np.sqrt(BY_BOTH) * rng.standard_normal(
            (seeds, ROWS)
        )
    by_seed = mean + sd * rng.standard_normal((seeds, 1))
    weights = WEIGHTS if weights is None else weights
    scores, by_row = 100 * values.mean(1) + by_seed[:, 0], 100 * values @ weights.T + by_seed
    return dict(enumerate(scores)), bootstrap.resampled(scores, by_row, values.shape[1], paired=True)


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
            _, made = _difference(rng, 6, 0.0, weights=weights, values=values)
            ci = bootstrap.interval(made.value, made.draws)
            inside[name].append(ci.low <= 0 <= ci.high)
    return [{"rows": len(of_row), "groups": len(sizes)} | {name: _rate(values) for name, values in inside.items()}]


def verdict_errors(rng, number: int) -> list[dict]:
    """How often a claim of no effect is decided, by the test over seeds alone and with the CI; and one of 5 points."""
    lines = []
    for seeds in (6, 10, 30):
        rates = {}
        for name, mean in (("none", 0.0), ("five", 5.0)):
            drawn = [_difference(rng, seeds, 1.0, mean) for _ in range(number)]
            alone = [sign_flips.adjusted([by_seed])[0][1] <= 0.05 for by_seed, _ in drawn]
            both = [verdicts([by_seed], [made], [{"above": 0.0}])[0].answer != "undecided" for by_seed, made in drawn]
            words = [answer(made.ci, seeds, 1.0, SIDES["adaptation"]) != UNDECIDED for _, made in drawn]
            rates |= {f"test_{name}": _rate(alone), f"both_{name}": _rate(both), f"word_{name}": _rate(words)}
        lines.append({"seeds": seeds} | rates)
    return lines


def tables_of_rows(rng, number: int) -> list[dict]:
    """How often a table of comparisons with one reference has an answer, where there is no difference; and of one of 5.

    By the test over seeds alone, with each comparison's own CI, and with the intervals of the family.
    """
    lines = []
    for tests, seeds in ((1, 8), (8, 6), (8, 8), (8, 10), (18, 10), (40, 10)):
        found = {"test": [], "own": [], "joint": [], "power": []}
        for _ in range(number):
            reference, *others = [_scores(rng, 0.0, seeds) for _ in range(tests + 1)]
            pairs = [(one[0] - reference[0], one[1] - reference[1]) for one in others]
            scores, means = _contrasts(pairs)
            answers = significance.compare(scores, means)
            significant = [one.adjusted <= 0.05 for one in answers]
            cis = [bootstrap.interval(mean.value, mean.draws) for mean in means]
            away = [ci.low > 0 or ci.high < 0 for ci in cis]
            found["test"].append(any(significant))
            found["own"].append(any(map(all, zip(significant, away, strict=True))))
            found["joint"].append(any(one.answer in (significance.HIGHER, significance.LOWER) for one in answers))
            pairs[0] = pairs[0][0] + 5.0, pairs[0][1] + 5.0
            found["power"].append(significance.compare(*_contrasts(pairs))[0].answer == significance.HIGHER)
        lines.append({"tests": tests, "seeds": seeds} | {name: _rate(values) for name, values in found.items()})
    return lines


def _contrasts(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[list[dict], list[bootstrap.Resampled]]:
    """Return differences by seed and their means. Args: scores by seed and on resampled rows of each comparison."""
    means = [bootstrap.resampled(scores, by_row, ROWS, paired=True) for scores, by_row in pairs]
    return [dict(enumerate(scores)) for scores, _ in pairs], means


def winners(rng, number: int) -> list[dict]:
    """Of K equal strategies, the highest on validation against the others on test, by the same runs.

    How often another one is said to be below it, and by how many points it is above their mean. A seed of a strategy
    has one effect on both splits, which is as bad as it can be.
    """
    lines = []
    for ways, seeds, sd in ((4, 6, 1.0), (8, 6, 1.0), (8, 8, 1.0), (8, 8, 2.0), (18, 10, 2.0)):
        below, ahead = [], []
        for _ in range(max(10, number // 2)):
            effects = [sd * rng.standard_normal((seeds, 1)) for _ in range(ways)]
            validated = [_scores(rng, effect, seeds, 0.0)[0].mean() for effect in effects]
            tested = [_scores(rng, effect, seeds, 0.0) for effect in effects]
            best = tested.pop(int(np.argmax(validated)))
            answers = significance.compare(*_contrasts([(one[0] - best[0], one[1] - best[1]) for one in tested]))
            below.append(any(one.answer == significance.LOWER for one in answers))
            ahead.append(-np.mean([one.difference for one in answers]))
        line = {"strategies": ways, "seeds": seeds, "sd": sd, "below": _rate(below)}
        lines.append(line | {"ahead": round(float(np.mean(ahead)), 2)})
    return lines


def recommendations(rng, number: int) -> list[dict]:
    """Of K strategies: a bound that is wrong, a pick below the margin, and by how much its score is too high.

    A seed of a strategy has one effect on validation and test, since one run is scored on both.
    """
    lines = []
    for ways, gap, margin in (
        (2, 0.0, 1.0),
        (2, 0.0, 2.0),
        (4, 0.0, 2.0),
        (8, 0.0, 2.0),
        (8, 1.5, 2.0),
        (18, 0.0, 2.0),
    ):
        truth = -gap * np.arange(ways)
        wrong, worse, shown, chosen, highest = [], [], [], [], []
        for _ in range(max(10, number // 4)):
            effects = [mean + rng.standard_normal((6, 1)) for mean in truth]
            made = [_scores(rng, effect, 6, 0.0) for effect in effects]
            validated = [
                non_inferiority.Candidate(str(index), scores, by_row, ROWS, {"cost": -index}, tuple(range(6)))
                for index, (scores, by_row) in enumerate(made)
            ]
            tested = [_scores(rng, effect, 6, 0.0)[0].mean() for effect in effects]
            every = non_inferiority.judged(validated, margin)
            away = truth - truth.max()
            bounds = [(one.difference.low, one.difference.high) for one in every]
            wrong.append(any(not low <= a <= high for (low, high), a in zip(bounds, away, strict=True)))
            pick = non_inferiority.cheapest(every, "cost")
            taken = int(pick.candidate.name)
            shown.append(pick.answer == non_inferiority.NOT_WORSE)
            worse.append(shown[-1] and away[taken] < -margin)
            chosen.append(tested[taken] - truth[taken])
            highest.append(max(tested) - truth[int(np.argmax(tested))])
        line = {"strategies": ways, "gap": gap, "margin": margin, "shown": _rate(shown), "wrong": _rate(wrong)}
        line |= {"worse": _rate(worse), "bias": round(float(np.mean(chosen)), 2)}
        lines.append(line | {"bias_of_maximum": round(float(np.mean(highest)), 2)})
    return lines


def _scores(rng, mean, seeds: int = 6, sd: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return a strategy's scores by seed, [S], and on resampled rows, [S, D]. Args: mean, of all seeds or [S, 1]."""
    values = np.sqrt(BY_BOTH / 2) * rng.standard_normal((seeds, ROWS)) + np.sqrt(BY_ROW) * rng.standard_normal(
        (1, ROWS)
    )
    by_seed = mean + sd * rng.standard_normal((seeds, 1))
    return 100 * values.mean(1) + by_seed[:, 0], 100 * values @ WEIGHTS.T + by_seed


def components(rng, number: int) -> list[dict]:
    """Variance components of 1 for each factor and 4 for their interaction: mean, and coverage of the CI."""
    lines = []
    for levels in (3, 5, 8):
        means, inside = [], []
        for _ in range(2 * number):
            size = (levels, levels)
            parts = [rng.standard_normal((levels, 1)), rng.standard_normal((1, levels)), 2 * rng.standard_normal(size)]
            found = variance_components.split(dict(np.ndenumerate(sum(parts))), ("subset", "order"))
            means.append(found["subset"].variance)
            low, high = found["subset"].interval()
            inside.append(low <= 1 <= high)
        lines.append({"levels": levels, "mean": _mean(means), "coverage": _rate(inside)})
    return lines


def layers(rng, number: int) -> list[dict]:
    """The least of six k that reaches nine tenths, where it is 4: by the first that does, and by all from there on."""
    truth, lines = np.array([0.69, 0.70, 0.71, 0.745, 0.77, 0.80]), []
    for sd in (0.5, 1.0, 2.0):
        noisy = truth + 0.01 * sd * rng.standard_normal((10 * number, 6))
        ways = {"first": least, "lasting": least_lasting}
        found = {name: [way(dict(enumerate(row, 1)), 0.80, 0.9) or 7 for row in noisy] for name, way in ways.items()}
        lines.append({"sd": sd} | {name: _mean(values) for name, values in found.items()})
    return lines


def effects(rng, number: int) -> list[dict]:
    """The mean of d_z where the truth is 1, with its correction and without."""
    lines = []
    for seeds in (3, 6, 10):
        drawn = rng.normal(1, 1, (100 * number, seeds))
        raw = drawn.mean(1) / drawn.std(1, ddof=1)
        corrected = [significance.effect_size(row) for row in drawn[: 20 * number]]
        lines.append(
            {"seeds": seeds, "corrected": round(float(np.mean(corrected)), 2), "raw": round(float(raw.mean()), 2)}
        )
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
                cis.append(share(*sides))
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
