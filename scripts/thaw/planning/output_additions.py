"""What the plan adds to the spec of an output: one function for each addition that declarations name."""

from collections.abc import Callable

from thaw.core.digests import canonical, digest
from thaw.declarations.output_kind import Addition
from thaw.declarations.output_options import DrawsOptions, PaperOptions, PrintedOptions
from thaw.declarations.outputs import OUTPUTS
from thaw.declarations.probes import draws
from thaw.planning.output_context import OutputContext
from thaw.planning.papers import claim_runs, protocols, table_comparison
from thaw.schema.entry import spec_of
from thaw.schema.output import OutputConfig


def additions(entry: OutputConfig, context: OutputContext) -> dict:
    """Return all that the plan adds to the spec of an output."""
    additions: dict = {}
    for addition in OUTPUTS[entry.kind].adds:
        additions |= ADDITIONS[addition](entry, context)
    return additions


def _probes(entry: OutputConfig, context: OutputContext) -> dict:
    """Return the digests of the probes that a figure or table shows, and their names in print."""
    drawn = [job.digest for job in context.probed if draws(entry.kind, job.spec["probe"]["kind"])]
    entries = {name: context.catalogue.get("probes", name, "probes") for name in context.experiment.probes}
    names = {name: probe.label or name for name, probe in entries.items() if draws(entry.kind, probe.kind)}
    return {"probed": digest(drawn), "probes": names}


def _printed(entry: PrintedOptions, context: OutputContext) -> dict:
    comparison = table_comparison.comparison_for_spec(
        context.experiment, context.catalogue, context.runs, entry, context.origins
    )
    return {"beside": comparison}


def _protocol(entry: PaperOptions, context: OutputContext) -> dict:
    scaled = protocols.scaling_for_spec(context.experiment)
    lines = protocols.protocol_for_spec(entry.paper, context.catalogue)
    return {"protocol": lines} | ({"scaled": scaled} if scaled else {})


def _claims(entry: OutputConfig, context: OutputContext) -> dict:
    return {"findings": claim_runs.claims_for_spec(context.experiment, context.catalogue, context.runs)}


def _students(entry: OutputConfig, context: OutputContext) -> dict:
    """Return the points that are students: those with a shape or a teacher, each with its layers, in order."""
    points: dict[tuple, dict] = {}
    for run in context.runs:
        layers, teacher = context.students(run)
        if layers is not None:
            point = {"encoder": run.encoder, "strategy": run.strategy, "variant": run.variant}
            points[tuple(point.values())] = point | {"layers": layers, "taught_by": teacher}
    return {"students": list(points.values())}


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
    """Return the digests of the merges and of their latency, and the merges' names in print."""
    names = {name: merge.label or name for name, merge in context.experiment.merges.items()}
    return {"merged": digest(context.merged), "merges": names}


ADDITIONS: dict[Addition, Callable[..., dict]] = {
    Addition.MERGES: _merges,
    Addition.PROBES: _probes,
    Addition.PRINTED: _printed,
    Addition.PROTOCOL: _protocol,
    Addition.CLAIMS: _claims,
    Addition.STUDENTS: _students,
    Addition.DRAWS: _draws,
}
