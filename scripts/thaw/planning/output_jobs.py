"""What an experiment shows: the specs of collect, table, figure and report.

Here, and only here, labels and captions enter a spec: a new label draws tables and figures again and trains nothing.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from thaw.core import layout, plugins
from thaw.core.errors import UserError
from thaw.core.steps import STEPS
from thaw.declarations import citations
from thaw.declarations.outputs import step_of
from thaw.declarations.task_types import PAIR_TYPES
from thaw.planning.output_requirements import OutputContext, additions, missing
from thaw.planning.run_plan import TRIAL, Need, Planned, RunPlan, named_points, pair_views
from thaw.schema.by_kind import OutputConfig
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.schema.experiment import RUN_BASELINES, ExperimentConfig
from thaw.schema.strategy import StrategyConfig

TEACHES = ("teacher", "live_teacher")  # roles
OF_PROBES = {"unscored_labels"}  # always empty in tasks of a report; as a new key it would make every report again


def specs(
    context: OutputContext,
    baselines: list[tuple[str, RunPlan]],
    extras: list[tuple[str, str]],
    digests: str,
    left_out: list[str],
) -> Iterator[tuple[str, str, dict]]:
    """Yield (step, key, spec) of an experiment's collect, tables, figures and report.

    Args: the experiment with all that was planned for it; the runs that are shown as baselines, with their names; step
    and key of each result that is no run; digests, the digest over all runs' specs, so that outputs follow them;
    left_out, sentences on what an experiment lacks that was cut to what is there: the outputs are added that cannot be
    drawn of it. Of any other experiment such an output is a UserError.
    """
    experiment, catalogue = context.experiment, context.catalogue
    name = experiment.experiment
    collect = {"version": STEPS["collect"].version, "experiment": name, "digest": digests}
    collect |= {"tasks": _tasks(experiment, catalogue), "results": results(context, baselines, extras)}
    collect |= {"own_splits": own} if (own := _own_splits(experiment, catalogue)) else {}
    yield "collect", name, collect
    labels = _labels(experiment, catalogue, context.selected)
    shown = {"labels": labels, "order": _order(context), "digest": digests}
    encoders = {name: catalogue.get("encoders", name, "encoders") for name in experiment.encoders}
    notes = {name: note for name, entry in encoders.items() if (note := entry.footnote)}
    shown |= {"title": experiment.title, "notes": notes, **_start_tasks(context)}
    outputs, together = [], {}
    for output in experiment.outputs:
        entry: OutputConfig = catalogue.get("outputs", output, "outputs")
        if reason := missing(entry, context):
            if not (experiment.optional or experiment.optional_tasks):
                raise UserError(f"{experiment.place('outputs', item=output)}: {output} cannot be drawn: {reason}")
            left_out.append(f"Output {output} was left out: {reason}.")
            continue
        step = step_of(entry.kind)
        options = entry.model_dump(mode="json", exclude_none=True) | {"id": output} | additions(entry, context)
        if "first_draws" in options:
            together = {"first_draws": options["first_draws"]}
        outputs.append({key: options.get(key, output) for key in ("id", "kind", "caption", "label")} | {"step": step})
        subsets = labels["subsets"] | _draws_named(options.get("first_draws", {}), catalogue)
        named = {"labels": labels | {"subsets": subsets}}
        yield step, f"{name}/{output}", {"version": STEPS[step].version, **options, **shown, **named}
    report: dict = {"version": STEPS["report"].version, "experiment": name, "outputs": outputs, **shown}
    report["preparatory"] = len(context.selected) + len(baselines) - len(context.runs)
    said = {"left_out": list(left_out)} if left_out else {}
    if together:
        together["draw_labels"] = _draws_named(together["first_draws"], catalogue)
    yield "report", name, report | together | _methods(experiment, catalogue) | said


def _tasks(experiment: ExperimentConfig, catalogue: Catalogue) -> dict[str, dict]:
    keys = ("corpus", "type", "metrics", "validation", "test")
    entries = {name: catalogue.get("tasks", name, "tasks") for name in experiment.tasks}
    return {name: {key: getattr(entry, key) for key in keys} for name, entry in entries.items()}


def _own_splits(experiment: ExperimentConfig, catalogue: Catalogue) -> dict[str, dict]:
    entries = {name: catalogue.get("subsets", name, "subsets") for name in experiment.subsets}
    return {name: spec_of(entry) for name, entry in entries.items() if entry.validation or entry.reserved}


def _order(context: OutputContext) -> dict:
    """Return tasks and strategies in the experiment's own order, over all its encoders."""
    strategies = []
    for encoder in context.experiment.encoders:
        points = context.planner.shown_points[encoder]
        strategies += [point for point in points if point not in strategies]
    return {"tasks": context.experiment.tasks, "strategies": strategies}


def _labels(experiment: ExperimentConfig, catalogue: Catalogue, runs: list[RunPlan]) -> dict:
    """Return the display names of all that the experiment selects or starts from; without one, the id."""
    strategies = dict.fromkeys(run.strategy for run in runs)
    transfer = [other.task for name in experiment.tasks for other in catalogue.get("tasks", name, "tasks").also]
    tasks = dict.fromkeys([*experiment.tasks, *experiment.probe_tasks, *transfer])
    sets = [name for name in experiment.heads if name in catalogue.ids("head_sets")]
    heads = [name for name in experiment.heads if name not in sets]
    chosen = {"tasks": tasks, "encoders": experiment.encoders, "heads": heads, "head_sets": sets}
    chosen |= {"subsets": experiment.subsets, "strategies": strategies}
    labels = {
        block: {name: catalogue.get(block, name, block).label or name for name in names}
        for block, names in chosen.items()
    }
    labels["heads"] |= labels.pop("head_sets")
    metrics = [word for name in experiment.tasks for word in catalogue.get("tasks", name, "tasks").metrics]
    own = {
        word: plugins.parse_plugin(word).stated("label", word.partition(":")[2])
        for word in filter(plugins.is_plugin, metrics)
    }
    ensembles = {name: entry.label or name for name, entry in experiment.ensembles.items()}
    return labels | ({"metrics": own} if own else {}) | ({"ensembles": ensembles} if ensembles else {})


def _draws_named(first: dict[str, str], catalogue: Catalogue) -> dict[str, str]:
    """Return for the first of several draws, as which all of them are shown, their rows and number, or its own label.

    Args: first, for each subset that is one of several draws, the first of them.
    """
    named = {}
    for subset in dict.fromkeys(first.values()):
        entry, many = catalogue.get("subsets", subset, "subsets"), list(first.values()).count(subset)
        named[subset] = entry.label or f"{entry.in_print} rows, {many} draws"
    return named


def _start_tasks(context: OutputContext) -> dict:
    """Return for strategies that start from a run on one of the tasks which that is: they are not run on it."""
    starts = {
        id: context.catalogue.get("strategies", id, "strategies").start
        for id in dict.fromkeys(run.strategy for run in context.selected)
    }
    tasks = {id: start.task for id, start in starts.items() if start and start.task in context.experiment.tasks}
    return {"start_tasks": tasks} if tasks else {}


def _with_sources(ids: Iterable[str], catalogue: Catalogue) -> dict[str, StrategyConfig]:
    """Return strategies by id, and after them those that they start from or take the result of a search from."""
    waiting, entries = list(ids), {}
    while waiting:
        id = waiting.pop(0)
        if id not in entries:
            entry = entries[id] = catalogue.get("strategies", id, "strategies")
            waiting += [*(other for other, _ in entry.needed.values()), *filter(None, [entry.rates_from])]
    return entries


def _stated(block: str, ids: Iterable[str], catalogue: Catalogue) -> dict:
    """Return entries by id as plain values, without those that are the default."""
    return {id: catalogue.get(block, id, block).model_dump(mode="json", exclude_defaults=True) for id in ids}


def _methods(experiment: ExperimentConfig, catalogue: Catalogue) -> dict:
    """Return what the report says of tasks, subsets, encoders, heads and strategies: their settings in full."""
    methods: dict = {}
    names = {"tasks": experiment.tasks, "subsets": experiment.subsets, "encoders": experiment.encoders}
    for block, ids in names.items():
        entries = {name: catalogue.get(block, name, block) for name in ids}
        methods[block] = {name: entry.model_dump(mode="json", exclude=OF_PROBES) for name, entry in entries.items()}
    strategies = _with_sources([named_points(item)[0] for item in experiment.strategies], catalogue)
    corpora = dict.fromkeys(catalogue.get("tasks", name, "tasks").corpus for name in experiment.tasks)
    entries = {name: catalogue.get("corpora", name, "corpora") for name in corpora}
    methods["corpora"] = {
        name: entry.model_dump(include={"label", "licence", "cite"}) for name, entry in entries.items()
    }
    types = {catalogue.get("tasks", name, "tasks").type for name in experiment.tasks}
    served = [catalogue.head(name, task_type) for name in experiment.heads for task_type in sorted(types)]
    methods["heads"] = _stated("heads", list(dict.fromkeys(entry[0] for entry in served if entry)), catalogue)
    widths = {catalogue.get("encoders", name, "encoders").width for name in experiment.encoders}
    methods["strategies"] = {
        id: (entry.at_width(*widths) if len(widths) == 1 else entry).model_dump(mode="json", exclude_defaults=True)
        for id, entry in strategies.items()
    }
    methods |= {"search_seeds": experiment.search_seeds} if experiment.search_seeds else {}
    tasks = [catalogue.get("tasks", name, "tasks") for name in experiment.tasks]
    models = [catalogue.get("encoders", name, "encoders") for name in experiment.encoders]
    cited = [entry.cite for entry in (*entries.values(), *models, *strategies.values())]
    metrics = [metric for task in tasks for metric in task.metrics]
    methods["references"] = bibliography(catalogue, metrics, cited)
    further = dict.fromkeys(entry.origin for entry in strategies.values() if entry.origin)
    methods |= {"further_pretraining": _stated("further_pretraining", further, catalogue)} if further else {}
    settings = {"store": experiment.store, "compute": experiment.compute}
    return methods | {name: value.model_dump(mode="json") for name, value in settings.items()}


FILE = "references.bib"
# of a BibTeX file whose entries begin at the start of a line
ENTRY = re.compile(r"^@\w+\{([^,\s]+),.*?(?=^@|\Z)", re.MULTILINE | re.DOTALL)


def bibliography(catalogue: Catalogue, metrics: Iterable[str], cited: Iterable[list[str]]) -> dict[str, str]:
    """Return {key: BibTeX entry} of what is cited and has an entry, in order; a key without one is left out.

    Args: metrics of the tasks; the keys of each catalogue entry that the experiment uses.
    """
    keys = [key for some in cited for key in some]
    keys += [citations.METRICS[metric] for metric in metrics if metric in citations.METRICS]
    keys += [*citations.OPTIMIZERS.values(), citations.TESTS, *citations.SOFTWARE]
    known: dict = {}
    for folder in catalogue.folders:
        path = Path(folder, FILE)
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        known |= {match[1]: match[0].strip() for match in ENTRY.finditer(text)}
    return {key: known[key] for key in dict.fromkeys(keys) if key in known}


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
    for need in _needed_of_task(run, run.task):
        entry = {"role": need.role, "step": need.of.step, "names": need.of.names}
        entries += [entry] if need.role != TRIAL and entry not in entries else []
    return entries


def _needed_of_task(of: Planned, task: str) -> Iterator[Need]:
    """Yield what a run needs for its own task: of a training of several each task pays for its own teacher alone."""
    for need in of.needs:
        if not (isinstance(of, RunPlan) and need.role in TEACHES and (need.task or of.task) != task):
            yield from _needed_of_task(need.of, need.of.task if need.role == "start" else task)  # type: ignore[union-attr]
            yield need
