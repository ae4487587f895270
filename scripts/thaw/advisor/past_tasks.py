"""What past tasks teach: read from the CSV of a `progress_table`, of any experiment or of the grid.

a candidates, k of them known: past tasks had them too.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from thaw.advisor.beliefs import RUNGS, Beliefs, Past, Rungs, before, features_of, rungs_of
from thaw.core.errors import UserError
from thaw.core.home import HOME

SHIPPED = HOME / "config/past_tasks.csv"  # of config/experiments/grid.yaml; scripts/record.py writes it
FEWEST = 3  # datasets, as in `before`
KEY = ("head", "subset", "corpus", "task", "seed")
POINT = ("strategy", "variant")
SCORES = [*(f"validation_{rung:g}" for rung in RUNGS), "test"]


@dataclass(frozen=True)
class PastTasks:
    """The past tasks of an encoder: by KEY the scores [rungs + 1] of its points, which
    are (strategy, variant)."""

    scores: dict[tuple, dict[tuple[str, str], np.ndarray]]

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks."""
        return list(dict.fromkeys(task for *_, task, _ in self.scores))

    def known(self, candidates: list[tuple[str, str]]) -> list[int]:
        """Return the places of the candidates that each seed of each task had; none for fewer than three datasets."""
        if len({corpus for _, _, corpus, *_ in self.scores}) < FEWEST:
            return []
        return [
            place
            for place, point in enumerate(candidates)
            if all(point in by_point for by_point in self.scores.values())
        ]

    def beliefs(
        self, candidates: list[tuple[str, str]], probes: list[float], validated: int
    ) -> tuple[Beliefs, Rungs, list[int]]:
        """Return what is believed of the candidates, what their rungs show, and the places of the known ones.

        Args: candidates, probes first; the probes' scores x 100 on validation; how many rows that is of. Of a candidate
        that some past task lacks, and of all where the first probe is not known, little is believed.
        """
        known, count = self.known(candidates), len(candidates)
        wide = before(np.zeros(1), [], count)
        if 0 not in known:
            return wide, rungs_of([], validated), []
        points, places = [candidates[place] for place in known], [place for place in known if place < len(probes)]
        past = self._past(points, len(places))
        features = features_of(np.array(probes)[places])
        mine, mean, covariance = before(features, past, len(known)), wide.mean.copy(), wide.covariance.copy()
        mean[known] = mine.mean
        covariance[known], covariance[:, known] = 0.0, 0.0
        covariance[np.ix_(known, known)] = mine.covariance
        return Beliefs(mean, covariance), rungs_of(past, validated), known

    def _past(self, points: list[tuple[str, str]], probes: int) -> list[Past]:
        past = []
        for (head, subset, corpus, _, _), by_point in self.scores.items():
            *seen, test = np.array([by_point[point] for point in points]).T  # [rungs + 1, k]
            past.append(Past.of(f"{corpus} {head} {subset}", np.array(seen), test, probes))
        return past


def read(path: Path, encoder: str, without: str) -> PastTasks:
    """Return the past tasks of an encoder. Args: the dataset that is left out, since its task is to be advised on.

    A point that was not scored at each rung is left out. Raises UserError where the file is not the CSV of a
    progress_table.
    """
    scores: dict = {}
    try:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                values = np.array([float(row[name] or "nan") for name in SCORES])
                if row["encoder"] == encoder and row["corpus"] != without:
                    by_point = scores.setdefault(tuple(row[name] for name in KEY), {})
                    if np.isfinite(values).all():
                        by_point[tuple(row[name] for name in POINT)] = values
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise UserError(f"{path} has no column {error}; past tasks are the CSV of a progress_table") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{path}: {error}; past tasks are the CSV of a progress_table") from None
    return PastTasks(scores)
