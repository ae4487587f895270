"""Every row's answer of an experiment, from which its decisions and tables are made again without its results.

A record of docs/results (record.py) has a line for each run or baseline and scored split:

  type, corpus   of the task
  one_fit        all seeds share one convex fit
  train          seconds of training, with the runs that it started from and the trials of its search, as in its price;
                 by the clock in records made before label_noise, but not in that of unseen
  extraction     seconds of the encoder's passes over the rows that training and validation read, as in its price
  first, second  by row what the metric is made of: two counts of which it is a ratio (of accuracy right ones and all),
                 for MCC predicted and gold class, for Pearson's r both scores less their mean, in thousandths; of other
                 metrics nothing
  group          by row which rows are drawn together

and KEYS and COSTS as runs.csv has them. No text of a dataset is in it. Records from before 28 November 2026 have
answers of the grid alone.
"""

from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from record_names import RECORDS, catalogue
from thaw.core.files import read_json
from thaw.decision.arms import Arm
from thaw.decision.prior import KINDS
from thaw.declarations.splits import HELD_OUT, RESERVED
from thaw.evaluation.metrics import METRICS
from thaw.evaluation.weighted_metrics import Scorer, scorer
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.statistics.bootstrap import PartDraws, Resampled, resampled

KEYS = ["kind", "task", "metric", "subset", "encoder", "head", "strategy", "variant", "thawed", "seed", "split", "role"]
KEYS += ["value", "flags"]
COSTS = ["trained_parameters", "train_seconds", "peak_memory_mb"]
ROLES = ("test", RESERVED)
PROBES, LORA = ("linear_probe", "linear_probe_all_layers"), "lora"
TOP_2, FULL = "top_k k02", "full"
TRAINED = (TOP_2, LORA, FULL, "top_k_separate k02", "lora_separate", "full_separate")  # the last three of pairs
STANDARD = (*PROBES, *TRAINED)


def answers(runs: pd.DataFrame, results: Path) -> pd.DataFrame:
    """Return the lines of a record. Args: runs as `read_runs` returns them; the folder of runs and data."""
    scored = runs[runs["main"].astype(bool) & (runs["missing"] == "")]
    scored = scored[scored["role"].isin(["validation", *ROLES, "transfer"])]
    tasks = {folder: read_json(results / folder / "metrics.json")["spec"]["task"] for folder in set(scored["folder"])}
    lines = scored[KEYS + [cost for cost in COSTS if cost in scored]].reset_index(drop=True)
    for name in ("type", "corpus"):
        lines[name] = [tasks[folder][name] for folder in scored["folder"]]
    lines["one_fit"] = (scored["optimizer"] == "lbfgs").to_numpy()
    extracted = scored["extraction_price_seconds"].fillna(scored["extraction_seconds"])
    lines["train"] = (scored["price_seconds"] - extracted).fillna(0.0).to_numpy(float)
    worked = (extracted / scored["extraction_seconds"]).fillna(1.0)
    lines["extraction"] = (scored["extraction_whole_seconds"] * worked).fillna(0.0).to_numpy(float)
    files = PredictionFiles(results)
    places = scored[["folder", "metric", "split"]].itertuples(index=False)
    roles = lines["role"]  # rows of a transfer set are those of another dataset
    numbers = [
        (None,) * 3 if role == "transfer" else _numbers(files, *of) for role, of in zip(roles, places, strict=True)
    ]
    for name, column in zip(("first", "second", "group"), zip(*numbers, strict=True), strict=True):
        lines[name] = column
    return lines


def _numbers(files: PredictionFiles, folder: str, metric: str, split: str) -> tuple:
    counts = files.scorer(folder, metric, split).counts
    if metric == "mcc":
        gold, predicted, _ = np.split(counts, 3)
        pair = predicted.argmax(0), gold.argmax(0)
    elif metric == "pearson":
        pair = np.rint(1000 * counts[[2, 1]])
    elif counts is not None and len(counts) == 2:
        pair = counts
    else:
        return None, None, None
    return pair[0].astype(np.int16), pair[1].astype(np.int16), files.groups(folder, split).astype(np.int32)


def scorer_of(line, rows=slice(None)) -> Scorer:
    """Return a run's score as a function of weights. Args: its line of a record; which of its rows."""
    first, second = (np.asarray(side, float)[rows] for side in (line.first, line.second))
    if line.metric in ("mcc", "pearson"):
        return scorer({}, line.metric, second, first, ["0", "1"])
    return Scorer(METRICS[line.metric].value, np.stack([first, second]))


def with_points(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of a record with `point`: a strategy's id of today, and the point of its sweep."""
    today = {name: catalogue().id_of("strategies", name) for name in lines["strategy"].unique()}
    points = lines["variant"].where(lines["variant"] != "base", "")
    return lines.assign(point=(lines["strategy"].map(today) + " " + points).str.strip())


@cache
def recorded(name: str) -> pd.DataFrame:
    """Return the lines of a committed record, with points."""
    return with_points(pd.read_parquet(RECORDS / f"{name}.parquet"))


class Record:
    """What a record with answers holds of runs: scores by strategy, prices, and arms of a decision."""

    def __init__(self, lines: pd.DataFrame, counted: tuple[str, ...] = ("run",)):
        """Args: what `answers` returned, or a committed record; which kinds of its lines count as strategies."""
        runs = lines[lines["kind"].isin(counted) & (lines["role"] != "transfer")]
        runs = with_points(runs).rename(columns={"point": "arm"})
        self.lines = {(one.task, one.subset, one.arm, one.split): one for one in runs.itertuples()}
        self.tasks, self.draws = list(runs["task"].unique()), list(runs["subset"].unique())
        self.arms = {task: list(mine["arm"].unique()) for task, mine in runs.groupby("task")}
        self.kinds = {one.task: (KINDS[one.type], one.corpus) for one in runs.itertuples()}
        self.thawed = {(one.task, one.arm): one.thawed for one in runs.itertuples()}
        self.seconds = runs.groupby(["task", "arm"])[["train", "extraction"]].median()

    @cached_property
    def scores(self) -> dict[tuple[str, str], pd.DataFrame]:
        """Scores x 100 by (task, role), [draws, strategies]; of several test splits the mean."""
        made = [(*key[:3], line.role, score(line)) for key, line in self.lines.items()]
        table = pd.DataFrame(made, columns=["task", "draw", "arm", "role", "score"]).groupby(["task", "role"])
        return {key: mine.pivot_table("score", "draw", "arm")[self.arms[key[0]]] for key, mine in table}

    @cache  # noqa: B019, one record is read
    def price(self, task: str, arms: tuple[str, ...]) -> float:
        """Return what strategies cost together, which extract once, in units of one full fine-tuning."""
        seconds = self.seconds.loc[task]
        together = seconds.loc[list(arms), "train"].sum() + seconds.loc[list(arms), "extraction"].max()
        return float(together / seconds.loc[FULL].sum())

    @cached_property
    def gains(self) -> pd.DataFrame:
        """How far STANDARD strategies are above both probes, by kind of task, dataset and strategy."""
        lines = []
        for (task, _), scores in ((key, scores) for key, scores in self.scores.items() if key[1] in ROLES):
            means = scores.mean()
            above = means - means[list(PROBES)].mean()
            lines += [(*self.kinds[task], arm, above[arm]) for arm in TRAINED if arm in above]
        table = pd.DataFrame(lines, columns=["kind", "corpus", "arm", "gain"])
        return table.groupby(["kind", "corpus", "arm"], as_index=False)["gain"].mean()

    @cache  # noqa: B019
    def expected(self, task: str, arm: str) -> float:
        """Return the mean gain of a strategy on the other datasets of the kind of a task, as `prior` has it."""
        kind, corpus = self.kinds[task]
        others = self.gains[(self.gains["kind"] == kind) & (self.gains["corpus"] != corpus)]
        if others.empty or not self.thawed[task, arm]:
            return 0.0
        gains = others.groupby("arm")["gain"].mean()
        return float(gains.get(arm, gains.mean()))

    @cached_property
    def apart(self) -> pd.DataFrame:
        """Variances of strategies about what is expected of them by dataset: means over its tasks and tests.

        all: of all strategies; trained: of those of the standard set that train layers.
        """
        made = []
        for (task, role), scores in self.scores.items():
            if role in ROLES:
                away = pd.Series({arm: scores[arm].mean() - self.expected(task, arm) for arm in scores})
                made.append((self.kinds[task][1], away.var(), away[[arm for arm in TRAINED if arm in away]].var()))
        return pd.DataFrame(made, columns=["corpus", "all", "trained"]).groupby("corpus").mean()

    @cache  # noqa: B019
    def spread(self, task: str | None = None, of: str = "all") -> float:
        """Return the deviation of strategies about what is expected: of datasets the geometric mean.

        Strategies of one dataset may be many times as far apart as those of another, and none of them has the say.
        Args: a task whose dataset is left out; a column of `apart`.
        """
        others = self.apart[of].drop(self.kinds[task][1]) if task else self.apart[of]
        return float(np.exp(np.log(others).mean() / 2))

    @cache  # noqa: B019
    def lost(self, task: str, role: str, used: tuple[str, ...], among: tuple[str, ...] = ()) -> dict[str, float]:
        """Return the points that each strategy loses to the best one in draws that were not used to choose.

        Args: the draws that were; the strategies that there are, by default all.
        """
        scores = self.scores[task, role].drop(index=list(used))
        others = scores[list(among or scores)].to_numpy()
        halves = others[::2].mean(0), others[1::2].mean(0)
        best = sum(half[other.argmax()] for half, other in zip(halves, halves[::-1], strict=True)) / 2
        return dict(zip(among or scores, (best - others.mean(0)).tolist(), strict=True))

    @cache  # noqa: B019
    def shown(self, task: str, draw: str, rows: int) -> dict[str, Arm]:
        """Return all arms of a task as some validation rows of a draw show them; 1,000 rows are the reserved ones."""
        lines = {arm: self.lines[task, draw, arm, RESERVED if rows > 200 else HELD_OUT] for arm in self.arms[task]}
        group = next(iter(lines.values())).group
        of = np.sort(np.random.default_rng(rows).permutation(len(group))[:rows])
        by_row = 100 * _drawn(group[of].tobytes()).scores([scorer_of(line, of) for line in lines.values()])
        made = {}
        for (arm, line), drawn in zip(lines.items(), by_row, strict=True):
            scores, gain = np.array([score(line, of)]), self.expected(task, arm)
            price = self.price(task, (arm,))
            pairs = "separate" if "separate" in arm else ""
            made[arm] = Arm(arm, scores, drawn[None], len(of), price, line.one_fit, expected=gain, pairs=pairs)
        return made


def difference(pairs: list[list], less: list[list] = ()) -> Resampled:
    """Return what one strategy is above another in points, resampled by test rows and by runs.

    Args: by run of either, and by test of which it is the mean, the line of the one and that of the other; the same of
    two others, whose difference is taken off.
    """
    values, by_row = _paired(pairs)
    if less:
        values, by_row = (one - other for one, other in zip((values, by_row), _paired(less), strict=True))
    return resampled(values, by_row, sum(len(one.group) for one, _ in pairs[0]), paired=True)


def over_rows(runs: list[list]) -> Resampled:
    """Return a strategy's score in points, resampled by test rows and by runs. Args: by run its lines of each test."""
    values, by_row = _means([[(line,) for line in tests] for tests in runs])
    return resampled(values[:, 0], np.nan_to_num(by_row[:, 0]), sum(len(line.group) for line in runs[0]))


def _paired(pairs: list[list]) -> tuple[np.ndarray, np.ndarray]:
    """Return differences of scores [S], and on resampled rows [S, D]. Args: as of `difference`."""
    values, by_row = _means(pairs)
    return values[:, 0] - values[:, 1], np.nan_to_num(by_row[:, 0] - by_row[:, 1])


def _means(runs: list[list]) -> tuple[np.ndarray, np.ndarray]:
    """Return means over tests of K strategies in points, [S, K], and on resampled rows, [S, K, D].

    Args: by run and test the lines of the K strategies, which have the same rows.
    """
    values = [np.mean([[score(line) for line in lines] for lines in tests], axis=0) for tests in runs]
    by_row = [np.mean([_on_draws(lines, test) for test, lines in enumerate(tests)], axis=0) for tests in runs]
    return np.array(values), np.stack(by_row)


def _on_draws(lines, test: int) -> np.ndarray:
    """Return scores in points on resampled rows, [K, D]. Args: lines of one test; its number, whose rows are others."""
    return 100 * _drawn(lines[0].group.tobytes(), test).scores([scorer_of(line) for line in lines])


@cache
def _drawn(groups: bytes, test: int = 0) -> PartDraws:
    return PartDraws(np.frombuffer(groups, np.int32), random_seed=test)


def score(line, rows=slice(None)) -> float:
    """Return a run's score x 100 on some rows; an undefined one counts as 0."""
    of = scorer_of(line, rows)
    return 100 * float(np.nan_to_num(of(np.ones((1, of.counts.shape[1]))))[0])
