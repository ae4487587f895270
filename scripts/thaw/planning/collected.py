"""The results that an experiment's outputs read, in their order: what `collect` is given, and writes as runs.json."""

from collections.abc import Iterator

from thaw.core import layout
from thaw.declarations.task_types import PAIR_TYPES
from thaw.planning.output_context import OutputContext
from thaw.planning.run_plan import TRIAL, RunPlan, needed, pair_views
from thaw.schema.experiment import RUN_BASELINES

BARE = {"encoder": "", "head": "", "variant": "base", "thawed": 0, "embeddings": False}
EXTRAS = ("baseline", "ensemble")  # steps of results that are no runs


def results(context: OutputContext, baselines: list[tuple[str, RunPlan]], extras: list[tuple[str, str]]) -> list[dict]:
    """Return each result as (step, names, row, stores, needs), as `outputs.frame.collection` reads them.

    Args: the runs that are shown as baselines, with their names; step and key of each result that is no run.
    """
    made = {step: [_extra(step, key) for of, key in extras if of == step] for step in EXTRAS}
    cells = list(dict.fromkeys((name, run.encoder) for name, run in baselines))
    by_cell = sorted(baselines, key=lambda one: (cells.index((one[0], one[1].encoder)), *_place(one[1], context)))
    shown = [_baseline(name, run, context) for name, run in by_cell]
    return [*made["baseline"], *shown, *_runs(context), *made["ensemble"]]


def _extra(step: str, key: str) -> dict:
    names = layout.names_in_key(step, key)
    row = {"subset": "all"} | names | BARE | {"kind": step, "strategy": names[step]}
    return {"step": step, "names": names, "row": {name: value for name, value in row.items() if name != step}}


def _place(run: RunPlan, context: OutputContext) -> tuple[int, ...]:
    """Return where a run is among those of its point: the experiment's order of tasks, subsets, heads and seeds."""
    chosen = context.experiment
    heads = chosen.heads.index(run.head) if run.head in chosen.heads else 0
    return chosen.tasks.index(run.task), chosen.subsets.index(run.subset), heads, chosen.seeds.index(run.seed)


def _baseline(name: str, run: RunPlan, context: OutputContext) -> dict:
    own = BARE | {"kind": "baseline", "encoder": run.encoder.removesuffix(RUN_BASELINES[name][2]), "strategy": name}
    return _run(run, context, run.pairs, run.encoder) | {"row": _row(run, context, run.pairs, run.encoder) | own}


def _runs(context: OutputContext) -> Iterator[dict]:
    """Yield the runs that are shown, by encoder and point of a strategy."""
    points: dict[tuple, list[RunPlan]] = {}
    for run in context.runs:
        points.setdefault((run.encoder, run.strategy, run.variant), []).append(run)
    for encoder in context.experiment.encoders:
        for point in context.planner.shown_points[encoder]:
            runs = sorted(points.get((encoder, *point), []), key=lambda run: _place(run, context))
            thawed, embeddings = context.planner.thawed(runs[0]) if runs else (0, False)
            facts = {"kind": "run", "thawed": thawed, "embeddings": embeddings}
            for run in runs:
                row = _row(run, context, run.read_as, run.weights.key) | facts
                yield _run(run, context, run.read_as, run.weights.key) | {"row": row, "needs": _needs(run)}


def _row(run: RunPlan, context: OutputContext, pairs: str, weights: str) -> dict:
    """Return the columns of a run that the plan alone decides."""
    task = context.catalogue.get("tasks", run.task, "tasks")
    return run.names | {"weights": weights, "pairs": pairs if task.type in PAIR_TYPES else ""}


def _run(run: RunPlan, context: OutputContext, pairs: str, weights: str) -> dict:
    """Return where a run and the stores that it may read are, by how pairs are read in them."""
    task = context.catalogue.get("tasks", run.task, "tasks")
    views = {name: pair_views(task, name)[0] for name in ("joint", "separate") if pairs in (name, "best")}
    place = {"weights": weights, "corpus": task.corpus}
    stores = {name: layout.folder("features", place | {"view": view}) for name, view in views.items()}
    return {"step": "train", "names": run.names, "stores": stores}


def _needs(run: RunPlan) -> list[dict]:
    """Return what a run needs, directly or not: role, step and names. Trials of a search are left out."""
    entries: list[dict] = []
    for need in needed(run):
        entry = {"role": need.role, "step": need.of.step, "names": need.of.names}
        entries += [entry] if need.role != TRIAL and entry not in entries else []
    return entries
