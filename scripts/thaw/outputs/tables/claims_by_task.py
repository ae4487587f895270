"""Claims by tasks: a column for each task, with the answer on it and the difference."""

from thaw.declarations.splits import RESERVED
from thaw.outputs import wording
from thaw.outputs.tables.table_model import TextCell
from thaw.statistics.verdicts import NOT_TESTABLE, Verdict

Tested = list[tuple[dict, Verdict | str]]


def columns(tested: list[Tested], order: list[str], spec: dict) -> tuple[list[str], list[list[TextCell]]]:
    """Return the titles of the tasks that some claim is tested on, and the cells of each claim under them.

    Args: by claim its tests with their verdicts; tasks in their order; spec of the output, whose `by_task` is `test` or
    `reserved`.
    """
    shown = [on_shown_splits(one, spec) for one in tested]
    tasks = sorted({test["task"] for one in shown for test, _ in one}, key=order.index)
    titles = [wording.task_name(spec["labels"], task) for task in tasks]
    return titles, [[_cell([pair for pair in one if pair[0]["task"] == task]) for task in tasks] for one in shown]


def note(spec: dict) -> str:
    """Return what a column shows."""
    where = "reserved rows" if spec["by_task"] == RESERVED else "test splits"
    return (
        f"By task: the answer, with the difference in points and its 95 % CI, on {where}. Answer: to the "
        "claim, over all splits. Empty: not claimed of the task."
    )


def on_shown_splits(tested: Tested, spec: dict) -> Tested:
    """Return those of some tests that are on the splits that a table shows, which are all without `by_task`."""
    reserved, every = spec.get("by_task") == RESERVED, not spec.get("by_task")
    return [(test, verdict) for test, verdict in tested if every or (test["split"] == RESERVED) == reserved]


def _cell(tested: Tested) -> TextCell:
    several = len({test["split"] for test, _ in tested}) > 1
    parts = []
    for test, verdict in tested:
        where = f"{test['split'].replace('_', ' ')}: " if several else ""
        parts.append(where + _said(verdict))
    return TextCell("; ".join(parts), parts=parts if several else [])


def _said(verdict: Verdict | str) -> str:
    if isinstance(verdict, str):
        return NOT_TESTABLE
    ci = wording.interval(verdict.ci.low, verdict.ci.high)
    return f"{verdict.answer} {wording.number(verdict.contrast)} {ci}"
