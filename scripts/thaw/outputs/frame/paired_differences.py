"""Two cells of runs.csv on the same task and split: their difference per seed, and its 95 % CI.

D draws. Scores are in points (x 100).
"""

from dataclasses import dataclass

import numpy as np

from thaw.outputs import wording
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import CELL, of_cell
from thaw.statistics.bootstrap import interval


@dataclass(frozen=True)
class Contrast:
    """The first less the second, for each seed that both have, and over resampled seeds and examples [D]."""

    differences: list[float]
    draws: np.ndarray

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.differences))

    @property
    def text(self) -> str:
        """The mean with its 95 % CI in print: −1.2 [−2.0, −0.4]."""
        return printed(self.mean, self.draws)


class Contrasts:
    """Differences between cells of an experiment's runs, by the main metric."""

    def __init__(self, runs, role: str, predictions: PredictionFiles):
        """Args: runs as `read_runs` returns them; role of the splits compared, as test; predictions of the runs."""
        main = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & runs["value"].notna()]
        self.shown, self.validated = main[main["role"] == role], main[main["role"] == "validation"]
        self.predictions = predictions

    def between(self, first: tuple, second: tuple, split: str) -> Contrast | None:
        """Return the first cell less the second; None where no seed has both. Args: cells by CELL; a split."""
        sides = self.together([first, second], split)
        if sides is None:
            return None
        (scores, draws), (others, other_draws) = sides
        return Contrast((scores - others).tolist(), draws - other_draws)

    def draws(self, cell: tuple, split: str) -> np.ndarray:
        """Return a cell's mean over seeds in each draw, [D]."""
        rows = self._rows(cell, split).sort_index().reset_index()
        return 100 * self.predictions.draws(rows, rows["metric"].iloc[0], split)

    def together(self, cells: list[tuple], split: str) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Return of each cell the scores by seed [seeds], and the mean over seeds in each draw [D].

        The seeds are those that all cells have; None where there is none.
        """
        sides = [self._rows(cell, split) for cell in cells]
        seeds = sorted(set.intersection(*(set(side.index) for side in sides)))
        if not seeds:
            return None
        sides = [side.loc[seeds].reset_index() for side in sides]
        return [
            (100 * side["value"].to_numpy(), 100 * self.predictions.draws(side, side["metric"].iloc[0], split))
            for side in sides
        ]

    def best(self, cells: list[tuple]) -> tuple | None:
        """Return the cell with the highest mean on validation, of equals the first; None where none has a score."""
        means = self.validated.groupby(CELL)["value"].mean()
        return max((cell for cell in cells if cell in means), key=means.get, default=None)

    def _rows(self, cell: tuple, split: str):
        rows = self.shown[self.shown["split"] == split]
        return of_cell(rows, cell).set_index("seed")


def plain(mean: float, draws: np.ndarray) -> list[str]:
    """Return a mean with both ends of its 95 % CI as CSV fields."""
    ci = interval(mean, draws)
    return [f"{value:.4f}" for value in (mean, ci.low, ci.high)]


def printed(mean: float, draws: np.ndarray) -> str:
    """Return a mean with its 95 % CI in print."""
    ci = interval(mean, draws)
    return f"{wording.number(mean)} [{wording.number(ci.low)}, {wording.number(ci.high)}]"
