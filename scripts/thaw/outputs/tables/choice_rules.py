"""A table of rules that choose a strategy by validation: what each rule loses, and the training that it needs.

n seeds or draws, a points of strategies, m rules, t tasks.
"""

from dataclasses import dataclass

import numpy as np

from thaw.core.errors import UserError
from thaw.declarations.decision import FEWEST_OF_RULES
from thaw.outputs import wording
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.result_links import section_anchor
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.sign_flips import max_t

POINT = ["strategy", "variant"]
MEAN, COST, TEST = "Mean", "Cost", "p against the first"
HEADER = "subset encoder head rule task seeds regret cost cost_shared"


@dataclass(frozen=True)
class Points:
    """What the points of all strategies reach on a task, and take: scores by seed, seconds as medians over seeds.

    validation and test, frames [n, a] of scores x 100, of several test splits the mean; training [a], seconds;
    extraction [a, 2], seconds of the whole pass, and of a share of it.
    """

    validation: object
    test: object
    training: object
    extraction: object

    def of(self, strategies: list[str]) -> list[tuple]:
        """Return the points of some strategies that the task has."""
        return [point for point in self.test.columns if point[0] in strategies]

    def seconds(self, points: list[tuple]) -> np.ndarray:
        """Return the seconds [2] that some points take together; they share one extraction."""
        return self.training[points].sum() + self.extraction.loc[points].max().to_numpy()

    def regret(self, points: list[tuple]) -> float:
        """Return what is lost by taking the point that is best on validation, in points, as a mean over seeds; NaN for
        fewer than five seeds.

        The point is chosen in one seed and scored in the others, and so is the best one: selected in half of the others
        and scored in their other half, and the reverse. Else the best would be the luckiest.
        """
        if len(self.test) < FEWEST_OF_RULES:
            return np.nan
        lost = []
        for seed in self.test.index:
            others = self.test.drop(index=seed)
            halves = others.iloc[::2].mean(), others.iloc[1::2].mean()
            best = sum(half[other.idxmax()] for half, other in zip(halves, halves[::-1], strict=True)) / 2
            lost.append(best - others[self.validation.loc[seed, points].idxmax()].mean())
        return float(np.mean(lost))


def build(data, spec: dict) -> TextTable:
    """Return for every rule its regret by task, and its cost in units of one training of `whole`.

    Args: spec with `whole`, a strategy, and `rules`, [{label, among: strategies}]. Tasks without runs of `whole` are
    left out. Raises UserError where no task has any.
    """
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    groups, lines, tasks = [], [], list(dict.fromkeys(summary["task"]))
    for group, name in aggregate.group_names(summary, spec["labels"]).items():
        points = {task: one for task in tasks if (one := _points(data.runs, spec["split"], group, task))}
        points = {task: one for task, one in points.items() if one.of([spec["whole"]])}
        if points:
            rules = [(rule["label"], _outcomes(rule, points, spec["whole"])) for rule in spec["rules"]]
            rules = [(label, outcomes) for label, outcomes in rules if len(outcomes) == len(points)]
            groups += [Group(name, [], _rows(rules, tasks, group))] if rules else []
            lines += [[*group, label, *_line(*line)] for label, outcomes in rules for line in outcomes.values()]
    if not lines:
        raise UserError(f"a rule_table needs runs of {spec['whole']} and of the strategies of each rule")
    titles = [*(wording.task_name(spec["labels"], task) for task in tasks), MEAN, COST, TEST]
    return text_table(spec, titles, groups, _notes(spec), HEADER, lines)


def _points(runs, split: str, group: tuple, task: str) -> Points | None:
    """Return the points of a task and group, in the seeds that all of them have; None where it has no runs."""
    subset, encoder, head = group
    mine = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & runs["value"].notna() & (runs["task"] == task)]
    mine = mine[(mine["subset"] == subset) & (mine["encoder"] == encoder) & (mine["head"] == head)]
    frames = [
        100 * mine[mine["role"] == role].pivot_table("value", index="seed", columns=POINT).dropna()
        for role in ("validation", split)
    ]
    both = frames[0].index.intersection(frames[1].index)
    if both.empty:
        return None
    costs = mine.drop_duplicates([*POINT, "seed"]).groupby(POINT)
    extraction = costs[["extraction_whole_seconds", "extraction_seconds"]].median()
    training = costs[["train_seconds", "after_seconds"]].median().sum(axis=1)
    return Points(frames[0].loc[both], frames[1].loc[both], training, extraction)


def _outcomes(rule: dict, points: dict[str, Points], whole: str) -> dict[str, tuple]:
    """Return by task what the CSV says of a rule: task, seeds, regret and both costs."""
    outcomes = {}
    for task, one in points.items():
        among = one.of(rule["among"])
        if among:
            costs = one.seconds(among) / one.seconds(one.of([whole]))
            outcomes[task] = (task, len(one.test), one.regret(among), *costs)
    return outcomes


def _line(task: str, seeds: int, *numbers: float) -> list:
    return [task, seeds, *("" if np.isnan(number) else f"{number:.4f}" for number in numbers)]


def _rows(rules: list[tuple[str, dict]], tasks: list[str], group: tuple) -> list[Row]:
    """Return the lines of the rules: regret by task, their mean with its interval, mean cost, and p over tasks.

    A regret is of all runs of its task and group, so it leads to all of them.
    """
    regrets = np.array([[outcome[2] for outcome in outcomes.values()] for _, outcomes in rules])  # [m, t]
    regrets = regrets[:, ~np.isnan(regrets).any(0)]
    tested = len(rules) > 1 and regrets.size
    adjusted = max_t((regrets[1:] - regrets[0]).T)[1] if tested else [None] * len(rules)
    rows = []
    for place, (label, outcomes) in enumerate(rules):
        cells = [
            _regret(outcomes[task][2], section_anchor(task, group)) if task in outcomes else None for task in tasks
        ]
        alone, shared = (float(np.mean([outcome[n] for outcome in outcomes.values()])) for n in (3, 4))
        p = wording.number(adjusted[place - 1] if place else None, 3)
        cells += [_mean(regrets[place]), TextCell(f"{alone:.2f} ({shared:.2f})", alone), TextCell(p)]
        rows.append(Row({}, label, cells))
    return rows


def _regret(points: float, anchor: str) -> TextCell:
    return TextCell(wording.number(points), points, link=anchor)


def _mean(regrets: np.ndarray) -> TextCell:
    """Return the mean over tasks with its 95 % CI by Student's t; without one for a single task."""
    from scipy.stats import t

    n = len(regrets)
    middle = float(regrets.mean()) if n else None
    if n < 2:
        return TextCell(wording.number(middle), middle)
    half = float(t.ppf(0.975, n - 1) * regrets.std(ddof=1) / np.sqrt(n))
    return TextCell(f"{wording.number(middle)} {wording.interval(middle - half, middle + half)}", middle)


def _notes(spec: dict) -> list[str]:
    whole = wording.label(spec["labels"], "strategies", spec["whole"])
    return [
        "Regret in points: the score of the strategy that is best on average, less that of the one which the rule "
        "takes, the best on validation among its strategies. The rule chooses in one draw and is scored in the others; "
        "the best one is selected in half of those and scored in the other half. Below 0 the rule did better than that "
        f"by chance. It needs {FEWEST_OF_RULES} draws or seeds.",
        "Cost: median seconds of all trainings that the rule needs, and of the extraction of features once, in units "
        f"of one {whole}; in brackets with a share of the extraction.",
        f"{MEAN}: over tasks, with its 95 % CI over tasks (Student's t). p: two-sided sign flips over tasks against "
        "the first rule, adjusted for the table (step-down max-T).",
    ]
