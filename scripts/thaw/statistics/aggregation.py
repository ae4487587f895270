"""Several seeds' scores as one number, and the least k that reaches a share of full quality."""

from collections.abc import Callable, Iterable, Mapping

from thaw.core.errors import UserError

FAILED = 0.9  # a score of at most this share of the best one (code of Lee et al. 2019)

FEWEST_OF_INTERVAL = 3  # with fewer seeds an interval says nothing of seeds: it is of the test rows alone


def mean(scores: Iterable[float]) -> float | None:
    scores = list(scores)
    return sum(scores) / len(scores) if scores else None


def without_failed(scores: Iterable[float]) -> list[float]:
    """Return the scores that are neither 0 nor at most the share `FAILED` of the best one."""
    scores = [score for score in scores if score != 0]
    return [score for score in scores if score > FAILED * max(scores)]


def mean_without_failed(scores: Iterable[float]) -> float | None:
    """Return the mean of the scores that `without_failed` leaves; 0 where every run failed.

    It drops collapsed runs, and lifts small noisy tasks with them: so report `mean` too.
    """
    scores = list(scores)
    kept = without_failed(scores)
    return mean(kept) if kept else (0.0 if scores else None)


AGGREGATIONS: dict[str, Callable[[Iterable[float]], float | None]] = {"mean": mean, "lee2019": mean_without_failed}


def least(scores: Mapping[int, float | None], full: float | None, share: float) -> int | None:
    """Return the first k whose score divided by the full model's is above `share`; None where there is none.

    By noise alone, each k below the one sought has its chance to come first; `least_lasting` has no such bias.

    Args: scores by k, None for a k without a score; the full model's score, above 0. The inequality is strict, and
    layers are counted without pooler and head, as in the notebooks of Lee et al. 2019. A ratio means nothing for a full
    model at or below 0: UserError.
    """
    if full is None or full <= 0:
        raise UserError(f"relative quality needs a full model with a score above 0, not {full}")
    return min((k for k, score in scores.items() if score is not None and score / full > share), default=None)


def least_lasting(scores: Mapping[int, float | None], full: float | None, share: float) -> int | None:
    """Return the least k from which on every larger k is above `share` too; None where the largest is not.

    Args: as for `least`; a k without a score is not above.
    """
    passed = None
    for k in sorted(scores, reverse=True):
        if least({k: scores[k]}, full, share) is None:
            break
        passed = k
    return passed
