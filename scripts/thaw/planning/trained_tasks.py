"""Runs of several tasks that one training makes: the job of the first task trains, those of the others take their part.

So each task has an ordinary run, with the shared encoder and its own head. No torch.
"""

from dataclasses import replace

from thaw.core.errors import UserError
from thaw.core.phrases import listing
from thaw.declarations.task_types import PAIR_TYPES
from thaw.planning import compatibility
from thaw.planning.run_plan import RunPlan, pair_views
from thaw.schema.catalogue import Catalogue
from thaw.schema.strategy import StartConfig, StrategyConfig


def members(catalogue: Catalogue, strategy: StrategyConfig, run: RunPlan) -> list[RunPlan]:
    """Return the other tasks of the training that a run's job is, each as a run; none where it trains one or nothing.

    Raises UserError for a task that cannot be trained with the others.
    """
    if strategy.multi_task is None or run.trained_by:
        return []
    place = f"{catalogue.place('strategies', run.strategy)}: multi_task"
    tasks = strategy.multi_task.of_run(run.task)
    if strategy.multi_task.own == "left_out" and len(tasks) == 1:
        raise UserError(f"{place}: own: left_out leaves none to train for {run.task}; name another task under tasks:")
    _check_datasets(catalogue, tasks, run.subset, place)
    found = []
    for name in tasks[1:]:
        views = _views(catalogue, strategy, run, name, place)
        needs = tuple(need for need in run.needs if need.task == name or need.role == "start")
        found.append(replace(run, task=name, views=views, needs=needs))
    return found


def _check_datasets(catalogue: Catalogue, tasks: list[str], subset: str, place: str) -> None:
    """Find out whether no task trains on what another is scored on, and none is there under two names."""
    entries = {name: catalogue.get("tasks", name, place) for name in tasks}
    seen: dict[str, str] = {}
    for name, task in entries.items():
        if (other := seen.setdefault(task.corpus, name)) == name:
            continue
        if entries[other].target == task.target:
            raise UserError(f"{place}: {other} and {name} have one column of labels, {task.target}; leave one out")
        if catalogue.get("subsets", subset, "subsets").validation:
            raise UserError(
                f"{place}: {other} and {name} are of dataset {task.corpus}, and {subset} holds out other rows for "
                "each; name a subset without validation:"
            )


def _views(catalogue: Catalogue, strategy: StrategyConfig, run: RunPlan, name: str, place: str) -> tuple[str, ...]:
    """Return the views that another task of a training is read in; raise UserError for one that it cannot train."""
    task = catalogue.get("tasks", name, place)
    if strategy.pairs in ("joint", "separate") and task.type not in PAIR_TYPES:
        raise UserError(f"{place}: {name} has single texts, and pairs: {strategy.pairs} is for pairs; leave {name} out")
    views = pair_views(task, run.pairs)
    compatibility.check_head(catalogue, run.head, name, strategy, views, place)
    return views


def check_start(earlier: StrategyConfig, start: StartConfig, strategy: StrategyConfig, task: str, place: str) -> None:
    """Find out whether a run of several tasks starts after one of the same tasks, whose heads go on.

    Args: the earlier strategy, and how it is named; the strategy; the run's task; place of the strategy.
    """
    tasks = strategy.multi_task and strategy.multi_task.of_run(task)
    before = earlier.multi_task and earlier.multi_task.of_run(task)
    if tasks and not start.task and tasks != before:
        raise UserError(
            f"{place}.after: {start.strategy} does not train {listing(tasks)} together; name a strategy with the "
            "same multi_task: tasks, or an intermediate task for its encoder alone"
        )
