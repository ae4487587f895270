"""What the plan of an output reads, what an experiment must have for it, and what the plan adds to its spec."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from thaw.core.digests import canonical, digest
from thaw.declarations.output_kind import Addition, Requirement
from thaw.declarations.output_options import DrawsOptions, PrintedOptions, ReferenceOptions
from thaw.declarations.outputs import OUTPUTS
from thaw.declarations.probes import PROBES, draws
from thaw.declarations.splits import RESERVED
from thaw.planning.jobs import Job
from thaw.planning.papers import printed_tables
from thaw.planning.run_grid import RunPlanner
from thaw.planning.run_plan import RunPlan, named_points, variant_at
from thaw.schema.by_kind import OutputConfig
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import SubsetConfig
from thaw.schema.entry import spec_of
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.reference import FindingConfig, TermConfig


@dataclass(frozen=True)
class OutputContext:
    """An experiment, the catalogues, its runs, from which kind of source each corpus comes, its probes' jobs.

    selected: the runs that it shows, and those that are there because these need them. merged: the digests of merges by
    key.
    """

    experiment: ExperimentConfig
    catalogue: Catalogue
    planner: RunPlanner
    selected: list[RunPlan]
    origins: dict[str, str]
    probed: list[Job]
    merged: Mapping[str, str]

    @cached_property
    def cells(self) -> dict[tuple[str, str, str, str], list[RunPlan]]:
        """The runs that are shown, without trials and what others start from, by (task, subset, encoder, head)."""
        by_cell: dict[tuple, list[RunPlan]] = {}
        for run in self.selected:
            if self.planner.is_shown(run):
                by_cell.setdefault((run.task, run.subset, run.encoder, run.head), []).append(run)
        return by_cell

    @cached_property
    def runs(self) -> list[RunPlan]:
        """The runs that tables and figures show, and none that only others need."""
        return [run for runs in self.cells.values() for run in runs]

    def students(self, run: RunPlan) -> tuple[int | None, str]:
        """Return the layers of a run's student, None for no student, and the strategy of its teacher, if it has one."""
        strategy, shape = self.planner.strategy(run), self.planner.shape(run)
        if shape is None and strategy.teacher is None:
            return None, ""
        layers = len(shape.layers) if shape else self.planner.layers(run.encoder)
        return layers, strategy.teaching.strategy if strategy.teaching else ""

    def partner(self, run: RunPlan) -> dict[str, str] | None:
        """Return the one other task that a run is trained with, or after; None where there is none, or several."""
        strategy = self.planner.strategy(run)
        if (start := strategy.start) and start.task:
            return {"source": start.task, "subset": start.subset, "way": "first"}
        several = strategy.multi_task
        others = {*several.of_run(run.task)} - {run.task} if several and several.own != "left_out" else set()
        return {"source": others.pop(), "way": "together"} if len(others) == 1 else None


def missing(entry: OutputConfig, context: OutputContext) -> str:
    """Return what an experiment lacks for an output; empty where it can be drawn."""
    if lacking := next((need for need in OUTPUTS[entry.kind].needs if not HOLDS[need](entry, context)), None):
        named = dict.fromkeys(filter(None, (getattr(entry, key, None) for key in ("reference", "start"))))
        drawn = [kind for kind in PROBES if draws(entry.kind, kind)]
        words = {"{named}": " and ".join(named), "{probes}": ", ".join(drawn)}
        said = str(lacking.value)
        for word, text in words.items():
            said = said.replace(word, text)
        return f"it needs {said}"
    unreserved = [name for name, subset in _subsets(context).items() if not subset.reserved]
    if getattr(entry, "split", "") == RESERVED and unreserved:
        return f"it needs subsets with reserved rows, as n1000_r1, and {unreserved[0]} has none"
    return ""


def _subsets(context: OutputContext) -> dict[str, SubsetConfig]:
    return {name: context.catalogue.get("subsets", name, "subsets") for name in context.experiment.subsets}


def _named(block: str, context: OutputContext) -> list:
    return [context.catalogue.get(block, name, block) for name in getattr(context.experiment, block)]


def _full_and(other: Callable[[RunPlan, OutputContext], bool]) -> Callable[[ReferenceOptions, OutputContext], bool]:
    """Return whether runs of the full model and runs that pass a test are on one task, with one encoder and head."""

    def holds(entry: ReferenceOptions, context: OutputContext) -> bool:
        start, whole = getattr(entry, "start", None), (entry.reference, "base")
        if start and start not in [named_points(item)[0] for item in context.experiment.strategies]:
            return False
        cells = [
            [run for run in runs if (run.strategy, run.variant) != whole and run.strategy != start]
            for runs in context.cells.values()
            if any((run.strategy, run.variant) == whole for run in runs)
        ]
        return any(other(run, context) for runs in cells for run in runs)

    return holds


CLAIMS = "findings"


def claims_for_spec(experiment: ExperimentConfig, catalogue: Catalogue, runs: list[RunPlan]) -> list[dict]:
    """Return what the spec of a table of findings says: for each claim and encoder the tests, or why there is none.

    Encoders with random weights are left out, and a claim none of whose strategies the experiment has. A test is {task,
    metric, split, terms}, a term [times, head, strategy, variant].
    """
    present = {(r.task, r.encoder, r.head, r.strategy, r.variant) for r in runs if not r.trial}
    strategies = {key[3] for key in present}
    entries = {name: catalogue.get("encoders", name, CLAIMS) for name in experiment.encoders}
    claims, trained = [], [name for name, entry in entries.items() if entry.weights != "random"]
    for name in catalogue.ids(CLAIMS):
        finding = catalogue.get(CLAIMS, name, CLAIMS)
        if {term.strategy for term in finding.contrast} <= strategies:
            claims += [_claim(name, finding, encoder, experiment, catalogue, present) for encoder in trained]
    return claims


def _claim(
    name: str, finding: FindingConfig, encoder: str, experiment: ExperimentConfig, catalogue: Catalogue, present
) -> dict:
    entry = {"id": name, "encoder": encoder, **finding.model_dump(include={"claim", "paper"})}
    entry |= {"above": finding.above} if finding.within is None else {"within": finding.within}
    if reason := finding.encoder.unlike(catalogue.get("encoders", encoder, CLAIMS)):
        return entry | {"reason": reason}
    tests = []
    for task in (task for task in experiment.tasks if task in finding.tasks):
        chosen = catalogue.get("tasks", task, "tasks")
        metric = finding.metrics.get(task, chosen.metrics[0])
        terms = [_term(term, encoder, experiment, catalogue) for term in finding.contrast]
        if all((task, encoder, *term[1:]) in present for term in terms):
            subsets = [catalogue.get("subsets", subset, "subsets") for subset in experiment.subsets]
            splits = dict.fromkeys(split for subset in subsets for split in subset.of_runs(chosen).test)
            tests += [{"task": task, "metric": metric, "split": split, "terms": terms} for split in splits]
    return entry | ({"tests": tests} if tests else {"reason": "its runs are not here"})


def _term(term: TermConfig, encoder: str, experiment: ExperimentConfig, catalogue: Catalogue) -> list:
    """Return [times, head, strategy, variant] of a term."""
    strategy = catalogue.get("strategies", term.strategy, CLAIMS)
    layers = catalogue.get("encoders", encoder, CLAIMS).layers
    name = term.variant if term.depth is None else variant_at(strategy, layers, term.depth)
    return [term.times, term.head or experiment.heads[0], term.strategy, name]


HOLDS: dict[Requirement, Callable[..., bool]] = {
    Requirement.MERGES: lambda entry, of: bool(of.merged),
    Requirement.SIZES: lambda entry, of: len({(one.rows, one.per_label) for one in _subsets(of).values()}) > 1,
    Requirement.PROBES: lambda entry, of: any(draws(entry.kind, job.spec["probe"]["kind"]) for job in of.probed),
    Requirement.ALL_LAYERS: lambda entry, of: (
        not any(draws(entry.kind, probe.kind) and probe.layers for probe in _named("probes", of))
    ),
    Requirement.TRANSFER: lambda entry, of: any(task.also for task in _named("tasks", of)),
    Requirement.ONE_ANSWER: lambda entry, of: sum(other.kind == entry.kind for other in _named("outputs", of)) == 1,
    Requirement.CLAIMS: lambda entry, of: bool(claims_for_spec(of.experiment, of.catalogue, of.runs)),
    Requirement.FULL: _full_and(lambda run, context: True),
    Requirement.FULL_AND_FROZEN: _full_and(lambda run, context: context.planner.thawed(run) == (0, False)),
    Requirement.FULL_AND_STUDENT: _full_and(lambda run, context: context.students(run)[0] is not None),
    Requirement.TASK_PAIRS: _full_and(lambda run, context: context.partner(run) is not None),
}


def additions(entry: OutputConfig, context: OutputContext) -> dict:
    """Return all that the plan adds to the spec of an output."""
    additions: dict = {}
    for addition in OUTPUTS[entry.kind].adds:
        additions |= ADDITIONS[addition](entry, context)
    return additions


def _shown_probes(entry: OutputConfig, context: OutputContext) -> dict:
    """Return the digests of the probes that a figure or table shows, and their names in print."""
    drawn = [job.digest for job in context.probed if draws(entry.kind, job.spec["probe"]["kind"])]
    entries = {name: context.catalogue.get("probes", name, "probes") for name in context.experiment.probes}
    names = {name: probe.label or name for name, probe in entries.items() if draws(entry.kind, probe.kind)}
    return {"probed": digest(drawn), "probes": names}


def _printed(entry: PrintedOptions, context: OutputContext) -> dict:
    comparison = printed_tables.comparison_for_spec(
        context.experiment, context.catalogue, context.runs, entry, context.origins
    )
    merged = any("merge" in cell.get("quantity", {}) for row in comparison["rows"] for cell in row["cells"])
    return {"beside": comparison} | ({"merged": digest(context.merged)} if merged else {})


def _students(entry: OutputConfig, context: OutputContext) -> dict:
    """Return the points that are students: those with a shape or a teacher, each with its layers, in order."""
    points: dict[tuple, dict] = {}
    for run in context.runs:
        layers, teacher = context.students(run)
        if layers is not None:
            point = {"encoder": run.encoder, "strategy": run.strategy, "variant": run.variant}
            points[tuple(point.values())] = point | {"layers": layers, "taught_by": teacher}
    return {"students": list(points.values())}


def _task_pairs(entry: OutputConfig, context: OutputContext) -> dict:
    """Return by target and strategy which other task its runs are trained with or after, and the corpora of all."""
    pairs: dict[str, dict] = {}
    for run in context.runs:
        if (partner := context.partner(run)) and partner["source"] != run.task:
            pairs.setdefault(run.task, {})[run.strategy] = partner
    tasks = dict.fromkeys([*pairs, *(one["source"] for own in pairs.values() for one in own.values())])
    return {"pairs": pairs, "corpora": {task: context.catalogue.get("tasks", task, "tasks").corpus for task in tasks}}


def _draws(entry: DrawsOptions, context: OutputContext) -> dict:
    """Return for each subset that is one of several draws, alike in all else, the first of them.

    Those that score a part of the test split are none of them: each draw has test rows of its own. Subsets that divide
    their rows differently are no draws of one size.
    """
    if entry.draws != "together":
        return {}
    by_size: dict[str, list[str]] = {}
    for name in context.experiment.subsets:
        subset = context.catalogue.get("subsets", name, "subsets")
        if subset.scored is None:
            alike = {key: value for key, value in spec_of(subset).items() if key != "draw"}
            by_size.setdefault(canonical(alike), []).append(name)
    first = {name: names[0] for names in by_size.values() if len(names) > 1 for name in names}
    return {"first_draws": first} if first else {}


def _merges(entry: OutputConfig, context: OutputContext) -> dict:
    """Return a digest of the merges, and their names in print."""
    names = {name: merge.label or name for name, merge in context.experiment.merges.items()}
    return {"merged": digest(context.merged), "merges": names}


ADDITIONS: dict[Addition, Callable[..., dict]] = {
    Addition.MERGES: _merges,
    Addition.PROBES: _shown_probes,
    Addition.PRINTED: _printed,
    Addition.PROTOCOL: lambda entry, of: {"protocol": printed_tables.protocol_for_spec(entry.paper, of.catalogue)},
    Addition.CLAIMS: lambda entry, of: {"findings": claims_for_spec(of.experiment, of.catalogue, of.runs)},
    Addition.STUDENTS: _students,
    Addition.TASK_PAIRS: _task_pairs,
    Addition.DRAWS: _draws,
}
