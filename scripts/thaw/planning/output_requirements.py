"""What an experiment must have for an output: whether it has what declarations name."""

from collections.abc import Callable

from thaw.declarations.output_kind import Requirement
from thaw.declarations.output_options import ReferenceOptions
from thaw.declarations.outputs import OUTPUTS
from thaw.declarations.probes import drawn_by, draws
from thaw.declarations.splits import RESERVED
from thaw.planning.output_context import OutputContext
from thaw.planning.papers import claim_runs
from thaw.planning.run_plan import RunPlan
from thaw.schema.corpora import SubsetConfig
from thaw.schema.output import OutputConfig


def missing(entry: OutputConfig, context: OutputContext) -> str:
    """Return what an experiment lacks for an output; empty where it can be drawn."""
    if lacking := next((need for need in OUTPUTS[entry.kind].needs if not HOLDS[need](entry, context)), None):
        named = dict.fromkeys(filter(None, (getattr(entry, key, None) for key in ("reference", "start"))))
        words = {"{named}": " and ".join(named), "{probes}": ", ".join(drawn_by(entry.kind))}
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


def _sizes(entry: OutputConfig, context: OutputContext) -> bool:
    return len({subset.rows for subset in _subsets(context).values()}) > 1


def _search(entry: OutputConfig, context: OutputContext) -> bool:
    return any(context.planner.strategy(run).search for run in context.runs)


def _gradients(entry: OutputConfig, context: OutputContext) -> bool:
    return context.experiment.gradients and any(run.step == "train" for run in context.runs)


def _probes(entry: OutputConfig, context: OutputContext) -> bool:
    return any(draws(entry.kind, job.spec["probe"]["kind"]) for job in context.probed)


def _all_layers(entry: OutputConfig, context: OutputContext) -> bool:
    probes = (context.catalogue.get("probes", name, "probes") for name in context.experiment.probes)
    return not any(draws(entry.kind, probe.kind) and probe.layers for probe in probes)


def _one_answer(entry: OutputConfig, context: OutputContext) -> bool:
    outputs = (context.catalogue.get("outputs", name, "outputs") for name in context.experiment.outputs)
    return sum(other.kind == entry.kind for other in outputs) == 1


def _transfer(entry: OutputConfig, context: OutputContext) -> bool:
    return any(context.catalogue.get("tasks", task, "tasks").also for task in context.experiment.tasks)


def _claims(entry: OutputConfig, context: OutputContext) -> bool:
    return bool(claim_runs.claims_for_spec(context.experiment, context.catalogue, context.runs))


def _full_and(other: Callable[[RunPlan, OutputContext], bool]) -> Callable[[ReferenceOptions, OutputContext], bool]:
    """Return whether runs of the full model and runs that pass a test are on one task, with one encoder and head."""

    def holds(entry: ReferenceOptions, context: OutputContext) -> bool:
        start, whole = getattr(entry, "start", None), (entry.reference, "base")
        if start and start not in context.strategies:
            return False
        cells = [
            [run for run in runs if (run.strategy, run.variant) != whole and run.strategy != start]
            for runs in context.cells.values()
            if any((run.strategy, run.variant) == whole for run in runs)
        ]
        return any(other(run, context) for runs in cells for run in runs)

    return holds


HOLDS: dict[Requirement, Callable[..., bool]] = {
    Requirement.MERGES: lambda entry, context: bool(context.merged["merge"]),
    Requirement.LATENCY: lambda entry, context: bool(context.merged["latency"]),
    Requirement.SIZES: _sizes,
    Requirement.SEARCH: _search,
    Requirement.GRADIENTS: _gradients,
    Requirement.PROBES: _probes,
    Requirement.ALL_LAYERS: _all_layers,
    Requirement.TRANSFER: _transfer,
    Requirement.ONE_ANSWER: _one_answer,
    Requirement.CLAIMS: _claims,
    Requirement.FULL: _full_and(lambda run, context: True),
    Requirement.FULL_AND_FROZEN: _full_and(lambda run, context: context.is_frozen(run)),
    Requirement.FULL_AND_STUDENT: _full_and(lambda run, context: context.students(run)[0] is not None),
}
