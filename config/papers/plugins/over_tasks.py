"""A table of claims over tasks: on how many the difference is higher, lower or open, and its mean over them."""

from pydantic import Field

from thaw.declarations.output_kind import Addition, OutputKind, Requirement
from thaw.declarations.output_options import DrawsOptions
from thaw.declarations.value_types import Id


class OverTasksOptions(DrawsOptions):
    """Claims over tasks."""

    claims: list[Id] = Field(min_length=1, description="the claims of findings.yaml whose contrasts are shown")


TABLES = {
    "over_tasks_table": OutputKind(
        "thaw.papers.over_tasks:build",
        "claims over all tasks: on how many the difference is higher, lower or open, and its mean over them",
        OverTasksOptions,
        needs=(Requirement.CLAIMS,),
        adds=(Addition.CLAIMS, Addition.DRAWS),
    ),
}


from collections import Counter

from thaw.core.errors import UserError
from thaw.decision.contrasts import HIGHER, LOWER, OPEN, WITHIN
from thaw.outputs import wording
from thaw.outputs.render.typed_table import Group, Table, text_row
from thaw.outputs.tables.claims import count, notes_of, said, tested
from thaw.outputs.tables.footnotes import undefined_note
from thaw.statistics.bootstrap import student_interval

TITLES = ("Answer", "Mean", "By task")


def build(data, spec: dict) -> Table:
    """Return a line for each claim.

    Args: spec with `claims`, ids of config/findings.yaml, and `findings` as a finding_table has them. Raises UserError
    where no claim has a score.
    """
    labels, order = spec["labels"], spec["claims"]
    entries = sorted(spec["findings"], key=lambda entry: order.index(entry["id"]))
    entries = [entry | {"tests": _first_of_tasks(entry)} for entry in entries]
    first = data.runs.loc[data.runs["kind"] == "run", "subset"].iloc[:1]
    results = [[one for one in own if one.difference] for own in tested(data, entries, first)]
    if not any(results):
        raise UserError(f"an over_tasks_table needs scores for one of its claims: {', '.join(order)}")
    groups: dict[str, Group] = {}
    for entry, own in zip(entries, results, strict=True):
        if own:
            mean = student_interval([one.difference.value for one in own])
            names = [wording.task_name(labels, one.test["task"]) for one in own]
            by_task = "; ".join(f"{name}: {said(one)}" for name, one in zip(names, own, strict=True))
            cells = [count(one.answer for one in own), wording.with_interval(*mean), by_task]
            name = wording.label(labels, "encoders", entry["encoder"])
            row = text_row(entry["claim"], cells, _record(entry, own, mean))
            groups.setdefault(entry["encoder"], Group(name, [])).rows.append(row)
    if len(groups) == 1:
        next(iter(groups.values())).name = ""
    notes = [
        *notes_of([one for own in results for one in own]),
        "Each task counts once, by its first test split and the first subset of training rows. Mean: over these tasks, "
        "with Student's 95 % CI over tasks.",
        *undefined_note(data.runs, labels, "Differences leave these runs out"),
    ]
    return Table.of_spec(spec, TITLES, list(groups.values()), notes, of="Claim", sentences=True)


def _first_of_tasks(entry: dict) -> list[dict]:
    tests = {}
    for test in entry.get("tests", []):
        tests.setdefault(test["task"], test)
    return list(tests.values())


def _record(entry: dict, own: list, mean: tuple) -> dict:
    answers = Counter(one.answer for one in own)
    record = {"claim": entry["id"], "encoder": entry["encoder"], "tasks": " ".join(one.test["task"] for one in own)}
    record |= dict(zip(("value", "low", "high"), mean, strict=True))
    record |= {word: answers[word] for word in (HIGHER, LOWER, OPEN, WITHIN)}
    return record | {"flagged": " ".join(one.test["task"] for one in own if one.flags)}
