"""What a recommendation chooses from: the strategies of a group with their scores on validation, and baselines."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thaw.outputs import wording
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.runs_frame import CELL, of_cell
from thaw.statistics.bootstrap import Resampled
from thaw.statistics.non_inferiority import Candidate, any_above, not_exceeded

ALONE, SHARED, INFERENCE = "seconds_alone", "seconds_shared", "inference_flops"
WAITING = f"{wording.NOT_RUN}: budget"
MAJORITY = "majority"
WITHOUT_TRAINING = ("bag_of_words", "cosine")  # baselines that cost nothing next to an encoder


@dataclass(frozen=True)
class StrategyCandidate(Candidate):
    """A strategy at a point of its sweep as a candidate, with its row of the summary of runs."""

    row: object


@dataclass(frozen=True)
class Choice:
    """The candidates of a task in one group of runs, what they are compared with, and what opens test for them.

    baselines: those of the experiment that train no encoder, as candidates without costs.
    """

    candidates: list[StrategyCandidate]
    baselines: list[Candidate]
    runs: object
    predictions: PredictionFiles

    @cached_property
    def refused(self) -> str:
        """Why no strategy can be recommended, whatever the number of seeds; empty where one can.

        One has to be above every baseline that trains no encoder, as for `thaw advise`, and above the majority class
        for sure. The latter is asked of a recommendation alone, which needs several seeds: `thaw advise` has one, and
        says with what it takes whether that is shown.
        """
        not_below = not_exceeded(self.baselines, self.candidates)
        reasons = [none_above(one) for one in not_below]
        said = [one.name for one in not_below]
        for one in self.baselines:
            if one.name == MAJORITY and MAJORITY not in said and not any_above(self.candidates, one):
                reasons.append(f"no strategy is shown to be above {_printed(one)}")
        return f"on validation {wording.listing(reasons)}" if reasons else ""

    def on_test(
        self, candidate: StrategyCandidate, split: str, less: StrategyCandidate | None = None
    ) -> Resampled | None:
        """Return the test score of a candidate x 100, or its difference to another one, over the seeds of both.

        None where the score of a seed is undefined on test, which validation does not know.
        """
        cells = [one for one in (candidate, less) if one is not None]
        terms = [(times, self._rows(one, split)) for times, one in zip((100.0, -100.0), cells, strict=False)]
        if any(len(rows) < len(candidate.seeds) for _, rows in terms):
            return None
        return self.predictions.resampled(terms, terms[0][1]["metric"].iloc[0], split)

    def _rows(self, candidate: StrategyCandidate, split: str):
        rows = of_cell(self.runs, [getattr(candidate.row, name) for name in CELL])
        rows = rows[(rows["split"] == split) & rows["seed"].isin(candidate.seeds)]
        return rows.sort_values("seed")


def choice(summary, runs, group: tuple, task: str, split: str, predictions: PredictionFiles) -> Choice | None:
    """Return what there is to choose from on a task, over the seeds that all strategies share; None without any.

    A strategy that lacks a seed is left out, unless only the time budget stopped it, and one whose score is undefined
    on validation. Args: a summary of the group's runs on test; runs as `read_runs` returns them; the group (subset,
    encoder, head); a test split of the task.
    """
    chosen = summary[(summary["task"] == task) & (summary["split"] == split)]
    own = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & (runs["missing"] == "")]
    kept = []
    for row in chosen.itertuples():
        mine = of_cell(own, [getattr(row, name) for name in CELL])
        validated = mine[mine["role"] == "validation"]
        gone = row.missing and not _waits(runs, row)
        if not (gone or validated.empty or validated["value"].isna().any()):
            kept.append((row, validated))
    shared = set.intersection(*(set(validated["seed"]) for _, validated in kept)) if kept else set()
    if not shared:
        return None
    counted = all(row.inference > 0 for row, _ in kept)  # not so in results from before predictions were counted
    candidates = [_candidate(row, validated, shared, predictions, counted) for row, validated in kept]
    return Choice(candidates, _baselines(runs, group, task, predictions), own[own["value"].notna()], predictions)


def none_above(baseline: Candidate) -> str:
    """Return the sentence, without its split, that no strategy is above a baseline."""
    return f"no strategy is above {_printed(baseline)}"


def _printed(baseline: Candidate) -> str:
    return f"{wording.baseline(baseline.name)} ({wording.number(baseline.validation)})"


def _waits(runs, row) -> bool:
    """Tell whether only the time budget kept a cell from having all seeds."""
    reasons = of_cell(runs, [getattr(row, name) for name in CELL])["missing"]
    return bool(reasons[reasons != ""].str.startswith(WAITING).all())


def _candidate(row, validated, seeds: set, predictions: PredictionFiles, counted: bool) -> StrategyCandidate:
    """Return a strategy with its scores of some seeds.

    Args: its rows on validation; whether of all strategies it is known what a prediction costs.
    """
    validated = validated[validated["seed"].isin(seeds)].sort_values("seed")
    searched = row.search if row.search == row.search else 0.0  # unknown in older tables of runs
    costs = {ALONE: row.seconds_alone + searched, SHARED: row.seconds + searched}
    costs |= {"memory_mb": row.memory, "trained_parameters": row.parameters}
    costs |= {INFERENCE: row.inference} if counted else {}
    one = run_candidate(f"{row.strategy} {row.variant}", validated, predictions)
    return StrategyCandidate(**vars(one) | {"costs": costs, "row": row})


def _baselines(runs, group: tuple, task: str, predictions: PredictionFiles) -> list[Candidate]:
    """Return the baselines of a task that train no encoder, with one score for all seeds, that over draws."""
    subset, encoder, _ = group
    rows = runs[(runs["kind"] == "baseline") & runs["main"].astype(bool) & (runs["role"] == "validation")]
    rows = rows[(rows["task"] == task) & (rows["subset"] == subset) & rows["encoder"].isin(["", encoder])]
    known = rows[rows["strategy"].isin([MAJORITY, *WITHOUT_TRAINING]) & (rows["missing"] == "")]
    return [baseline_candidate(name, own, predictions) for name, own in known.groupby("strategy", sort=False)]


def run_candidate(name: str, validated, predictions: PredictionFiles) -> Candidate:
    """Return runs that differ in their seed alone as a candidate without costs.

    Args: its name; their rows of runs.csv on validation.
    """
    metric, split = validated["metric"].iloc[0], validated["split"].iloc[0]
    by_row = 100 * predictions.by_row(validated, metric, split)
    scores, seeds = 100 * validated["value"].to_numpy(float), tuple(validated["seed"])
    return Candidate(name, scores, by_row, predictions.count(validated, split), {}, seeds)


def baseline_candidate(name: str, validated, predictions: PredictionFiles) -> Candidate:
    """Return a baseline as a candidate with one score for all seeds, where an undefined one counts as 0.

    Args: its name; its rows of runs.csv on validation, one or one for each seed.
    """
    metric, split = validated["metric"].iloc[0], validated["split"].iloc[0]
    by_row = np.nan_to_num(100 * predictions.by_row(validated, metric, split)).mean(0)[None]
    score = np.nan_to_num(100 * validated["value"].to_numpy(float)).mean(keepdims=True)
    return Candidate(name, score, by_row, predictions.count(validated, split), {}, ())
