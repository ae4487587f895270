"""Cells of runs.csv on the same task and split: their differences, over seeds and rows together.

D draws. Scores are in points (x 100).
"""

import numpy as np

from thaw.decision.arms import COLLAPSED, UNDERTRAINED
from thaw.decision.contrasts import Difference, simultaneous
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import CELL, in_role
from thaw.statistics.bootstrap import Interval, Resampled
from thaw.words import wording

# Rows of few columns are chosen faster.
COMPARED = [*CELL, "seed", "role", "also_validation", "split", "metric", "value", "folder", "flags"]
COMPARED += ["thawed", "embeddings"]
FLAGS = {
    UNDERTRAINED: "Undertrained: on training rows half of the runs of a strategy, or more, are over a point below the "
    "linear probe of the same head; or they have less than 99 there and still improved when they ended. The "
    "difference is one of lengths of training too.",
    COLLAPSED: "Collapsed: half of the runs of a strategy, or more, diverged or predict a single class.",
}
FLAG_OF = {"underfit": UNDERTRAINED, "one_class": COLLAPSED, "diverged": COLLAPSED}  # by flag of a run


class Contrasts:
    """Differences between cells of an experiment's runs, by the main metric."""

    def __init__(self, runs, role: str, predictions: PredictionFiles):
        """Args: runs as `read_runs` returns them; role of the splits compared, as test; predictions of the runs."""
        main = runs.loc[(runs["kind"] == "run") & runs["main"].astype(bool) & runs["value"].notna(), COMPARED]
        self.shown = main[in_role(main, role)]
        self._places = self.shown.groupby([*CELL, "split"], sort=False).indices
        self.predictions = predictions

    def between(self, first: tuple, second: tuple, split: str) -> Resampled | None:
        """Return the first cell less the second; None where no seed has both. Args: cells by CELL; a split."""
        return combined([(1.0, self._rows(first, split)), (-1.0, self._rows(second, split))], self.predictions)

    def sides(self, cells: list[tuple], split: str) -> list[Resampled]:
        """Return the mean of each cell over the seeds that all of them have, with its draws; [] without such a seed."""
        sides = _of_shared_seeds([self._rows(cell, split) for cell in cells])
        if sides[0].empty:
            return []
        return [self.predictions.resampled([(100.0, side)], side["metric"].iloc[0], split) for side in sides]

    def interval(self, row, split: str) -> Interval:
        """Return the mean of one cell with its 95 % CI. Args: a mapping that has what CELL names; a split."""
        (made,) = self.sides([tuple(row[name] for name in CELL)], split)
        return made.ci

    def flags(self, cells: list[tuple], split: str) -> list[str]:
        return flags_of([self._rows(cell, split) for cell in cells])

    def _rows(self, cell: tuple, split: str):
        return self.shown.iloc[self._places.get((*cell, split), [])]


def combined(terms: list[tuple[float, object]], predictions: PredictionFiles) -> Resampled | None:
    """Return a weighted sum of cells, the mean over the seeds that all of them have; None where there is no such seed.

    Args: weight and rows of runs.csv of each cell, all by one metric and on one split.
    """
    sides = _of_shared_seeds([rows for _, rows in terms])
    if sides[0].empty:
        return None
    weighted = [(100 * times, side) for (times, _), side in zip(terms, sides, strict=True)]
    return predictions.resampled(weighted, sides[0]["metric"].iloc[0], sides[0]["split"].iloc[0])


def flags_of(sides: list) -> list[str]:
    """Return those of `FLAGS` that are true of a side. Args: rows of runs.csv of each side."""
    flagged = {flag for rows in sides for flag in usual_flags(rows["flags"])}
    return [flag for flag in FLAGS if flag in flagged]


def usual_flags(flags) -> tuple[str, ...]:
    """Return those of `FLAGS` that half of some runs have, or more. Args: `flags` of each run as runs.csv has them."""
    runs = [{FLAG_OF[flag] for flag in own.split(";") if flag in FLAG_OF} for own in flags]
    return tuple(flag for flag in FLAGS if runs and 2 * sum(flag in run for run in runs) >= len(runs))


def jointly(means: list[Resampled]) -> list[Difference]:
    """Return some differences with the 95 % interval that holds all of them together."""
    if not means:
        return []
    spreads = [mean.spread for mean in means]
    numbers = ([mean.value for mean in means], [one.error for one in spreads], [one.rows for one in spreads])
    values, errors, rows = map(np.array, numbers)
    return simultaneous(values, np.stack([mean.draws for mean in means], axis=1), errors, rows)


def _of_shared_seeds(sides: list) -> list:
    """Return the rows of each side for the seeds that all have, in one order; a side has one row for each seed."""
    for side in sides:
        if side["seed"].duplicated().any():
            raise ValueError(f"{side['folder'].iloc[0]}: rows of several cells cannot be paired by seed")
    shared = set.intersection(*(set(side["seed"]) for side in sides))
    return [side[side["seed"].isin(shared)].sort_values("seed") for side in sides]


def printed(ci: Interval) -> str:
    """Return a number with its interval in print: −1.2 [−2.0, −0.4]."""
    return f"{wording.number(ci.value)} {wording.interval(ci.low, ci.high)}"
