"""A table of rules that choose a strategy by validation: what each rule loses, and the training that it needs.

n seeds or draws, a points of strategies, m rules, t tasks.
"""

import numpy as np

from thaw.core.errors import UserError
from thaw.declarations.decision import FEWEST_OF_RULES
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.choice_points import Points, points_by_task
from thaw.outputs.frame.choices import WAYS
from thaw.outputs.frame.result_links import section_anchor
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.bootstrap import student_interval
from thaw.statistics.sign_flips import max_t

MEAN, COST = "Mean", "Cost"
HEADER = "subset encoder head rule task seeds regret cost"


def build(data, spec: dict) -> TextTable:
    """Return for every rule its regret by task, and its cost in units of one training of `reference`.

    Args: spec with `reference`, a strategy, and `rules`, [{label, among: strategies}]. Tasks without runs of the
    reference are left out. Raises UserError where no task has any.
    """
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    groups, lines, tasks, left_out = [], [], list(dict.fromkeys(summary["task"])), set()
    against = spec.get("against", spec["rules"][0]["label"])
    ways = {rule.get("way", "best") for rule in spec["rules"]}
    for group, name in aggregate.group_names(summary, spec["labels"]).items():
        points = points_by_task(data, spec, group, spec["reference"], ways)
        if points:
            rules = [(rule["label"], _outcomes(rule, points, spec["reference"])) for rule in spec["rules"]]
            left_out |= {label for label, outcomes in rules if len(outcomes) < len(points)}
            rules = [(label, outcomes) for label, outcomes in rules if len(outcomes) == len(points)]
            groups += [Group(name, [], _rows(rules, tasks, group, against))] if rules else []
            lines += [[*group, label, *_line(*line)] for label, outcomes in rules for line in outcomes.values()]
    if not lines:
        raise UserError(f"a rule_table needs runs of {spec['reference']} and of the strategies of each rule")
    titles = [*(wording.task_name(spec["labels"], task) for task in tasks), MEAN, COST, f"p against {against}"]
    return text_table(spec, titles, groups, _notes(spec, against, left_out), HEADER, lines)


def _outcomes(rule: dict, points: dict[str, Points], whole: str) -> dict[str, tuple]:
    """Return by task what the CSV says of a rule: task, seeds, regret and cost."""
    outcomes = {}
    for task, one in points.items():
        if taken := WAYS[rule.get("way", "best")](rule, points, task, whole):
            outcomes[task] = (task, len(one.test), one.regret(taken.points), taken.cost)
    return outcomes


def _line(task: str, seeds: int, *numbers: float) -> list:
    return [task, seeds, *("" if np.isnan(number) else f"{number:.4f}" for number in numbers)]


def _rows(rules: list[tuple[str, dict]], tasks: list[str], group: tuple, against: str) -> list[Row]:
    """Return the lines of the rules: regret by task, their mean with its interval, mean cost, and p over tasks.

    Both means are over the tasks that have a regret; where none has, costs are over all. A regret is of all runs of its
    task and group, so it leads to all of them.
    """
    regrets = np.array([[outcome[2] for outcome in outcomes.values()] for _, outcomes in rules])  # [m, t]
    judged = ~np.isnan(regrets).any(0)
    regrets, counted = regrets[:, judged], judged if judged.any() else ~judged
    labels = [label for label, _ in rules]
    others = [place for place, label in enumerate(labels) if label != against]
    adjusted = {}
    if against in labels and others and regrets.size:
        differences = regrets[others] - regrets[labels.index(against)]
        adjusted = dict(zip(others, max_t(differences.T)[1], strict=True))
    rows = []
    for place, (label, outcomes) in enumerate(rules):
        cells = [
            _regret(outcomes[task][2], section_anchor(task, group)) if task in outcomes else None for task in tasks
        ]
        cost = float(np.array([outcome[3] for outcome in outcomes.values()])[counted].mean())
        p = wording.number(adjusted.get(place), 3)
        mean = student_interval(regrets[place])
        cells += [
            TextCell(wording.with_interval(*mean), mean[0]),
            TextCell(f"{cost:.2f}", cost),
            TextCell(p),
        ]
        rows.append(Row({}, label, cells))
    return rows


def _regret(points: float, anchor: str) -> TextCell:
    return TextCell(wording.number(points), points, link=anchor)


def _notes(spec: dict, against: str, left_out: set[str]) -> list[str]:
    lacking = (
        [f"Left out, since some task lacks what they need: {wording.listing(sorted(left_out))}."] if left_out else []
    )
    whole = wording.label(spec["labels"], "strategies", spec["reference"])
    return [
        "Regret in points: the score of the strategy that is best on average, less that of the one which the rule "
        "takes, the best on validation among its strategies. The rule chooses in one draw and is scored in the others; "
        "the best one is selected in half of those and scored in the other half. So few draws do not always select the "
        "best one: regrets are too low, for all rules alike, and may be below 0; differences between rules are not. It "
        f"needs {FEWEST_OF_RULES} draws or seeds.",
        f"Cost: the prices of all trainings that the rule needs, in units of that of one {whole}.",
        f"{MEAN}: over the tasks that have a regret, with its 95 % CI over tasks (Student's t); {COST}: over the same "
        f"tasks, over all where none has a regret. p: two-sided sign flips over tasks against "
        f"the rule {against}, adjusted for the rules of the same group (step-down max-T).",
        *lacking,
    ]
