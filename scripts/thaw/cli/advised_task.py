"""One task of an experiment as the advisor sees it: candidates, what training them costs, and their scores so far."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from thaw.advisor import past_tasks
from thaw.advisor.beliefs import RUNGS
from thaw.advisor.policy import Advisor
from thaw.core.errors import UserError
from thaw.core.files import read_json
from thaw.core.layout import PROGRESS
from thaw.planning.cost_estimate import operations
from thaw.planning.plan import Plan
from thaw.planning.run_plan import RunPlan, needed

GROUP = ("task", "subset", "encoder", "head")
FITTED = "fit_heads"  # the step of probes: fitted to convergence on stored states


@dataclass(frozen=True)
class AdvisedTask:
    """The runs of one task, subset, encoder and head with the first seed, probes before others.

    costs [a]: operations of each, of probes 0, in units of the costliest; start: those of the passes of the frozen
    encoder, which are made in any case.
    """

    plan: Plan
    candidates: tuple[RunPlan, ...]
    costs: np.ndarray
    start: float

    @property
    def name(self) -> str:
        """The task, and what else the experiment has several of."""
        return " ".join(getattr(self.candidates[0], part) for part in GROUP)

    @property
    def probes(self) -> list[int]:
        """The places of the probes."""
        return [place for place, run in enumerate(self.candidates) if run.step == FITTED]

    @property
    def _task(self):
        """The task's entry, with the splits that its subset gives it."""
        run = self.candidates[0]
        task = self.plan.catalogue.get("tasks", run.task, "tasks")
        return self.plan.catalogue.get("subsets", run.subset, "subsets").of_runs(task)

    def advisor(self, price: float, budget: float, past: Path) -> tuple[Advisor, list[str], list[int]]:
        """Return the advisor before any training, after the probes; the past tasks that it knows, of what candidates.

        Past tasks are those of the encoder, but for this one; of other candidates it believes little.
        """
        run, scores = self.candidates[0], [self.score(place) for place in self.probes]
        corpus = self.plan.catalogue.get("tasks", run.task, "tasks").corpus
        tasks = past_tasks.read(past, run.encoder, corpus)
        points = [(one.strategy, one.variant) for one in self.candidates]
        beliefs, rungs, known = tasks.beliefs(points, [score for _, score, _ in scores], scores[0][2])
        return Advisor(self.costs, beliefs, rungs, price, budget, self.start), tasks.tasks if known else [], known

    def score(self, place: int) -> tuple[float, float, int]:
        """Return how far a candidate is trained, its score on validation x 100, and how many rows that is of.

        Of a finished run 1.0 and its record's score; of a paused one what its progress says, and 0 rows; of any other
        0.0, nan and 0.
        """
        run, task = self.candidates[place], self._task
        if self.plan.is_there(run):
            record = read_json(self.plan.table.paths.result(run.folder))
            value = record["scores"][task.validation][task.metrics[0]]
            return 1.0, 100 * (value or 0.0), record["rows"][task.validation]
        paused = _paused(Path(self.plan.results) / run.folder / PROGRESS)
        return (paused["share"], 100 * (paused["validation"] or 0.0), 0) if paused else (0.0, float("nan"), 0)

    def tested(self, place: int) -> dict[str, float]:
        """Return the finished candidate's main score x 100 by test split."""
        run, task = self.candidates[place], self._task
        scores = read_json(self.plan.table.paths.result(run.folder))["scores"]
        return {split: 100 * (scores[split][task.metrics[0]] or 0.0) for split in task.test}


def advised_tasks(plan: Plan, experiment: str) -> list[AdvisedTask]:
    """Return the tasks of an experiment with their candidates.

    Raises UserError where one has no probe to compare with, or nothing to train.
    """
    groups: dict[tuple, list[RunPlan]] = {}
    first = plan.experiments[0].seeds[0]
    for run in plan.runs[experiment]:
        if not run.trial and run.seed == first:
            groups.setdefault(tuple(getattr(run, name) for name in GROUP), []).append(run)
    heads = plan.experiments[0].heads  # a baseline has a head of its own, and is no candidate
    return [_task(plan, runs) for (*_, head), runs in groups.items() if head in heads]


def _task(plan: Plan, runs: list[RunPlan]) -> AdvisedTask:
    ordered = tuple(sorted(runs, key=lambda run: run.step != FITTED))
    trained = [run for run in ordered if run.step != FITTED]
    if ordered[0].step != FITTED or not trained:
        needs = "a strategy that fits a head on the frozen encoder, as frozen, and one that trains more, as full"
        raise UserError(f"thaw advise needs {needs}; strategies has {', '.join(run.strategy for run in ordered)}")
    jobs = {run: [*(need.of for need in needed(run)), run] for run in trained}
    work = {run: sum(operations(plan, one.step, one.key) for one in several) for run, several in jobs.items()}
    most = max(work.values()) or 1.0
    tokens = {file for run in ordered for file in plan.job(run.step, run.key).inputs["tokens"]}
    passes = sum(operations(plan, "features", plan.table.paths.store_of(file)) for file in tokens)
    return AdvisedTask(plan, ordered, np.array([work.get(run, 0.0) / most for run in ordered]), passes / most)


def rung_reached(share: float) -> int | None:
    """Return the highest rung that a share of the updates has reached; None below the first."""
    reached = [rung for rung, least in enumerate(RUNGS) if share >= least - 1e-9]
    return reached[-1] if reached else None


def _paused(progress: Path) -> dict | None:
    """Return what a run's progress says of its pause, None where it has none."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(progress, "np") as file:
            return json.loads(file.metadata()["state"]).get("paused")
    except (SafetensorError, OSError, ValueError, KeyError, TypeError):
        return None
