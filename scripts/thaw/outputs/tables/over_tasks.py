"""A table of claims over tasks: the mean of a contrast over tasks, and whether it falls over ordered groups of them."""

import numpy as np

from thaw.core.errors import UserError
from thaw.declarations.decision import FEWEST_SEEDS
from thaw.outputs import wording
from thaw.outputs.frame.undefined import undefined_note
from thaw.outputs.tables.claims import contrast_of, underfit
from thaw.outputs.tables.table_model import Group, TextTable, text_row, text_table
from thaw.statistics.bootstrap import student_interval
from thaw.statistics.ordered_trend import falling
from thaw.statistics.sign_flips import adjusted

HEADER = "question claim encoder group tasks mean low high p left_out all_mean all_low all_high"


def build(data, spec: dict) -> TextTable:
    """Return a line for each claim, or with `ordered` one for each group and the test of the trend.

    Args: spec with `claims`, ids of config/findings.yaml, and `findings` as a finding_table has them. Raises UserError
    where no claim has a score.
    """
    encoders = list(dict.fromkeys(entry["encoder"] for entry in spec["findings"]))
    groups, lines = [], []
    for encoder in encoders:
        mine = {entry["id"]: entry for entry in spec["findings"] if entry["encoder"] == encoder}
        entries = [mine[name] for name in spec["claims"] if name in mine]
        scored = [(entry, *_by_task(data, entry, spec["labels"])) for entry in entries]
        scored = [(entry, values, left_out) for entry, values, left_out in scored if values]
        if scored:
            rows, more = (_trend if spec.get("ordered") else _means)(scored, spec)
            name = wording.label(spec["labels"], "encoders", encoder) if len(encoders) > 1 else ""
            groups.append(Group(name, [], rows))
            lines += [[*line[:2], encoder, *line[2:]] for line in more]
    if not groups:
        raise UserError(f"an over_tasks_table needs scores for one of its claims: {', '.join(spec['claims'])}")
    trend = bool(spec.get("ordered"))
    titles = ("Mean", "p", "By task") if trend else ("Mean", "p", "Mean with those left out", "By task")
    of = "Tasks" if trend else "Claim"
    notes = _notes(trend) + undefined_note(data.runs, spec["labels"], "Contrasts leave these runs out")
    return text_table(spec, titles, groups, notes, HEADER, lines, of=of, sentences=True)


def _by_task(data, entry: dict, labels: dict) -> tuple[dict[str, float], dict[str, float]]:
    """Return a claim's contrast by task, the mean over seeds on its first test split, and that of tasks left out."""
    values, left_out = {}, {}
    for test in entry.get("tests", []):
        task = test["task"]
        if task in values or task in left_out:
            continue
        first = data.runs.loc[data.runs["kind"] == "run", "subset"].iloc[0]
        contrast = contrast_of(data, entry["encoder"], test | {"subset": first})
        if contrast and underfit(data.runs, entry["encoder"], test | {"subset": first}, labels):
            left_out[task] = contrast.mean
        elif contrast:
            values[task] = contrast.mean
    return values, left_out


def _means(scored: list[tuple], spec: dict) -> tuple[list, list]:
    """Return rows and lines of claims: the mean over tasks with its 95 % CI, p adjusted for all claims of the table."""
    tests = adjusted([values for _, values, _ in scored])
    rows, lines = [], []
    for (entry, values, left_out), (_, p) in zip(scored, tests, strict=True):
        mine = student_interval(list(values.values()))
        whole = student_interval([*values.values(), *left_out.values()])
        said = wording.number(p, 3) if len(values) >= FEWEST_SEEDS else wording.DASH
        cells = [
            wording.with_interval(*mine),
            said,
            wording.with_interval(*whole) if left_out else "",
            _tasks(values, left_out, spec["labels"]),
        ]
        rows.append(text_row(entry["claim"], cells))
        lines.append(_line("mean", entry["id"], "", values, mine, p, left_out, whole))
    return rows, lines


def _trend(scored: list[tuple], spec: dict) -> tuple[list, list]:
    """Return a row for each group of tasks in order, and one for the test that the contrast falls over them."""
    values = {task: value for _, by_task, _ in reversed(scored) for task, value in by_task.items()}
    left_out = {task: value for *_, tasks in scored for task, value in tasks.items() if task not in values}
    ordered = spec["ordered"].items()
    grouped = {name: {task: values[task] for task in tasks if task in values} for name, tasks in ordered}
    p = falling([list(group.values()) for group in grouped.values()])
    rows, lines, names = [], [], " ".join(entry["id"] for entry, *_ in scored)
    for name, group in grouped.items():
        mean = float(np.mean(list(group.values()))) if group else None
        rows.append(text_row(name, [wording.number(mean), "", _tasks(group, {}, spec["labels"])]))
        lines.append(_line("group", names, name, group, (mean, None, None), None, {}))
    without = _tasks({}, left_out, spec["labels"])
    rows.append(text_row("Falls from the first to the last", ["", wording.number(p, 3), without]))
    lines.append(_line("trend", names, "", values, (None, None, None), p, left_out))
    return rows, lines


def _tasks(values: dict[str, float], left_out: dict[str, float], labels: dict) -> str:
    shown = [f"{wording.task_name(labels, task)} {wording.number(value)}" for task, value in values.items()]
    shown += [
        f"{wording.task_name(labels, task)} left out ({wording.number(value)})" for task, value in left_out.items()
    ]
    return ", ".join(shown)


def _line(
    question: str,
    claim: str,
    group: str,
    values: dict,
    numbers: tuple,
    p: float | None,
    left_out: dict,
    whole=(None,) * 3,
) -> list:
    plain = ["" if number is None else f"{number:.4f}" for number in (*numbers, p, *whole)]
    return [question, claim, group, " ".join(values), *plain[:4], " ".join(left_out), *plain[4:]]


def _notes(trend: bool) -> list[str]:
    each = (
        "Of each task the contrast in points, the mean over its seeds or draws, on its first test split, of the first "
        "subset of training rows where there are several. Left out: "
        "tasks on which a strategy is underfit, with the contrast in parentheses."
    )
    if trend:
        return [each, "p: one-sided test of Jonckheere and Terpstra over tasks, exact, that it falls over the groups."]
    return [
        f"{each} Mean: over tasks, with its 95 % CI over tasks (Student's t). p: two-sided sign flips over tasks, "
        "adjusted for the claims about one encoder by step-down max-T; fewer than "
        f"{FEWEST_SEEDS} tasks decide nothing.",
    ]
