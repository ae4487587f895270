"""Confounders: how the strategies and heads of an experiment differ besides what they are meant to compare."""

from math import prod

from thaw.core.phrases import written
from thaw.declarations.heads import HEAD_KINDS
from thaw.planning.run_grid import RunPlanner
from thaw.planning.run_plan import is_pair, named_points
from thaw.schema.catalogue import Catalogue
from thaw.schema.experiment import ExperimentConfig
from thaw.schema.head import as_list
from thaw.schema.keys import stated
from thaw.schema.strategy import StrategyConfig

PAIRS = {"separate": "each text separately", "best": "as validation chooses"}


def sentences(experiment: ExperimentConfig, catalogue: Catalogue, planner: RunPlanner) -> list[str]:
    """Return a sentence for each thing in which not all are alike: pooling, view of pairs, frozen dropout, searches."""
    names = [named_points(item)[0] for item in experiment.strategies]
    strategies = {name: catalogue.get("strategies", name, "strategies") for name in names}
    differences = {"Pooled by": _poolings(experiment, planner)}
    if any(is_pair(catalogue.get("tasks", task, "tasks")) for task in experiment.tasks):
        differences["Pairs are read"] = {
            name: PAIRS.get(one.pairs, "in one sequence") for name, one in strategies.items()
        }
    partly = {name: one for name, one in strategies.items() if any("all" not in p.train for p in one.phases)}
    differences["Dropout in the frozen layers is"] = {
        name: "on" if any(phase.frozen_dropout for phase in one.phases) else "off" for name, one in partly.items()
    }
    differences["Settings were searched with"] = {
        name: _search(one, experiment, catalogue) for name, one in strategies.items()
    }
    labels = {name: one.label or name for name, one in strategies.items()}
    given = [text for about, values in differences.items() if (text := _sentence(about, values, labels))]
    return given + _readings(strategies, labels)


def _readings(strategies: dict[str, StrategyConfig], labels: dict[str, str]) -> list[str]:
    """Return the sentence about strategies whose head reads other layers; empty where all heads read alike."""
    reads = {name: written(stated(one.reads)) for name, one in strategies.items() if one.reads}
    if not reads or (len(reads) == len(strategies) and len(set(reads.values())) == 1):
        return []
    by_text: dict[str, list[str]] = {}
    for name, text in reads.items():
        by_text.setdefault(text, []).append(labels[name])
    listed = "; ".join(f"in {' and '.join(names)} it reads {text}" for text, names in by_text.items())
    return [f"The head reads what its entry names; {listed}."]


def of_selection(experiment: ExperimentConfig, catalogue: Catalogue) -> list[str]:
    """Return a sentence for each thing by which validation favours a strategy: more choices, or seeds of a search.

    A strategy that is chosen among many settings has the highest of as many scores on validation. A seed that chose
    the settings and is reported too was selected by chance in part.
    """
    names = [named_points(item)[0] for item in experiment.strategies]
    strategies = {name: catalogue.get("strategies", name, "strategies") for name in names}
    labels = {name: one.label or name for name, one in strategies.items()}
    pairs = any(is_pair(catalogue.get("tasks", task, "tasks")) for task in experiment.tasks)
    deepest = max(catalogue.get("encoders", name, "encoders").layers for name in experiment.encoders)
    counts = {name: str(_choices(one, pairs, deepest, catalogue)) for name, one in strategies.items()}
    about = "Settings tried, of which validation takes the best (more tries favour a strategy):"
    given = [_sentence(about, counts, labels)]
    for name, one in strategies.items():
        search = one.search or (one.rates_from and catalogue.get("strategies", one.rates_from, "strategies").search)
        both = sorted(set(search.seeds[: experiment.search_seeds]) & set(experiment.seeds)) if search else []
        given += [
            f"Warning: {labels[name]} is searched with seed {seed}, which this experiment reports too: what chose the "
            "settings is then part of the result; search with other seeds, as seeds: [101]."
            for seed in both[:1]
        ]
    return list(filter(None, given))


def _choices(strategy: StrategyConfig, pairs: bool, deepest: int, catalogue: Catalogue) -> int:
    """Return among how many settings validation chooses.

    Args: whether there are tasks on pairs; the layers of the deepest encoder.
    """
    if strategy.rates_from:
        return _choices(catalogue.get("strategies", strategy.rates_from, "strategies"), pairs, deepest, catalogue)
    within = prod(strategy.tried_on_validation(pairs, deepest).values())
    return within * (len(strategy.search.trials()) if strategy.search else 1)


def _poolings(experiment: ExperimentConfig, planner: RunPlanner) -> dict[str, str]:
    """Return how the heads that pool make one vector of a text, by the heads' names in print."""
    heads = [planner.head_of(head, task) for head in experiment.heads for task in experiment.tasks]
    words = {name: entry for name, entry in filter(None, heads)}
    pooling = {entry.label or name: entry for name, entry in words.items()}
    return {
        label: " and ".join(as_list(entry.pooling))
        for label, entry in pooling.items()
        if entry.kind not in HEAD_KINDS or HEAD_KINDS[entry.kind].pools
    }


def _search(strategy: StrategyConfig, experiment: ExperimentConfig, catalogue: Catalogue) -> str:
    """Return how many trainings chose a strategy's settings."""
    if strategy.rates_from:
        other = catalogue.get("strategies", strategy.rates_from, "strategies")
        return f"those of {other.label or strategy.rates_from}"
    if strategy.search is None:
        return "no trainings"
    count = len(strategy.search.trials()) * len(strategy.search.seeds[: experiment.search_seeds])
    return f"{count} training{'s' * (count > 1)}"


def _sentence(about: str, values: dict[str, str], labels: dict[str, str]) -> str:
    """Return a sentence that says who has which value; empty where all have one."""
    having: dict[str, list[str]] = {}
    for name, value in values.items():
        having.setdefault(value, []).append(labels.get(name, name))
    if len(having) < 2:
        return ""
    between = "; " if any("," in name for names in having.values() for name in names) else ", "
    listed = [f"{value} ({between.join(names)})" for value, names in having.items()]
    return f"{about} {'; '.join(listed)}."
