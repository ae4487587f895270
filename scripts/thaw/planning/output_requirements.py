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


def _all_layers(entry: OutputConfig, context: OutputContext) -> bool:
    probes = (context.catalogue.get("probes", name, "probes") for name in context.experiment.probes)
    return not any(draws(entry.kind, probe.kind) and probe.layers for probe in probes)


def _one_answer(entry: OutputConfig, context: OutputContext) -> bool:
    outputs = (context.catalogue.get("outputs", name, "outputs") for name in context.experiment.outputs)
    return sum(other.kind == entry.kind for other in outputs) == 1


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
    Requirement.MERGES: lambda entry, of: bool(of.merged["merge"]),
    Requirement.LATENCY: lambda entry, of: bool(of.merged["latency"]),
    Requirement.SIZES: lambda entry, of: len({subset.rows for subset in _subsets(of).values()}) > 1,
    Requirement.SEARCH: lambda entry, of: any(of.planner.strategy(run).search for run in of.runs),
    Requirement.GRADIENTS: lambda entry, of: of.experiment.gradients and any(run.step == "train" for run in of.runs),
    Requirement.PROBES: lambda entry, of: any(draws(entry.kind, job.spec["probe"]["kind"]) for job in of.probed),
    Requirement.ALL_LAYERS: _all_layers,
    Requirement.TRANSFER: lambda entry, of: any(
        of.catalogue.get("tasks", task, "tasks").also for task in of.experiment.tasks
    ),
    Requirement.ONE_ANSWER: _one_answer,
    Requirement.CLAIMS: lambda entry, of: bool(claim_runs.claims_for_spec(of.experiment, of.catalogue, of.runs)),
    Requirement.FULL: _full_and(lambda run, context: True),
    Requirement.FULL_AND_FROZEN: _full_and(lambda run, context: context.is_frozen(run)),
    Requirement.FULL_AND_STUDENT: _full_and(lambda run, context: context.students(run)[0] is not None),
}
