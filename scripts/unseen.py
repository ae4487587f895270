"""The hypotheses of unseen.yaml, written before its runs, on its record.

Scores are × 100. The score of a strategy on a task in a draw is the mean of the official test and the reserved rows.
*Tuned* is the rate with the highest score on the 200 rows of validation; of equal ones the middle, then the half.
record_tables.py prints the tables.
"""

from collections.abc import Callable
from functools import cache, cached_property

import numpy as np
import pandas as pd

import replay
from answers import FULL, LORA, PROBES, ROLES, STANDARD, TOP_2, Record, difference, over_rows, recorded
from record_names import label, mean, task_label
from thaw.decision import prior
from thaw.decision.decide import SPREAD
from thaw.decision.stops import SPREAD_OF_TRAINED
from thaw.outputs.frame.paired_differences import jointly, printed
from thaw.statistics.bootstrap import Resampled
from thaw.words import wording
from thaw.words.wording import number

RATES = ("", "_half", "_double")  # as the ids of the strategies end
TRAINED = {LORA: "LoRA", TOP_2: "top 2", FULL: "full"}
READINGS = (*PROBES, *(f"{one}_joint" for one in PROBES))  # of pairs, each text alone and both as one
MARGIN = 1.0  # points within which LoRA and full fine-tuning are equivalent
BY_READING = "Of pairs the better probe, else full fine-tuning"
README_ROWS = ("majority", "bag_of_words", *PROBES, LORA, TOP_2, FULL)
RULES = (replay.ADVISE, "Always full fine-tuning", BY_READING)


def at(point: str, rate: str) -> str:
    """Return a strategy at one of RATES. Args: its id, and the point of its sweep."""
    name, _, variant = point.partition(" ")
    return f"{name}{rate} {variant}".strip()


class Unseen(Record):
    """The record, with the prior of config: no task of it shaped that."""

    def expected(self, task: str, arm: str) -> float:
        """Return the gain over a probe that `thaw advise` expects of a strategy."""
        return prior.expected("minilm", self._types[task], arm, bool(self.thawed[task, arm]))

    def spread(self, task: str | None = None, of: str = "all") -> float:
        """Return the deviation about what is expected, as `thaw advise` has it."""
        return SPREAD if of == "all" else SPREAD_OF_TRAINED

    @cached_property
    def _types(self) -> dict[str, str]:
        return {task: line.type for (task, *_), line in self.lines.items()}

    def best(self, task: str, arms: tuple[str, ...]) -> list[str]:
        """Return by draw the strategy with the highest score on validation, of equal ones the first."""
        scores = self.scores[task, "validation"]
        return [max(arms, key=lambda arm, draw=draw: scores.loc[draw, arm]) for draw in self.draws]

    def tuned(self, task: str, point: str) -> list[str]:
        """Return by draw a strategy at the rate that validation chooses."""
        return self.best(task, tuple(at(point, rate) for rate in RATES))

    def mean(self, task: str, arms: str | list[str]) -> np.ndarray:
        """Return by draw the mean of both tests. Args: a strategy, or one for each draw."""
        both = [self.scores[task, role] for role in ROLES]
        return np.array([np.mean([one.loc[place] for one in both]) for place in self._by_draw(arms)])

    def score(self, task: str, arms: str | list[str]) -> Resampled:
        """Return the mean of both tests, resampled by rows and by draws. Args: as of `mean`."""
        return over_rows([[self.lines[task, *place, role] for role in ROLES] for place in self._by_draw(arms)])

    def _by_draw(self, arms: str | list[str]) -> list[tuple[str, str]]:
        arms = [arms] * len(self.draws) if isinstance(arms, str) else arms
        return list(zip(self.draws, arms, strict=True))

    def difference(self, task: str, arms: list[str], others: list[str]) -> Resampled:
        """Return what one strategy is above another, resampled by rows and by draws. Args: both by draw."""
        of = zip(self.draws, zip(arms, others, strict=True), strict=True)
        return difference(
            [[[self.lines[task, draw, arm, role] for arm in pair] for role in ROLES] for draw, pair in of]
        )


@cache
def read() -> Unseen:
    """Return the committed record of the draws with all rates."""
    return Unseen(with_all_tasks(with_all_rates(recorded("unseen"))))


def with_all_rates(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of draws in which strategies were trained at all rates."""
    return frame[frame["subset"].isin(frame.loc[frame["strategy"] == f"{FULL}_half", "subset"])]


def scores(record: Unseen) -> list[list[str]]:
    """Return tuned scores by task, means over draws ± their deviation."""
    lines = [["", *map(task_label, record.tasks)]]
    for point, said in (dict(zip(PROBES, ("linear probe", "linear probe, all layers"), strict=True)) | TRAINED).items():
        of = [record.mean(task, record.tuned(task, point) if point in TRAINED else point) for task in record.tasks]
        lines.append([said, *map(mean, of)])
    return lines


def defaults(frame: pd.DataFrame) -> list[list[str]]:
    """Return scores at default rates by task ± half of their 95 % interval, and means over tasks of what they cost.

    The interval is over test rows, and from three draws on over draws. The price is in full fine-tunings.
    """
    record = Unseen(frame, ("run", "baseline"))
    said = f"{len(record.draws)} draw{'s' if record.draws[1:] else ''}"
    lines = [[said, *map(task_label, record.tasks), "trainable<br>parameters", "price"]]
    for point in README_ROWS:
        of = [record.score(task, point) for task in record.tasks]
        cells = [f"{number(one.value)} ± {number((one.ci.high - one.ci.low) / 2)}" for one in of]
        costs = ["–", "–"]
        if point in STANDARD:
            price = np.mean([record.price(task, (point,)) for task in record.tasks])
            costs = [f"{frame.loc[frame['point'] == point, 'trained_parameters'].mean():,.0f}", number(price, 2)]
        lines.append([label(point), *cells, *costs])
    return lines


def lora_against_full(record: Unseen) -> list[list[str]]:
    """Return tuned LoRA less tuned full fine-tuning by task, and whether they are equivalent over the tasks."""
    tuned = [record.difference(task, *(record.tuned(task, of) for of in (LORA, FULL))) for task in record.tasks]
    lines = [["LoRA less full fine-tuning", "tuned, with one 95 % interval for all", "default rates"]]
    for task, one in zip(record.tasks, jointly(tuned), strict=True):
        default = record.mean(task, LORA) - record.mean(task, FULL)
        lines.append([task_label(task), printed(one), number(default.mean())])
    low, high = over_tasks([one.value for one in tuned])
    verdict = "equivalent" if low > -MARGIN and high < MARGIN else "equivalence not shown"
    shown = f"{number((low + high) / 2)} {wording.interval(low, high, 1)}: {verdict}"
    return [*lines, [f"mean of {len(tuned)} tasks, 90 % interval over tasks", shown, ""]]


def over_tasks(values: list[float]) -> tuple[float, float]:
    """Return the 90 % t interval of a mean over tasks, which is that of two one-sided tests at 5 %."""
    from scipy.stats import t

    reach = t.ppf(0.95, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values) - reach), float(np.mean(values) + reach)


def tuning(record: Unseen) -> list[list[str]]:
    """Return by task the order of strategies tuned and with default rates, and what tuning gains on average."""
    lines = [["", "tuned", "default rates", "the same first", "gain of tuning"]]
    same, gains = 0, []
    for task in record.tasks:
        tuned = {of: record.mean(task, record.tuned(task, of)).mean() for of in TRAINED}
        default = {of: record.mean(task, of).mean() for of in TRAINED}
        orders = [sorted(TRAINED, key=side.get, reverse=True) for side in (tuned, default)]
        gains.append(np.mean([tuned[of] - default[of] for of in TRAINED]))
        same += orders[0][0] == orders[1][0]
        shown = [", ".join(TRAINED[of] for of in order) for order in orders]
        lines.append([task_label(task), *shown, "yes" if orders[0][0] == orders[1][0] else "no", number(gains[-1], 2)])
    return [*lines, ["all", "", "", f"{same} of {len(record.tasks)}", number(np.mean(gains), 2)]]


def rates(record: Unseen) -> list[list[str]]:
    """Return by strategy and rate how far it is below the best rate of a task, in points on validation."""
    lines = [["", *map(task_label, record.tasks), "mean"]]
    said = {"_half": "half the rate", "": "the rate", "_double": "twice the rate"}
    for point, name in TRAINED.items():
        arms = {at(point, rate): f"{name}, {said[rate]}" for rate in said}
        scores = pd.DataFrame({task: record.scores[task, "validation"][list(arms)].mean() for task in record.tasks})
        below = scores.max() - scores
        lines += [[title, *map(number, [*below.loc[arm], below.loc[arm].mean()])] for arm, title in arms.items()]
    return lines


def readings(record: Unseen) -> list[list[str]]:
    """Return tuned full fine-tuning of pairs read as one text less the same of two texts, and less the better probe."""
    pairs = [task for task in record.tasks if f"{FULL}_separate" in record.arms[task]]
    found = []
    for task in pairs:
        cross, apart = (record.tuned(task, of) for of in (FULL, f"{FULL}_separate"))
        found += [record.difference(task, cross, other) for other in (apart, record.best(task, READINGS))]
    cells = list(map(printed, jointly(found)))
    titles = ["Full fine-tuning, pair as one text, less", "pair as two texts", "the better probe"]
    return [titles, *([task_label(task), *cells[2 * n : 2 * n + 2]] for n, task in enumerate(pairs))]


def rules(record: Unseen) -> list[list[str]]:
    """Return what rules lose to the best strategy of the other draws, and their price, by one draw and default rates.

    *In hindsight* the best is that of the very draws on which a rule is scored, on both tests.
    Args: the record of the standard set alone; see `standard`.
    """
    lines = [["", "loses, test", "loses, reserved", "worst task", "in hindsight", "price, in full fine-tunings"]]
    for rule in RULES:
        lost: dict[str, list] = {role: [] for role in ROLES}
        prices, hindsight = [], []
        for task in record.tasks:
            taken = [_taken(record, rule, task, number) for number in range(len(record.draws))]
            for role, losses in lost.items():
                mine = zip(record.draws, taken, strict=True)
                losses.append(np.mean([record.lost(task, role, (draw,))[arm] for draw, (arm, _) in mine]))
                others = {draw: record.scores[task, role].drop(index=draw).mean() for draw in record.draws}
                own = zip(record.draws, taken, strict=True)
                hindsight.append(np.mean([others[draw].max() - others[draw][arm] for draw, (arm, _) in own]))
            prices.append(np.mean([record.price(task, tried) for _, tried in taken]))
        both = np.mean(list(lost.values()), axis=0)
        worst = f"{number(both.max())} ({task_label(record.tasks[both.argmax()])})"
        means = [number(np.mean(part), 2) for part in (*lost.values(), hindsight, prices)]
        lines.append([rule, *means[:2], worst, *means[2:]])
    return lines


def _taken(record: Unseen, rule: str, task: str, draw: int) -> tuple[str, tuple[str, ...]]:
    """Return what a rule takes by the validation rows of a draw, and what it tries. Args: the number of the draw."""
    if rule == replay.ADVISE:
        return replay.advised(record, task, record.draws[draw], 0.0)
    if rule == BY_READING and f"{FULL}_separate" in record.arms[task]:
        return record.best(task, PROBES)[draw], PROBES
    return FULL, (FULL,)


def slopes(record: Unseen) -> list[list[str]]:
    """Return expected and realised losses with 200 rows of validation. Args: as `rules`."""
    lines = [["", "expected loss", "as it came", "slope"]]
    made = replay.calibration(replay.cases(record))
    for line in made[(made["rows"] == 200) & (made["strategies"] == "standard")].to_dict("records"):
        lines.append([replay.NAMED[line["split"]], *(number(line[f"all_{of}"], 2) for of in ("said", "came", "slope"))])
    return lines


def with_all_tasks(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of draws that all tasks have: a draw is recorded in parts."""
    tasks = frame[frame["point"] == FULL].groupby("subset")["task"].nunique()
    return frame[frame["subset"].isin(tasks.index[tasks == frame["task"].nunique()])]


def standard() -> Unseen:
    """Return the committed record with the standard set at default rates alone."""
    frame = with_all_tasks(recorded("unseen"))
    return Unseen(frame[frame["point"].isin(STANDARD)])


TABLES: dict[str, Callable[[], list[list[str]]]] = {
    "defaults": lambda: defaults(with_all_tasks(recorded("unseen"))),
    "unseen": lambda: scores(read()),
    "unseen_lora": lambda: lora_against_full(read()),
    "unseen_tuning": lambda: tuning(read()),
    "unseen_rates": lambda: rates(read()),
    "unseen_readings": lambda: readings(read()),
    "unseen_rules": lambda: rules(standard()),
    "unseen_losses": lambda: slopes(standard()),
}
