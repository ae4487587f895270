"""The choice among the trials of a search, by the mean of the main metric on validation over their seeds."""

import math

from thaw.core.digests import digest
from thaw.core.runtime import log


def choose_trial(spec: dict, task: dict, trials: list[tuple[dict, dict, dict]]) -> dict:
    """Return the record of a search, chosen.json: the best trial and all of them.

    Args: the spec of the search; its whole task; each trial's settings, and its score on validation and on the scored
    rows of train by seed, None where it is undefined. Ties go to the first trial; undefined is worse than all. With
    `penalty: gap` in the spec a trial counts by its mean on validation less what its mean on train is above it.
    """
    split, metric = task["validation"], task["metrics"][0]
    summaries = [{"settings": settings, "mean": _mean(scores), "seeds": scores} for settings, scores, _ in trials]
    if spec.get("penalty"):
        for trial, (*_, train) in zip(summaries, trials, strict=True):
            trial["train"] = _mean(train)
    ranks = [_counted(trial) for trial in summaries]
    best = ranks.index(max(ranks))
    log(f"trial {best + 1} of {len(summaries)} is best on {split} by {metric}: {summaries[best]['settings']}")
    record = {"spec": spec, "digest": digest(spec), "split": split, "metric": metric}
    return record | {"trial": best + 1, "settings": summaries[best]["settings"], "trials": summaries}


def _counted(trial: dict) -> float:
    """Return what a trial counts by: its mean on validation, less its gap where a penalty asks for it."""
    validation, train = trial["mean"], trial.get("train", -math.inf)
    return -math.inf if None in (validation, train) else validation - max(0.0, train - validation)


def _mean(scores: dict) -> float | None:
    """Return the mean over seeds, None where one is undefined."""
    return None if None in scores.values() else sum(scores.values()) / len(scores)
