"""What an experiment must have for an output: one function for each requirement that declarations name.

A function takes the output's entry and an `OutputContext`, and returns what is missing and what would be right, in one
sentence; nothing where the output can be drawn.
"""

from collections.abc import Callable

from thaw.declarations.output_kind import Requirement
from thaw.declarations.output_options import ReferenceOptions
from thaw.declarations.outputs import OUTPUTS
from thaw.declarations.probes import drawn_by, draws
from thaw.declarations.splits import RESERVED
from thaw.planning.output_context import OutputContext
from thaw.planning.papers import claim_runs
from thaw.schema.output import OutputConfig


def missing(entry: OutputConfig, context: OutputContext) -> str:
    """Return why an output cannot be drawn of an experiment; empty where it can."""
    reasons = (REQUIREMENTS[need](entry, context) for need in OUTPUTS[entry.kind].needs)
    return next(filter(None, reasons), "") or _reserved(entry, context)


def _reserved(entry: OutputConfig, context: OutputContext) -> str:
    names = context.experiment.subsets
    lacking = [name for name in names if not context.catalogue.get("subsets", name, "subsets").reserved]
    if getattr(entry, "split", "") != RESERVED or not lacking:
        return ""
    return f"it shows scores on reserved rows, and subset {lacking[0]} reserves none; name one that does, as n1000_r1"


def _sizes(entry: OutputConfig, context: OutputContext) -> str:
    names = context.experiment.subsets
    sizes = {context.catalogue.get("subsets", name, "subsets").rows for name in names}
    return (
        ""
        if len(sizes) > 1
        else (
            f"it draws scores against the number of training rows, and the experiment has one ({', '.join(names)}); "
            "name subsets of two sizes, as subsets: [n100_d1, n500_d1]"
        )
    )


def _search(entry: OutputConfig, context: OutputContext) -> str:
    if any(context.catalogue.get("strategies", run.strategy, "strategies").search for run in context.runs):
        return ""
    return (
        "it draws what a search is worth, and no strategy of the experiment has a search: of its own; name one that "
        "has, or leave the output out"
    )


def _gradients(entry: OutputConfig, context: OutputContext) -> str:
    if not context.experiment.gradients:
        return "this figure draws what runs note on request alone; say gradients: true"
    if all(run.step != "train" for run in context.runs):
        return "it draws gradients by layer, and no strategy of the experiment trains a layer; add one, as full"
    return ""


def _probes(entry: OutputConfig, context: OutputContext) -> str:
    if any(draws(entry.kind, job.spec["probe"]["kind"]) for job in context.probed):
        return ""
    kinds = drawn_by(entry.kind)
    return (
        f"this output shows probes of kind {', '.join(kinds)}, and the experiment names none; say probes: [{kinds[0]}]"
    )


def _all_layers(entry: OutputConfig, context: OutputContext) -> str:
    probes = {name: context.catalogue.get("probes", name, "probes") for name in context.experiment.probes}
    cut = [name for name, probe in probes.items() if draws(entry.kind, probe.kind) and probe.layers]
    return f"it needs every layer, and probes.{cut[0]} reads some; leave its layers: out" if cut else ""


def _one_answer(entry: OutputConfig, context: OutputContext) -> str:
    outputs = {name: context.catalogue.get("outputs", name, "outputs") for name in context.experiment.outputs}
    names = [name for name, other in outputs.items() if other.kind == entry.kind]
    return f"{' and '.join(names)} both say what to take; name one of them" if len(names) > 1 else ""


def _transfer(entry: OutputConfig, context: OutputContext) -> str:
    if any(context.catalogue.get("tasks", task, "tasks").also for task in context.experiment.tasks):
        return ""
    return "it shows scores on other tasks' test sets, and no task of the experiment has transfer_sets: to name them"


def _claims(entry: OutputConfig, context: OutputContext) -> str:
    if claim_runs.claims_for_spec(context.experiment, context.catalogue, context.runs):
        return ""
    return (
        "it answers papers' claims, and of no claim in findings.yaml the experiment has all strategies; add those that "
        "one compares, as linear_probe and full"
    )


def _full(entry: ReferenceOptions, context: OutputContext) -> str:
    start = getattr(entry, "start", None)
    if start and start not in context.strategies:
        return (
            f"start: {start} is none of the experiment's strategies ({', '.join(context.strategies)}); add it, or "
            "define the output with start: one of them"
        )
    return _full_and_another(
        entry, context, lambda run: run.strategy not in (entry.reference, start), "another strategy"
    )


def _full_and_frozen(entry: ReferenceOptions, context: OutputContext) -> str:
    return _full_and_another(entry, context, context.is_frozen, "one that trains the head alone, as linear_probe")


def _full_and_student(entry: ReferenceOptions, context: OutputContext) -> str:
    def is_student(run) -> bool:
        return context.students(run)[0] is not None

    return _full_and_another(entry, context, is_student, "a student: a strategy with student: or teacher:")


def _full_and_another(entry: ReferenceOptions, context: OutputContext, test: Callable, what: str) -> str:
    """Return what is missing of the full model and of runs that pass a test, on one task with one encoder and head."""
    if entry.reference not in context.strategies:
        return (
            f"reference: {entry.reference} is none of the experiment's strategies ({', '.join(context.strategies)}); "
            "add it, or define the output with reference: one of them"
        )
    whole = [runs for runs in context.cells.values() if any(_is_whole(run, entry) for run in runs)]
    if not whole:
        return f"reference: {entry.reference} has a sweep, and one strategy without a sweep is compared with; name that"
    if any(test(run) for runs in whole for run in runs if not _is_whole(run, entry)):
        return ""
    return f"it compares {entry.reference} with {what}, and the experiment has none on the same task; add one"


def _is_whole(run, entry: ReferenceOptions) -> bool:
    return (run.strategy, run.variant) == (entry.reference, "base")


def _merges(entry: OutputConfig, context: OutputContext) -> str:
    if context.merged["merge"]:
        return ""
    return "it shows tasks on one trunk, and the experiment merges none; say merges: {one_trunk: {strategies: [top_k]}}"


def _latency(entry: OutputConfig, context: OutputContext) -> str:
    return "" if context.merged["latency"] else "it shows measured times of merges; say merges: and latency: {}"


REQUIREMENTS: dict[Requirement, Callable[..., str]] = {
    Requirement.MERGES: _merges,
    Requirement.LATENCY: _latency,
    Requirement.SIZES: _sizes,
    Requirement.SEARCH: _search,
    Requirement.GRADIENTS: _gradients,
    Requirement.PROBES: _probes,
    Requirement.ALL_LAYERS: _all_layers,
    Requirement.TRANSFER: _transfer,
    Requirement.ONE_ANSWER: _one_answer,
    Requirement.CLAIMS: _claims,
    Requirement.FULL: _full,
    Requirement.FULL_AND_FROZEN: _full_and_frozen,
    Requirement.FULL_AND_STUDENT: _full_and_student,
}
