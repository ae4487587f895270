"""Recommendations of papers for the tasks and encoders of an experiment, and which of its runs each corresponds to."""

from thaw.planning.run_plan import RunPlan, variant_at
from thaw.schema.advice import AdviceConfig
from thaw.schema.catalogue import Catalogue
from thaw.schema.corpora import TaskConfig
from thaw.schema.encoder import EncoderConfig
from thaw.schema.experiment import ExperimentConfig

PLACE, GUIDELINES = "advice", "guidelines"


def paper_rules(experiment: ExperimentConfig, catalogue: Catalogue, runs: list[RunPlan]) -> list[dict]:
    """Return what the spec of a table of advice says: {task, encoder, paper, says, strategy, variant, like} for each
    rule that is about a task and an encoder, where the runs have one of its strategies. like: whether the encoder is
    of the kind that the paper is about.
    """
    present = {(run.task, run.encoder, run.strategy, run.variant) for run in runs if not run.trial}
    rules = [catalogue.get(PLACE, name, PLACE) for name in catalogue.ids(PLACE)]
    choices = []
    for task in experiment.tasks:
        for encoder in experiment.encoders:
            entry = catalogue.get("encoders", encoder, PLACE)
            for rule in (rule for rule in rules if _is_about(rule, catalogue.get("tasks", task, PLACE), entry)):
                like = not rule.encoder.unlike(entry)
                points = [(name, _variant(rule, name, entry, catalogue)) for name in rule.strategies]
                chosen = next((point for point in points if (task, encoder, *point) in present), None)
                if chosen:
                    place = {"task": task, "encoder": encoder, "strategy": chosen[0], "variant": chosen[1]}
                    choices.append(place | {"paper": rule.paper, "says": rule.says, "like": like})
    return choices


def _is_about(rule: AdviceConfig, task: TaskConfig, encoder: EncoderConfig) -> bool:
    return (not rule.types or task.type in rule.types) and (rule.objective or "") in encoder.objective


def _variant(rule: AdviceConfig, strategy: str, encoder: EncoderConfig, catalogue: Catalogue) -> str:
    """Return the point of a strategy that a rule means."""
    entry = catalogue.get("strategies", strategy, PLACE)
    return variant_at(entry, encoder.layers, rule.depth) if entry.sweep else "base"


def guidelines(experiment: ExperimentConfig, catalogue: Catalogue) -> dict:
    """Return what the spec of a table of guidelines says: {types: {task: type}, guidelines: [...]}.

    A guideline is {question, types, papers}, where papers holds by encoder {paper, answer} of each that is about it;
    one question about the same types is asked once, whoever answers it.
    """
    asked: dict[tuple, dict] = {}
    encoders = {name: catalogue.get("encoders", name, GUIDELINES) for name in experiment.encoders}
    for name in catalogue.ids(GUIDELINES):
        rule = catalogue.get(GUIDELINES, name, GUIDELINES)
        entry = {"question": rule.question, "types": rule.types, "papers": {}}
        entry = asked.setdefault((rule.question, tuple(rule.types)), entry)
        for encoder in (id for id, model in encoders.items() if (rule.objective or "") in model.objective):
            entry["papers"].setdefault(encoder, []).append({"paper": rule.paper, "answer": rule.answer})
    types = {task: catalogue.get("tasks", task, "tasks").type for task in experiment.tasks}
    return {"types": types, "guidelines": list(asked.values())}
