"""Whether a claim holds: a contrast of scores, seed by seed, against its margin."""

from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from thaw.statistics.significance import ALPHA, FEWEST_SEEDS, effect_size, holm, seeds_needed, sign_flip

HOLDS, FAILS, UNDECIDED, NOT_TESTABLE = "holds", "fails", "undecided", "not testable"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one test, the mean contrast, p by Holm, the seeds, how many more an undecided one lacks, and the
    effect: the mean way to the margin in its own standard deviations, above 0 where the claim is borne out.
    """

    answer: str
    contrast: float
    p: float
    seeds: int
    more: int | None = None
    effect: float | None = None


def verdicts(contrasts: list[list[float]], margins: list[dict], alpha: float = ALPHA) -> list[Verdict]:
    """Return the verdicts on a family of tests, p-values adjusted by Holm over it.

    Args: for each test its contrast by seed; its margin, {above: points} or {within: points}. `within` is two tests, of
    the way to either end, of which the one that is nearer to failing counts (Schuirmann 1987).
    """
    ways = [_way(np.asarray(contrast), margin) for contrast, margin in zip(contrasts, margins, strict=True)]
    adjusted = holm([sign_flip(way) for way in ways])
    # with fewer seeds than this no p is small enough for Holm
    fewest = max(FEWEST_SEEDS, ceil(log2(2 * max(len(ways), 1) / alpha)))
    results = []
    for contrast, way, p in zip(contrasts, ways, adjusted, strict=True):
        decided = p <= alpha and len(way) >= FEWEST_SEEDS
        answer = (HOLDS if way.mean() > 0 else FAILS) if decided else UNDECIDED
        needed = None if decided else seeds_needed(way)
        more = max(needed - len(way), fewest - len(way), 1) if needed else None
        results.append(Verdict(answer, float(np.mean(contrast)), p, len(way), more, effect_size(way)))
    return results


def overall(by_task: list[str]) -> str:
    """Return the verdict over tasks: fails where it fails on one, holds where it holds on all, else undecided.

    Without any test the claim is not testable.
    """
    if not by_task:
        return NOT_TESTABLE
    if FAILS in by_task:
        return FAILS
    return HOLDS if set(by_task) == {HOLDS} else UNDECIDED


def _way(contrast: np.ndarray, margin: dict) -> np.ndarray:
    """Return how far each seed's contrast is on the right side of the margin."""
    if "above" in margin:
        return contrast - margin["above"]
    ends = [margin["within"] - contrast, margin["within"] + contrast]
    return min(ends, key=np.mean)
