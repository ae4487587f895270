"""What a decision is between: strategies with their validation results and prices, and baselines without an encoder.

S seeds, D draws of validation rows, which are the same rows for all arms. Scores are in points (x 100).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thaw.core.errors import UserError
from thaw.statistics.bootstrap import Interval, resampled

UNDERTRAINED, COLLAPSED, BELOW_BASELINE = "undertrained", "collapsed", "below_baseline"


@dataclass(frozen=True)
class FoldScores:
    """Out-of-fold scores of a cross-validated arm, on the rows of training and validation together.

    score: on all of them; by_row [D]: on draws of them, which draw validation rows as elsewhere; rows: how many.
    """

    score: float
    by_row: np.ndarray
    rows: int


@dataclass(frozen=True)
class Arm:
    """A way to solve the task: a strategy at a point of its sweep, or a baseline that uses no encoder.

    name: its id. scores [S] by seed; by_row [S, D] on resampled validation rows; rows: how many there are. price: what
    its training costs, in one unit for all arms. converged: all its seeds have one fit. encoder: False for a baseline.
    flags: what is wrong with its runs. expected: points more than of others before validation is seen, see `prior`.
    pairs: how it reads pairs of texts, "" of single texts. seeds: how many the scores are means of, where one score
    represents several or fewer than other arms have. folds: its out-of-fold scores; None for an arm that was trained
    once. parameters: how many it trained.
    """

    name: str
    scores: np.ndarray
    by_row: np.ndarray
    rows: int
    price: float
    converged: bool = True
    encoder: bool = True
    flags: tuple[str, ...] = ()
    expected: float = 0.0
    pairs: str = ""
    seeds: int | None = None
    folds: FoldScores | None = None
    parameters: float = 0.0

    @property
    def score(self) -> float:
        """Its own score: out of fold where it is cross-validated, else the mean over seeds on validation."""
        return self.folds.score if self.folds else float(np.nan_to_num(self.scores).mean())

    @cached_property
    def interval(self) -> Interval:
        """The 95 % CI of its own score, over rows and from three seeds on over seeds."""
        folds = self.folds
        scores, by_row = (np.array([folds.score]), folds.by_row[None]) if folds else (self.scores, self.by_row)
        return resampled(np.nan_to_num(scores), by_row, folds.rows if folds else self.rows).ci


def arm_name(strategy: str, variant: str) -> str:
    """Return the name of a strategy at a point of its sweep, as in "top_k k02"."""
    return strategy if variant == "base" else f"{strategy} {variant}"


@dataclass(frozen=True)
class Placed:
    """Arms on one scale: scores [K, S] and, on draws of rows, by_row [K, S, D]; converged [K]."""

    scores: np.ndarray
    by_row: np.ndarray
    converged: np.ndarray


def placed(arms: list[Arm]) -> Placed:
    """Return the scores of all arms as if on the same rows.

    A cross-validated arm has its out-of-fold scores. The best of those anchors the others: an arm that was trained once
    differs from it by what it differs on the validation rows, which both have. An undefined score counts as 0, on a
    draw as the score on all rows. Raises UserError where arms have other rows of validation or other seeds.
    """
    if not arms:
        raise UserError("there is nothing to decide between: no strategy has a score on validation")
    seeds = max(len(arm.scores) for arm in arms)
    for arm in arms:
        if arm.rows != arms[0].rows:
            both = f"{arm.name} has {arm.rows} rows of validation and {arms[0].name} {arms[0].rows}"
            raise UserError(f"{both}; run both on one subset")
        if len(arm.scores) not in (1, seeds):
            raise UserError(f"{arm.name} has {len(arm.scores)} seeds and others {seeds}; name the same seeds for all")
    scores = np.stack([np.broadcast_to(np.nan_to_num(arm.scores), seeds) for arm in arms])
    shape = (seeds, arms[0].by_row.shape[1])
    by_row = np.stack([np.broadcast_to(arm.by_row, shape) for arm in arms])
    by_row = np.where(np.isnan(by_row), scores[..., None], by_row)
    folded = {place: arm.folds for place, arm in enumerate(arms) if arm.folds}
    if folded:
        anchor = max(folded, key=lambda place: folded[place].score)
        wide = folded[anchor]
        scores, by_row = scores - scores[anchor] + wide.score, by_row - by_row[anchor] + wide.by_row
        for place, folds in folded.items():
            scores[place], by_row[place] = folds.score, folds.by_row
    return Placed(scores, by_row, np.array([arm.converged for arm in arms]))
