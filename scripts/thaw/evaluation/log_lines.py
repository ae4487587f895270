"""The lines of a log that have scores, after an epoch and at the end of a run: for people, no result reads them."""

import math
from collections.abc import Sequence

from thaw.declarations.task_types import METRIC_LABELS


def epoch_line(place: str, losses: Sequence[float], metric: str, scores: list[float | None]) -> str:
    """Return `epoch 1 of 2: loss 0.52, validation MCC 12.3`, of several runs that train side by side their means.

    Args: the epoch, or the update; the mean loss since the line before, by run; main metric and its value on
    validation, by run: an empty list where it was not scored, None where it is undefined.
    """
    several = f"means of {len(losses)} runs: " if len(losses) > 1 else ""
    line = f"{place}: {several}loss {_mean(losses):#.3g}"
    return f"{line}, validation {scored(metric, _mean(scores))}" if scores else line


def result_line(task: dict, outcome: dict, seconds: float) -> str:
    """Return `test MCC 17.9, 27 s`: the test scores and the seconds. Args: as of `scores_line`; the seconds."""
    return f"{scores_line(task, outcome)}, {seconds:.{0 if seconds >= 10 else 1}f} s"


def scores_line(task: dict, outcome: dict) -> str:
    """Return `test MCC 17.9`: the main metric on each test split, of a trial on validation.

    Args: a task with its defaults; an outcome as `evaluate` gives it.
    """
    metric, scores = task["metrics"][0], outcome["scores"]
    splits = [split for split in task["test"] if split in scores] or [task["validation"]]
    return ", ".join(f"{split} {scored(metric, scores[split][metric])}" for split in splits)


def scored(metric: str, value: float | None) -> str:
    """Return a score with its metric, as `MCC 12.3`: times 100, as in all tables."""
    shown = "undefined" if value is None or not math.isfinite(value) else f"{100 * value:.1f}"
    return f"{METRIC_LABELS.get(metric, metric)} {shown}"


def _mean(values: Sequence[float | None]) -> float:
    """Return a mean; NaN where a value is None."""
    return sum(math.nan if value is None else value for value in values) / len(values)
