"""Two cells of runs.csv on the same task and split: their difference per seed, and its 95 % CI.

D draws. Scores are in points (x 100).
"""

from dataclasses import dataclass

import numpy as np

from thaw.outputs import wording
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import CELL, of_cell
from thaw.statistics.bootstrap import Interval, Resampled

# Rows of few columns are chosen faster.
COMPARED = [*CELL, "seed", "role", "split", "metric", "value", "folder", "thawed", "embeddings"]


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of scores by seed, for each seed that has all of them, and its mean over seeds with draws [D]."""

    by_seed: dict[int, float]
    resampled: Resampled

    @property
    def differences(self) -> list[float]:
        """The contrast of each seed."""
        return list(self.by_seed.values())

    @property
    def draws(self) -> np.ndarray:
        """The mean over resampled seeds and examples, [D]."""
        return self.resampled.draws

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return self.resampled.value

    @property
    def text(self) -> str:
        """The mean with its 95 % CI in print: −1.2 [−2.0, −0.4]."""
        return printed(self.resampled.ci)


class Contrasts:
    """Differences between cells of an experiment's runs, by the main metric."""

    def __init__(self, runs, role: str, predictions: PredictionFiles):
        """Args: runs as `read_runs` returns them; role of the splits compared, as test; predictions of the runs."""
        main = runs.loc[(runs["kind"] == "run") & runs["main"].astype(bool) & runs["value"].notna(), COMPARED]
        self.shown, self.validated = main[main["role"] == role], main[main["role"] == "validation"]
        self._places = self.shown.groupby([*CELL, "split"], sort=False).indices
        self.predictions = predictions

    def between(self, first: tuple, second: tuple, split: str) -> Contrast | None:
        """Return the first cell less the second; None where no seed has both. Args: cells by CELL; a split."""
        return combined([(1.0, self._rows(first, split)), (-1.0, self._rows(second, split))], self.predictions)

    def sides(self, cells: list[tuple], split: str) -> list[Resampled]:
        """Return the mean of each cell over the seeds that all of them have, with its draws; [] without such a seed."""
        sides = _of_shared_seeds([self._rows(cell, split) for cell in cells])
        if sides[0].empty:
            return []
        return [self.predictions.resampled([(100.0, side)], side["metric"].iloc[0], split) for side in sides]

    def _rows(self, cell: tuple, split: str):
        return self.shown.iloc[self._places.get((*cell, split), [])]

    def best(self, cells: list[tuple]) -> tuple | None:
        """Return the cell with the highest mean on validation, of equals the first; None where none has a score.

        Means are over the seeds that all of them have; a cell with fewer seeds than another is left out.
        """
        scored = {cell: of_cell(self.validated, cell).set_index("seed")["value"] for cell in cells}
        most = max((len(values) for values in scored.values()), default=0)
        kept = {cell: values for cell, values in scored.items() if len(values) == most > 0}
        shared = set.intersection(*(set(values.index) for values in kept.values())) if kept else set()
        means = {cell: values[values.index.isin(shared)].mean() for cell, values in kept.items() if shared}
        return max(means, key=means.get, default=None)


def combined(terms: list[tuple[float, object]], predictions: PredictionFiles) -> Contrast | None:
    """Return a weighted sum of cells; None where no seed has all.

    Args: weight and rows of runs.csv of each cell, all by one metric and on one split.
    """
    sides = _of_shared_seeds([rows for _, rows in terms])
    if sides[0].empty:
        return None
    weighted = [(100 * times, side) for (times, _), side in zip(terms, sides, strict=True)]
    made = predictions.resampled(weighted, sides[0]["metric"].iloc[0], sides[0]["split"].iloc[0])
    values = sum(times * side["value"].to_numpy() for times, side in weighted)
    return Contrast(dict(zip(sides[0]["seed"], values.tolist(), strict=True)), made)


def _of_shared_seeds(sides: list) -> list:
    """Return the rows of each side for the seeds that all have, in one order; a side has one row for each seed."""
    for side in sides:
        if side["seed"].duplicated().any():
            raise ValueError(f"{side['folder'].iloc[0]}: rows of several cells cannot be paired by seed")
    shared = set.intersection(*(set(side["seed"]) for side in sides))
    return [side[side["seed"].isin(shared)].sort_values("seed") for side in sides]


def plain(ci: Interval) -> list[str]:
    """Return a mean with both ends of its interval as CSV fields."""
    return [f"{value:.4f}" for value in (ci.value, ci.low, ci.high)]


def printed(ci: Interval) -> str:
    """Return a mean with its interval in print."""
    return f"{wording.number(ci.value)} {wording.interval(ci.low, ci.high)}"
