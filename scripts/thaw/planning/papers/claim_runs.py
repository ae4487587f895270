"""Which claims of papers the runs of an experiment can test, and which of its scores each needs."""

from thaw.planning.run_plan import RunPlan, variant_at
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.reference import FindingConfig, TermConfig

PLACE = "findings"


def claims_for_spec(experiment: ExperimentConfig, catalogue: Catalogue, runs: list[RunPlan]) -> list[dict]:
    """Return what the spec of a table of findings says: for each claim and encoder the tests, or why there is none.

    Encoders with random weights are left out, and a claim none of whose strategies the experiment has. A test is {task,
    metric, split, terms}, a term [times, head, strategy, variant].
    """
    present = {(r.task, r.encoder, r.head, r.strategy, r.variant) for r in runs if not r.trial}
    strategies = {key[3] for key in present}
    entries = {name: catalogue.get("encoders", name, PLACE) for name in experiment.encoders}
    claims, trained = [], [name for name, entry in entries.items() if entry.weights != "random"]
    for name in catalogue.ids(PLACE):
        finding = catalogue.get(PLACE, name, PLACE)
        if {term.strategy for term in finding.contrast} <= strategies:
            claims += [_entry(name, finding, encoder, experiment, catalogue, present) for encoder in trained]
    return claims


def _entry(
    name: str, finding: FindingConfig, encoder: str, experiment: ExperimentConfig, catalogue: Catalogue, present
) -> dict:
    entry = {"id": name, "encoder": encoder, **finding.model_dump(include={"claim", "paper"})}
    entry |= {"above": finding.above} if finding.within is None else {"within": finding.within}
    if reason := finding.encoder.unlike(catalogue.get("encoders", encoder, PLACE)):
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
    strategy = catalogue.get("strategies", term.strategy, PLACE)
    layers = catalogue.get("encoders", encoder, PLACE).layers
    name = term.variant if term.depth is None else variant_at(strategy, layers, term.depth)
    return [term.times, term.head or experiment.heads[0], term.strategy, name]
