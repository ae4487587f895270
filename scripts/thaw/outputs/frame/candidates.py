"""What a recommendation chooses from: the strategies of a group with their scores on validation, and baselines."""

from dataclasses import dataclass

import numpy as np

from thaw.outputs import wording
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import CELL, of_cell
from thaw.statistics.bootstrap import Resampled
from thaw.statistics.non_inferiority import Candidate, any_above, highest

ALONE, SHARED, INFERENCE = "seconds_alone", "seconds_shared", "inference_flops"
WAITING = f"{wording.NOT_RUN}: budget"
MAJORITY = "majority"
WITHOUT_TRAINING = ("bag_of_words", "cosine")  # baselines that cost nothing next to an encoder


@dataclass(frozen=True)
class Choice:
    """The candidates of a task in one group of runs, what they are compared with, and what opens test for them.

    majority: as a candidate without costs, None where the experiment has none; ahead: name and score on validation of
    each baseline without an encoder's training that is above every strategy.
    """

    candidates: list[Candidate]
    majority: Candidate | None
    ahead: list[tuple[str, float]]
    runs: object
    predictions: PredictionFiles

    @property
    def above_majority(self) -> bool:
        """Whether some strategy is above the majority class for sure; True where there is no such baseline."""
        return self.majority is None or any_above(self.candidates, self.majority)

    def on_test(self, candidate: Candidate, split: str, less: Candidate | None = None) -> Resampled:
        """Return the test score of a candidate x 100, or its difference to another one, over the seeds of both."""
        cells = [one for one in (candidate, less) if one is not None]
        terms = [(times, self._rows(one, split)) for times, one in zip((100.0, -100.0), cells, strict=False)]
        return self.predictions.resampled(terms, terms[0][1]["metric"].iloc[0], split)

    def _rows(self, candidate: Candidate, split: str):
        rows = of_cell(self.runs, [getattr(candidate.row, name) for name in CELL])
        rows = rows[(rows["split"] == split) & rows["seed"].isin(candidate.seeds)]
        return rows.sort_values("seed")


def choice(summary, runs, group: tuple, task: str, split: str, predictions: PredictionFiles) -> Choice | None:
    """Return what there is to choose from on a task, over the seeds that all strategies share; None without any.

    A strategy that lacks a seed is left out, unless only the time budget stopped it. Args: a summary of the group's
    runs on test; runs as `read_runs` returns them; the group (subset, encoder, head); a test split of the task.
    """
    chosen = summary[(summary["task"] == task) & (summary["split"] == split)]
    own = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & runs["value"].notna()]
    kept = []
    for row in chosen.itertuples():
        mine = of_cell(own, [getattr(row, name) for name in CELL])
        tested, validated = mine[mine["split"] == split], mine[mine["role"] == "validation"]
        gone = row.missing and not _waits(runs, row)
        if not (gone or row.undefined or len(tested) != len(validated) or tested.empty):
            kept.append((row, validated))
    shared = set.intersection(*(set(validated["seed"]) for _, validated in kept)) if kept else set()
    if not shared:
        return None
    counted = all(row.inference > 0 for row, _ in kept)  # not so in results from before predictions were counted
    candidates = [_candidate(row, validated, shared, predictions, counted) for row, validated in kept]
    baselines = _baselines(runs, group, task, predictions)
    best = highest(candidates).validation
    ahead = [(wording.BASELINE_LABELS[name], one.validation) for name, one in baselines.items() if name != MAJORITY]
    ahead = sorted((entry for entry in ahead if entry[1] > best), key=lambda entry: -entry[1])
    return Choice(candidates, baselines.get(MAJORITY), ahead, own, predictions)


def _waits(runs, row) -> bool:
    """Tell whether only the time budget kept a cell from having all seeds."""
    reasons = of_cell(runs, [getattr(row, name) for name in CELL])["missing"]
    return bool(reasons[reasons != ""].str.startswith(WAITING).all())


def _candidate(row, validated, seeds: set, predictions: PredictionFiles, counted: bool) -> Candidate:
    """Return a strategy with its scores of some seeds.

    Args: its rows on validation; whether of all strategies it is known what a prediction costs.
    """
    validated = validated[validated["seed"].isin(seeds)].sort_values("seed")
    metric, split = validated["metric"].iloc[0], validated["split"].iloc[0]
    searched = row.search if row.search == row.search else 0.0  # unknown in older tables of runs
    costs = {ALONE: row.seconds_alone + searched, SHARED: row.seconds + searched}
    costs |= {"memory_mb": row.memory, "trained_parameters": row.parameters}
    costs |= {INFERENCE: row.inference} if counted else {}
    by_row = 100 * predictions.by_row(validated, metric, split)
    count = predictions.count(validated, split)
    return Candidate(row, 100 * validated["value"].to_numpy(float), by_row, count, costs, tuple(sorted(seeds)))


def _baselines(runs, group: tuple, task: str, predictions: PredictionFiles) -> dict[str, Candidate]:
    """Return the baselines of a task that train no encoder, by name, with one score for all seeds, that over draws."""
    subset, encoder, _ = group
    rows = runs[(runs["kind"] == "baseline") & runs["main"].astype(bool) & (runs["role"] == "validation")]
    rows = rows[(rows["task"] == task) & (rows["subset"] == subset) & rows["encoder"].isin(["", encoder])]
    made = {}
    known = rows[rows["strategy"].isin([MAJORITY, *WITHOUT_TRAINING]) & (rows["missing"] == "")]
    for name, own in known.groupby("strategy", sort=False):
        row = next(own.itertuples())
        by_row = np.nan_to_num(100 * predictions.by_row(own, row.metric, row.split))  # undefined counts as 0
        score, by_row = np.nan_to_num(100 * own["value"].to_numpy(float)).mean(keepdims=True), by_row.mean(0)[None]
        made[name] = Candidate(row, score, by_row, predictions.count(own, row.split), {}, ())
    return made
