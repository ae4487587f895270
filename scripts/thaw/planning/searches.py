"""Searches: the spec of a choice among trials, and a warning of seeds that chose and are reported. No torch."""

from collections.abc import Mapping
from dataclasses import replace

from thaw.core.steps import STEPS
from thaw.planning.run_grid import RunPlanner, task_spec
from thaw.planning.run_plan import SearchPlan, named_points
from thaw.planning.run_specs import run_spec, spec_of_cell
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.schema.experiment import ExperimentConfig


def heads_spec(search: SearchPlan, planner: RunPlanner) -> dict:
    """Return the spec of a choice for which the trials are trained, but for the digests of what was made before it."""
    base = replace(search.trials[0], settings={})
    spec = run_spec(planner, base, spec_of_cell(planner, base)) | {"version": STEPS["search_heads"].version}
    seeds = sorted({trial.seed for trial in search.trials})
    kept = {key: spec[key] for key in spec.keys() - {"seed"}}
    return kept | {"grid": list(search.grid), "seeds": seeds} | _penalty(search)


def _penalty(search: SearchPlan) -> dict:
    """Return what a spec says of the penalty of a search; nothing where it has none."""
    return {"penalty": search.penalty} if search.penalty else {}


def trials_spec(search: SearchPlan, catalogue: Catalogue, digests: Mapping[str, str]) -> dict:
    """Return the spec of a choice among trials that are jobs of their own. Args: digests of these, by their key."""
    name = search.trials[0].task
    trials = [{"settings": settings, "runs": {}} for settings in search.grid]
    for trial in search.trials:
        trials[trial.trial - 1]["runs"][str(trial.seed)] = digests[trial.key]
    task = task_spec(name, catalogue.get("tasks", name, "tasks"))
    subset = catalogue.get("subsets", search.trials[0].subset, "subsets")
    chosen_on = {"subset": spec_of(subset)} if subset.validation else {}
    return {"version": STEPS["select"].version, "task": task, **chosen_on, "trials": trials, **_penalty(search)}


def reported_seeds(experiment: ExperimentConfig, catalogue: Catalogue) -> list[str]:
    """Return a warning for each strategy whose search uses a seed that is reported too."""
    warnings = []
    for name, _ in map(named_points, experiment.strategies):
        one = catalogue.get("strategies", name, "strategies")
        search = one.search or (one.rates_from and catalogue.get("strategies", one.rates_from, "strategies").search)
        both = sorted(set(search.seeds[: experiment.search_seeds]) & set(experiment.seeds)) if search else []
        warnings += [
            f"Warning: {one.label or name} is searched with seed {seed}, which this experiment reports too: what chose "
            "the settings is then part of the result; search with other seeds, as seeds: [101]."
            for seed in both[:1]
        ]
    return warnings
