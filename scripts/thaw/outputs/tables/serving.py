"""A table of serving costs: several tasks on one frozen trunk, with the score and the layers executed per choice.

T tasks, L layers of the encoder, k_t thawed layers of task t. Layers below the thawed ones are the pretrained encoder's
for every task and run once: max(L - k_t) + sum(k_t) layers are executed for a text, of T x L without sharing (Wei et
al. 2022, section 3).
"""

from dataclasses import dataclass

from thaw.core import branch_choice
from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.result_links import row_anchor
from thaw.outputs.render.typed_table import Cell, Group, Row, Table, said


@dataclass(frozen=True)
class Point:
    """A task with k thawed layers: scores x 100 on validation and test; shared: the layers below are the encoder's.

    anchor: where the page of examples lists its runs.
    """

    k: int
    validation: float
    test: float
    shared: bool
    anchor: str = ""


def executed(thawed: list[int], layers: int) -> int:
    """Return how many layers are executed for a text, of tasks with so many thawed layers each on a shared trunk."""
    return branch_choice.executed(branch_choice.top_k(k, layers) for k in thawed)


def build(data, spec: dict) -> Table:
    """Return the score and the executed layers of each choice of thawed layers, over all tasks with the sweep.

    Args: spec with `sweep` and `whole`, the ids of the sweep and of the full model, `margin` in points, and `layers`,
    the encoders' numbers of them. Raises UserError where no task has both.
    """
    labels = spec["labels"]
    both = [aggregate.summarise(data.runs, role, spec["order"]) for role in ("validation", "test")]
    groups, tasks = [], []
    for group, name in aggregate.group_names(both[1], labels).items():
        by_task = _points(*(aggregate.runs_of(part, group) for part in both), spec)
        if not by_task:
            continue
        tasks, layers = list(by_task), spec["layers"][group[1]]
        whole = [next((p for p in by_task[task] if not p.shared), None) for task in tasks]
        rows = []
        for choice, chosen in _choices(by_task, whole, spec["margin"]).items():
            numbers = _numbers(chosen, whole, layers)
            record = {"encoder": group[1], "head": group[2], "subset": group[0], "choice": choice}
            record["tasks"] = " ".join(tasks)
            record["thawed"] = " ".join(str(point.k) if point.shared else "all" for point in chosen)
            rows.append(Row(choice, _cells(chosen, numbers), [record | numbers]))
        groups.append(Group(name, rows))
    if not groups:
        raise UserError(f"a serving_table needs runs of {spec['sweep']} and of {spec['reference']} on a task")
    names = [wording.task_name(labels, task) for task in tasks]
    titles = [*names, "Mean", "Of full, %", "Layers", "Share, %"]
    return Table.of_spec(spec, titles, groups, _notes(spec["margin"]), of="Choice")


def _points(validation, test, spec: dict) -> dict[str, list[Point]]:
    """Return the points of the sweep and the full model by task, k rising; tasks that lack either are left out."""
    by_task: dict[str, list[Point]] = {}
    for row in test.drop_duplicates(["task", "strategy", "variant"]).itertuples():
        same = (validation["task"] == row.task) & (validation["strategy"] == row.strategy)
        chosen = validation[same & (validation["variant"] == row.variant)]["mean"]
        if row.strategy in (spec["sweep"], spec["reference"]) and row.mean == row.mean and len(chosen):
            shared = row.strategy == spec["sweep"]
            point = Point(int(row.thawed), float(chosen.iloc[0]), row.mean, shared, row_anchor(row))
            by_task.setdefault(row.task, []).append(point)
    by_task = {task: sorted(points, key=lambda point: point.k) for task, points in by_task.items()}
    return {task: points for task, points in by_task.items() if {point.shared for point in points} == {True, False}}


def _choices(by_task: dict[str, list[Point]], whole: list[Point], margin: float) -> dict[str, list[Point]]:
    """Return {choice: its point of each task}."""
    swept = [[point for point in points if point.shared] for points in by_task.values()]
    best = [max(points, key=lambda point: point.validation) for points in swept]
    near = [
        next(point for point in points if point.validation >= top.validation - margin)
        for points, top in zip(swept, best, strict=True)
    ]
    choices = {"One model per task": whole}
    for k in sorted(set.intersection(*({point.k for point in points} for points in swept))):
        choices[f"k = {k} for all"] = [next(point for point in points if point.k == k) for points in swept]
    return choices | {"Best k per task": best, f"Smallest k within {margin:g} of it": near}


def _numbers(chosen: list[Point], whole: list[Point], layers: int) -> dict:
    """Return the mean score, its share of the full models' in %, the layers executed, of how many, and the share."""
    mean, full = (sum(point.test for point in points) / len(points) for points in (chosen, whole))
    of = len(chosen) * layers
    count = executed([point.k for point in chosen], layers) if all(point.shared for point in chosen) else of
    relative = 100 * mean / full if full > 0 else None
    return {"mean": mean, "relative": relative, "layers": count, "of": of, "overhead": 100 * count / of}


def _cells(chosen: list[Point], numbers: dict) -> list[Cell]:
    """Return the cells of a choice: each task's score with its k, then the numbers over tasks."""
    scores = [
        said(wording.number(point.test) + f" ({point.k})" * point.shared, point.test, link=point.anchor)
        for point in chosen
    ]
    mean, relative, overhead = (Cell(numbers[key]) for key in ("mean", "relative", "overhead"))
    return [*scores, mean, relative, said(f"{numbers['layers']} of {numbers['of']}", numbers["layers"]), overhead]


def _notes(margin: float) -> list[str]:
    return [
        "Scores × 100 on test, with k, the number of fine-tuned layers, in brackets; k is chosen on validation. The "
        f"smallest k is the first whose validation score is within {margin:g} of the best.",
        "Layers: executed per text for all tasks. The frozen layers are shared by all tasks and run once.",
    ]
