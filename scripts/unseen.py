"""The hypotheses of unseen.yaml and of six smaller experiments, written before their runs, on the records.

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
NOISY = {"subj": "SUBJ", "ag_news": "AG News"}
FROZEN, CORAL = "vectors_frozen", "full_coral_stsb"
SIZES = (100, 300, 1000, 3500)
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

    Args: the record of the standard set alone; see `standard`.
    """
    lines = [["", "loses, test", "loses, reserved", "worst task", "price, in full fine-tunings"]]
    for rule in RULES:
        lost: dict[str, list] = {role: [] for role in ROLES}
        prices = []
        for task in record.tasks:
            taken = [_taken(record, rule, task, number) for number in range(len(record.draws))]
            for role, losses in lost.items():
                mine = zip(record.draws, taken, strict=True)
                losses.append(np.mean([record.lost(task, role, (draw,))[arm] for draw, (arm, _) in mine]))
            prices.append(np.mean([record.price(task, tried) for _, tried in taken]))
        both = np.mean(list(lost.values()), axis=0)
        worst = f"{number(both.max())} ({task_label(record.tasks[both.argmax()])})"
        lines.append([rule, *(number(np.mean(lost[role]), 2) for role in ROLES), worst, number(np.mean(prices), 2)])
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


def of_draws(record: Record, task: str, rows: int, arm: str) -> list:
    """Return the lines of a strategy on the official test, by draw. Args: the number of labelled rows."""
    return [record.lines[task, f"n{rows}_r{draw}", arm, "test"] for draw in (1, 2, 3)]


def shown(lines: list) -> str:
    """Return the mean over draws of runs."""
    return mean([100 * line.value for line in lines])


def above(lines: list, others: list) -> list:
    """Return the pairs of lines that `difference` takes, of one test."""
    return [[pair] for pair in zip(lines, others, strict=True)]


def told(found: dict[tuple, Resampled]) -> dict[tuple, str]:
    """Return differences as printed, with one 95 % interval for all."""
    return dict(zip(found, map(printed, jointly(list(found.values()))), strict=True))


def less(arm: str, other: str) -> str:
    """Return the name of a difference of two strategies."""
    return f"{label(arm)} less {label(other)[0].lower()}{label(other)[1:]}"


def worth(record: Record) -> list[list[str]]:
    """Return by task and number of labels what thawing gives, and what more labels give the probe on all layers."""
    places = [(task, rows) for task in record.tasks for rows in SIZES]
    found: dict[tuple, Resampled] = {}
    for task, rows in places:
        probe = of_draws(record, task, rows, PROBES[1])
        found[task, rows, "thawing"] = difference(above(of_draws(record, task, rows, FULL), probe))
        if rows < SIZES[-1]:
            more = of_draws(record, task, SIZES[SIZES.index(rows) + 1], PROBES[1])
            found[task, rows, "labels"] = difference(above(more, probe))
    differences = told(found)
    lines = [["", "linear probe, all layers", "thawing gives", "the next larger number of labels gives"]]
    for task, rows in places:
        cells = [differences.get((task, rows, what), "–") for what in ("thawing", "labels")]
        lines.append([f"{task_label(task)}, {rows:,}", shown(of_draws(record, task, rows, PROBES[1])), *cells])
    return lines


def noise(record: Record) -> list[list[str]]:
    """Return scores with clean and noisy labels and what noise costs; and by how much more it costs fine-tuning."""
    names, pairs = NOISY, {}
    for task in names:
        for arm in (*PROBES, FULL):
            pairs[task, arm] = [of_draws(record, f"{task}_{kind}", 1000, arm) for kind in ("noisy", "split")]
    found: dict[tuple, Resampled] = {place: difference(above(*both)) for place, both in pairs.items()}
    for task in names:
        for arm in PROBES:
            full, probe = (above(*pairs[task, one]) for one in (FULL, arm))
            found[task, FULL, arm] = difference(full, less=probe)
    differences = told(found)
    lines = [["", *(f"{name}, {what}" for name in names.values() for what in ("clean", "noisy", "difference"))]]
    for arm in (*PROBES, FULL):
        both = {task: pairs[task, arm] for task in names}
        cells = [[shown(clean), shown(noisy), differences[task, arm]] for task, (noisy, clean) in both.items()]
        lines.append([label(arm), *sum(cells, [])])
    for arm in PROBES:
        cells = [["", "", differences[task, FULL, arm]] for task in names]
        lines.append([less(FULL, arm), *sum(cells, [])])
    return lines


def noisy(record: Record) -> list[list[str]]:
    """Return differences of strategies with noisy labels, which the sentences about levels are about."""
    asked = ((FULL, PROBES[0]), (FULL, PROBES[1]), (PROBES[0], PROBES[1]))
    found: dict[tuple, Resampled] = {}
    for pair in asked:
        for task in NOISY:
            sides = (of_draws(record, f"{task}_noisy", 1000, arm) for arm in pair)
            found[task, *pair] = difference(above(*sides))
    differences = told(found)
    lines = [["With noisy labels", *NOISY.values()]]
    return [*lines, *([less(*pair), *(differences[task, *pair] for task in NOISY)] for pair in asked)]


def compared(frame: pd.DataFrame, by: str, sides: dict[str, tuple], asked: dict[str, tuple]) -> list[list[str]]:
    """Return scores of some sides by task, and the differences that were asked for.

    Args: by, head or encoder; of a side its head or encoder and its strategy; two sides, or two pairs of them whose
    differences are compared.
    """
    tasks = list(frame["task"].unique())
    of = {name: Record(frame[frame[by] == name]) for name, _ in sides.values()}
    runs = {(side, task): of_draws(of[name], task, 1000, arm) for side, (name, arm) in sides.items() for task in tasks}
    differences = told(
        {
            (name, task): difference(*(above(runs[one, task], runs[other, task]) for one, other in pairs))
            for name, pairs in asked.items()
            for task in tasks
        }
    )
    lines = [["", *map(task_label, tasks)]]
    lines += [[side, *(shown(runs[side, task]) for task in tasks)] for side in sides]
    return [*lines, *([name, *(differences[name, task] for task in tasks)] for name in asked)]


def heads(frame: pd.DataFrame) -> list[list[str]]:
    """Return both heads on a frozen and on a tuned encoder."""
    sides = {
        "Frozen, linear head": ("linear_mean", FROZEN),
        "Frozen, BiLSTM": ("bilstm", FROZEN),
        "Tuned, linear head": ("linear_mean", FULL),
        "Tuned, BiLSTM": ("bilstm", FULL),
    }
    asked = {
        "Frozen: BiLSTM less linear head": (("Frozen, BiLSTM", "Frozen, linear head"),),
        "Tuned: BiLSTM less linear head": (("Tuned, BiLSTM", "Tuned, linear head"),),
        "Frozen with BiLSTM, less tuned with linear head": (("Frozen, BiLSTM", "Tuned, linear head"),),
    }
    return compared(frame, "head", sides, asked)


def recurrent(frame: pd.DataFrame) -> list[list[str]]:
    """Return a recurrent encoder and a transformer, frozen and tuned, pretrained and random."""
    encoders = {"Recurrent": "local_recurrent", "Transformer": "local_decoder"}
    arms = {"probe": PROBES[0], "probe, all layers": PROBES[1], "tuned": "vectors_tuned"}
    starts = {"": "", ", random": "_random"}
    sides = {
        f"{name}{start}, {what}": (f"{encoder}{suffix}", arm)
        for start, suffix in starts.items()
        for name, encoder in encoders.items()
        for what, arm in arms.items()
    }
    tuned, probed = ([f"{name}, {what}" for name in encoders] for what in ("tuned", "probe, all layers"))
    gains = tuple(zip(tuned, probed, strict=True))
    asked = {
        "Probe, all layers: recurrent less transformer": (probed,),
        "Tuned: recurrent less transformer": (tuned,),
        "What tuning adds to the probe on all layers: recurrent less transformer": gains,
        **{f"{name}, tuned: less random": ((f"{name}, tuned", f"{name}, random, tuned"),) for name in encoders},
    }
    titles, *lines = compared(frame[frame["kind"] == "run"], "encoder", sides, asked)
    tests = frame[frame["role"] == "test"].assign(value=100 * frame["value"])
    for point in ("bag_of_words", "majority"):
        of = tests[tests["strategy"] == point]
        lines.insert(0, [label(point), *(mean(of.loc[of["task"] == task, "value"]) for task in frame["task"].unique())])
    return [titles, *lines]


def large_heads(frame: pd.DataFrame) -> list[list[str]]:
    """Return three heads on few rows of SICK-R, without and with CORAL, also on STS-B, its target.

    Rows of STS-B are not in the record, so that their differences have no interval.
    """
    names = {"linear_mean": "Linear head", "bilstm": "BiLSTM", "bimpm": "BiMPM"}
    runs = {(line.head, line.strategy, line.split): line for line in frame.itertuples()}
    splits = ("test", "stsb/test")
    lines = [["100 pairs of SICK-R", "SICK-R", "STS-B"]]
    cosine = {line.split: line for line in frame[frame["strategy"] == "cosine"].itertuples()}
    lines.append(["No head: the cosine of frozen vectors", *(shown([cosine[split]]) for split in splits)])
    for head, name in names.items():
        for arm, said in ((FULL, name), (CORAL, f"{name}, CORAL")):
            lines.append([said, *(shown([runs[head, arm, split]]) for split in splits)])
    asked = {f"{names[head]} less linear head": ((head, FULL), ("linear_mean", FULL)) for head in ("bilstm", "bimpm")}
    asked |= {f"{name}: what CORAL adds": ((head, CORAL), (head, FULL)) for head, name in names.items()}
    asked["BiMPM, CORAL, less linear head"] = (("bimpm", CORAL), ("linear_mean", FULL))
    found = {said: tuple([runs[*side, "test"]] for side in sides) for said, sides in asked.items()}
    differences = told({said: difference(above(*sides)) for said, sides in found.items()})
    for said, (one, other) in asked.items():
        away = 100 * (runs[*one, "stsb/test"].value - runs[*other, "stsb/test"].value)
        lines.append([said, differences[said], number(away)])
    return lines


def students(frame: pd.DataFrame) -> list[list[str]]:
    """Return each way to make a student by its score, and its difference to the untaught lowest layers."""
    runs = frame[(frame["kind"] == "run") & (frame["split"] == "test")].sort_values("seed")
    of = {arm: list(mine.itertuples()) for arm, mine in runs.groupby("point")}
    least = next(arm for arm in of if arm.startswith("drop_top"))
    differences = told({arm: difference(above(lines, of[least])) for arm, lines in of.items() if arm != least})
    lines = [["TREC-6, 250 questions", "accuracy", f"less {label(least)[0].lower()}{label(least)[1:]}", "seconds"]]
    for arm in sorted(of, key=lambda arm: -np.mean([line.value for line in of[arm]])):
        seconds = np.median([line.train for line in of[arm]])
        lines.append([label(arm), shown(of[arm]), differences.get(arm, "–"), f"{seconds:.0f}"])
    return lines


TABLES: dict[str, Callable[[], list[list[str]]]] = {
    "defaults": lambda: defaults(with_all_tasks(recorded("unseen"))),
    "unseen": lambda: scores(read()),
    "unseen_lora": lambda: lora_against_full(read()),
    "unseen_tuning": lambda: tuning(read()),
    "unseen_rates": lambda: rates(read()),
    "unseen_readings": lambda: readings(read()),
    "unseen_rules": lambda: rules(standard()),
    "unseen_losses": lambda: slopes(standard()),
    "unseen_sizes": lambda: worth(Record(recorded("unseen_sizes"))),
    "head_sizes": lambda: heads(recorded("head_sizes")),
    "large_heads": lambda: large_heads(recorded("head_rows_coral")),
    "students_presets": lambda: students(recorded("students_presets")),
    "recurrent": lambda: recurrent(recorded("recurrent")),
    "label_noise_levels": lambda: noisy(Record(recorded("label_noise"))),
    "label_noise": lambda: noise(Record(recorded("label_noise"))),
}
