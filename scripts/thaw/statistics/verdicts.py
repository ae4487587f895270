"""Whether a claim holds: a contrast of scores, seed by seed, against its margin."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thaw.declarations.decision import ALPHA
from thaw.statistics.bootstrap import Interval, Resampled
from thaw.statistics.sample_size import Needed, needed
from thaw.statistics.sign_flips import adjusted
from thaw.statistics.significance import effect_size, family_reach, joint_interval, margin_kept

HOLDS, FAILS, UNDECIDED, NOT_TESTABLE = "holds", "fails", "undecided", "not testable"


@dataclass(frozen=True)
class Verdict:
    """The answer to one test, the mean contrast with its 95 % CI, p adjusted over the family, the seeds, what would
    decide an undecided one, and the effect: d_z of the way to the margin, above 0 where the claim is borne out.
    """

    answer: str
    contrast: float
    ci: Interval
    p: float
    seeds: int
    needed: Needed | None = None
    effect: float | None = None


def verdicts(contrasts: list[Mapping[int, float]], means: list[Resampled], margins: list[dict]) -> list[Verdict]:
    """Return the verdicts of a family of tests.

    Which way each is decided says `significance.margin_kept`. Args: for each test its contrast by seed, the mean with
    its draws, and the margin, {above: points} or {within: points}. `within` is two tests, of the way to either end, of
    which the one that is nearer to failing counts (Schuirmann 1987).
    """
    ways = [_ways(contrast, margin) for contrast, margin in zip(contrasts, margins, strict=True)]
    tests = adjusted([way for ends in ways for way in ends])
    tested, left = iter(tests), sum(p > ALPHA for _, p in tests)
    reach, results = family_reach(means), []
    for ends, mean, margin in zip(ways, means, margins, strict=True):
        pairs = [(way, next(tested)[1]) for way in ends]
        way, p = min(pairs, key=lambda pair: np.mean(list(pair[0].values())))
        values, ci = np.array(list(way.values())), mean.ci
        kept = margin_kept(p, len(values), joint_interval(ci, mean, reach), margin)
        answer = {True: HOLDS, False: FAILS, None: UNDECIDED}[kept]
        lacks = None if answer != UNDECIDED else needed(abs(values.mean()), mean.spread, max(1, left), reach)
        results.append(Verdict(answer, mean.value, ci, p, len(values), lacks, effect_size(values)))
    return results


def overall(decisions: list[str]) -> str:
    """Return the answer over tasks: fails where it fails on one, holds where it holds on all, else undecided.

    Without any test the claim is not testable.
    """
    if not decisions:
        return NOT_TESTABLE
    if FAILS in decisions:
        return FAILS
    return HOLDS if set(decisions) == {HOLDS} else UNDECIDED


def _ways(contrast: Mapping[int, float], margin: dict) -> list[dict[int, float]]:
    """Return by seed how far the contrast is on the right side of the margin; of `within`, of either end."""
    if "above" in margin:
        return [{seed: value - margin["above"] for seed, value in contrast.items()}]
    return [{seed: margin["within"] - sign * value for seed, value in contrast.items()} for sign in (1, -1)]
