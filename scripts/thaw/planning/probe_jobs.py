"""Probes of an experiment: each probe, task, subset, encoder, and strategy whose runs are probed. No torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from thaw.core import boundaries, layout, plugins
from thaw.core.errors import UserError, suggestion
from thaw.core.steps import STEPS, kind_version
from thaw.declarations.probes import PROBES, ProbeKind, plugin_kind
from thaw.planning import compatibility
from thaw.planning.initial_weights import InitialWeights
from thaw.planning.run_grid import task_spec
from thaw.planning.run_plan import RunPlan, named_points, needed
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of
from thaw.schema.experiment import ExperimentConfig

PRETRAINED = "pretrained"  # the folder of probes on an encoder as it was fetched
# Training rows that a probe may be fitted to: the subset's; as many that no run here has trained on; or none is left.
SUBSET, OUTSIDE, NONE = "subset", "outside", "none"


@dataclass(frozen=True)
class Probed:
    """One probe of one encoder, on one task and subset: as it was pretrained, or as runs left it, one for each seed."""

    task: str
    subset: str
    encoder: str
    probe: str
    rows: str = SUBSET
    runs: tuple[RunPlan, ...] = ()

    @property
    def weights(self) -> InitialWeights:
        """What the encoder was before any run."""
        return self.runs[0].weights if self.runs else InitialWeights(self.encoder)

    @property
    def run(self) -> dict[str, str]:
        """Which runs left the encoder, but for their seeds; nothing for the pretrained one."""
        names = ("task", "head", "strategy", "variant")
        return {name: getattr(self.runs[0], name) for name in names} if self.runs else {}

    @property
    def key(self) -> str:
        names = list(self.run.values()) or [PRETRAINED] + [OUTSIDE] * (self.rows == OUTSIDE)
        own = {"task": self.task, "subset": self.subset, "encoder": self.encoder, "probe": self.probe}
        return layout.key("probe", own | {"of": ".".join(names)})


def probes(experiment: ExperimentConfig, catalogue: Catalogue, runs: list[RunPlan]) -> Iterator[Probed]:
    """Yield the probes that are selected, each on the tasks that it is for and that the encoder serves.

    Args: runs, those whose encoders are probed. Raises UserError for a probe of labels where all tasks are of scores,
    for a layer that an encoder lacks, and for runs that can not be probed.
    """
    _check_adapted(experiment, catalogue, runs)
    for probe in experiment.probes:
        entry = catalogue.get("probes", probe, "probes")
        kind, tasks = kind_of(probe, catalogue), _tasks(probe, experiment, catalogue)
        place = catalogue.place("probes", probe, "kind")
        if not tasks:
            served = kind.serves.format_map(entry.model_dump())
            raise UserError(f"{place}: {entry.kind} is for {served}, and no task here has any")
        if (len(experiment.seeds) if experiment.adapted else 0) < kind.reads.runs:
            raise UserError(
                f"{place}: {entry.kind} compares an encoder with what runs of two seeds made of it; name their "
                "strategies under adapted:, and two seeds"
            )
        adapted = _of_insert(kind.insert, runs, catalogue)
        if kind.of_runs and not adapted:
            what = f"with insert: {kind.insert}" if kind.insert else "that train a layer"
            raise UserError(f"{place}: {entry.kind} reads finished runs; name strategies {what} under adapted:")
        for task, subset, encoder in product(tasks, experiment.subsets, experiment.encoders):
            layers = catalogue.get("encoders", encoder, "encoders").layers
            if beyond := [n for n in entry.layers if n > layers]:
                place = catalogue.place("probes", probe, "layers")
                raise UserError(
                    f"{place}: {encoder} has no layer {beyond[0]}; it has layers 1 to {layers}, and 0 below"
                )
            if compatibility.encoder_serves(catalogue, encoder, task, [["head"]]):
                here = [run for run in adapted if (run.subset, run.encoder) == (subset, encoder)]
                here = [run for run in here if run.task == task or task in experiment.probe_tasks]
                yield from _of_encoder(Probed(task, subset, encoder, probe), here, experiment, catalogue)


def _of_encoder(
    one: Probed, runs: list[RunPlan], experiment: ExperimentConfig, catalogue: Catalogue
) -> Iterator[Probed]:
    """Yield a probe of the pretrained encoder, and of what the runs of each strategy left of it, on the same rows."""
    rows = _rows(one, runs, catalogue)
    cells: dict[str, list[RunPlan]] = {}
    for run in runs:
        cells.setdefault(run.cell, []).append(run)
    if not kind_of(one.probe, catalogue).reads.runs:
        if rows == NONE:
            place = experiment.place("adapted", item=runs[0].strategy)
            raise UserError(
                f"{place}: {runs[0].strategy} has read all of train of {one.task} (subset {one.subset}), so "
                "that no row is left to fit a probe to; name a subset, as n1000_d1, and no strategy with from: or "
                "with another task of that corpus before it"
            )
        if not kind_of(one.probe, catalogue).of_runs:
            yield Probed(one.task, one.subset, one.encoder, one.probe, rows)
    for seeds in cells.values():
        # In the order of the spec's seeds: a run that another needs comes before that one, and not in its own place.
        in_order = sorted(seeds, key=lambda run: experiment.seeds.index(run.seed))
        yield Probed(one.task, one.subset, one.encoder, one.probe, rows, tuple(in_order))


def _of_insert(insert: str | None, runs: list[RunPlan], catalogue: Catalogue) -> list[RunPlan]:
    """Return the runs whose strategy has an insert of a kind; all of them where none is asked for."""
    if insert is None:
        return runs
    phases = {run: catalogue.get("strategies", run.strategy, "strategies").phases for run in runs}
    return [run for run in runs if any(phase.insert and phase.insert.kind == insert for phase in phases[run])]


def _rows(one: Probed, runs: list[RunPlan], catalogue: Catalogue) -> str:
    """Return which training rows of a task no run has trained on, nor any run that it needs."""
    corpus = catalogue.get("tasks", one.task, "tasks").corpus
    trained = {
        (run.task, run.subset)
        for run in _with_needed(runs)
        if catalogue.get("tasks", run.task, "tasks").corpus == corpus
    }
    if not trained:
        return SUBSET
    read_all = catalogue.get("subsets", one.subset, "subsets").in_print == "all"
    read_all |= any(run.weights.corpus == corpus for run in runs)
    return NONE if read_all or trained != {(one.task, one.subset)} else OUTSIDE


def _with_needed(runs: list[RunPlan]) -> Iterator[RunPlan]:
    for run in runs:
        yield run
        yield from (need.of for need in needed(run) if isinstance(need.of, RunPlan))


def _check_adapted(experiment: ExperimentConfig, catalogue: Catalogue, runs: list[RunPlan]) -> None:
    selected = [named_points(item)[0] for item in experiment.strategies]
    for name, _ in map(named_points, experiment.adapted):
        place = experiment.place("adapted", item=name)
        if name not in selected:
            raise UserError(f"{place}: {name} is none of the strategies{suggestion(name, selected)}")
        if name not in {run.strategy for run in runs}:
            raise UserError(f"{place}: no run of {name} here trains a layer, so its encoder is as it was pretrained")
    if experiment.adapted and not experiment.probes:
        raise UserError(f"{experiment.place('adapted')}: says whose encoders are probed, and probes: names no probe")
    for run in runs:
        if run.views != (catalogue.get("tasks", run.task, "tasks").view,):
            place = experiment.place("adapted", item=run.strategy)
            raise UserError(
                f"{place}: {run.strategy} does not read pairs in the task's view, as probes do; leave it out"
            )
    if twice := set(experiment.tasks) & set(experiment.probe_tasks):
        raise UserError(
            f"{experiment.place('probe_tasks', item=min(twice))}: {min(twice)} is among tasks, which probes read anyway"
        )


def kind_of(name: str, catalogue: Catalogue) -> ProbeKind:
    """Return the declaration of an entry's kind; a plugin that cannot serve is a UserError."""
    kind = catalogue.get("probes", name, "probes").kind
    if plugins.is_plugin(kind):
        return plugin_kind(catalogue.own_part("probe", kind, ("probes", name, "kind")))
    return PROBES[kind]


def _tasks(name: str, experiment: ExperimentConfig, catalogue: Catalogue) -> list[str]:
    kind, entry, tasks = kind_of(name, catalogue), catalogue.get("probes", name, "probes"), []
    for task_id in [*experiment.tasks, *experiment.probe_tasks]:
        task = catalogue.get("tasks", task_id, "tasks")
        if kind.is_for(entry, task, catalogue.get("corpora", task.corpus, catalogue.place("tasks", task_id, "corpus"))):
            tasks.append(task_id)
    return tasks


def spec(probed: Probed, experiment: ExperimentConfig, catalogue: Catalogue) -> dict:
    """Return all that a probe's result depends on, but for the digests of what was made before it.

    `of` says which probe it is; `layers` is L; `phases` has where the states of each layer of `read` come from, of the
    encoder as it was pretrained, where those are read.
    """
    task = catalogue.get("tasks", probed.task, "tasks")
    encoder, entry = (
        catalogue.get("encoders", probed.encoder, "encoders"),
        catalogue.get("probes", probed.probe, "probes"),
    )
    stored = experiment.store.boundaries(encoder, catalogue.get("corpora", task.corpus, "corpora"))
    read = sorted({0, *entry.layers}) if entry.layers else list(range(encoder.layers + 1))
    kind = kind_of(probed.probe, catalogue)
    fitted = not kind.reads.runs
    phases = [boundaries.resume_plan(stored, encoder.layers, [n]) for n in read]
    if not fitted and (absent := sorted(set(read) - set(stored))):
        place = experiment.place("store", "max_gib")
        raise UserError(
            f"{place}: {probed.probe} compares all layers as they are stored, and layer {absent[0]} of "
            f"{probed.encoder} on {task.corpus} is over the budget; raise it"
        )
    of = {"task": probed.task, "subset": probed.subset, "encoder": probed.encoder, "probe": probed.probe}
    return {
        "version": STEPS["probe"].version,
        **kind_version("kind_version", kind.version),
        "of": of | ({"run": probed.run} if probed.run else {}),
        "task": task_spec(probed.task, task),
        "subset": spec_of(catalogue.get("subsets", probed.subset, "subsets")),
        **({"rows": probed.rows} if fitted and probed.rows != SUBSET else {}),
        "probe": spec_of(entry, frozenset({"layers"})),
        "layers": encoder.layers,
        "read": read,
        "phases": [] if fitted and probed.runs else phases,
        "seeds": experiment.seeds,
        "compute": spec_of(experiment.compute),
        **plugins.in_spec([*task.metrics, entry.kind]),
    }


def adapted_spec(probed: Probed, experiment: ExperimentConfig, catalogue: Catalogue) -> dict:
    """Return what the hidden states of an adapted encoder depend on, but for digests: rows, layers, how they are kept.

    All layers are kept, and of train the rows alone that a probe may be fitted to.
    """
    task, encoder = catalogue.get("tasks", probed.task, "tasks"), catalogue.get("encoders", probed.encoder, "encoders")
    return {
        "version": STEPS["features_adapted"].version,
        "task": task_spec(probed.task, task),
        "subset": spec_of(catalogue.get("subsets", probed.subset, "subsets")),
        "rows": probed.rows,
        "layers": encoder.layers,
        **experiment.store.states,
        "compute": spec_of(experiment.compute),
    }
