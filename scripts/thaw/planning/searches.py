"""Searches: which step chooses among the trials of a run, and the spec of that choice. No torch."""

from dataclasses import replace

from thaw.core.versions import VERSIONS
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_plan import RunPlan
from thaw.schema.catalogue import Catalogue


def search_step(run: RunPlan) -> str:
    """Return the step that chooses among a run's trials; those of heads that are fitted it trains, side by side."""
    return "search_heads" if run.trials[0].step == "fit_heads" else "select"


def grid(run: RunPlan, catalogue: Catalogue) -> list[dict]:
    """Return the settings of each trial."""
    return catalogue.get("strategies", run.trials[0].strategy, "strategies").search.trials()


def heads_spec(run: RunPlan, planner: RunPlanner) -> dict:
    """Return the spec of a choice for which the trials are trained, but for the digests of what was made before it."""
    spec = planner.spec(replace(run.trials[0], settings={})) | {"version": VERSIONS["search_heads"]}
    seeds = sorted({trial.seed for trial in run.trials})
    return {key: spec[key] for key in spec.keys() - {"seed"}} | {"grid": grid(run, planner.catalogue), "seeds": seeds}


def trials_spec(run: RunPlan, catalogue: Catalogue, digests: dict[str, str]) -> dict:
    """Return the spec of a choice among trials that are jobs of their own. Args: digests of these, by their key."""
    task = catalogue.get("tasks", run.task, "tasks")
    trials = [{"settings": settings, "runs": {}} for settings in grid(run, catalogue)]
    for trial in run.trials:
        trials[trial.trial - 1]["runs"][str(trial.seed)] = digests[trial.key]
    return {"version": VERSIONS["select"], "task": task_spec(run.task, task), "trials": trials}
