"""The arms of a decision from the runs of an experiment: its strategies and the baselines that use no encoder."""

from dataclasses import replace

import numpy as np

from thaw.compute_cost.deployment import Deployment
from thaw.core.errors import UserError
from thaw.decision.arms import BELOW_BASELINE, Arm, FoldScores, arm_name, placed
from thaw.decision.decide import decide
from thaw.decision.prior import expected
from thaw.decision.record import (
    NO_PREDICTIONS,
    NOT_SELECTED,
    NOT_TRAINED,
    OTHER_ROWS,
    UNDEFINED,
    CurvePoints,
    TaskAnswer,
)
from thaw.evaluation.calibration import Calibration
from thaw.outputs.frame import aggregate
from thaw.outputs.frame.paired_differences import usual_flags
from thaw.outputs.frame.prediction_files import PredictionFiles
from thaw.outputs.frame.price import FITTED, extraction_rate
from thaw.outputs.frame.runs_frame import CELL, in_role, of_cell
from thaw.statistics.bootstrap import Interval
from thaw.words import wording

BASELINES = ("majority", "bag_of_words", "cosine")
OF_ENCODER = "cosine"  # trains nothing, and has the price of the encoder's pass


def answers(data, spec: dict) -> list[TaskAnswer]:
    """Return the answer for each task and group of runs that has a run with a score on validation.

    Args: OutputData; the spec of an advice_table, or what of it is read: labels, order, and the keys of AdviceOptions.
    """
    runs, labels = data.runs, spec["labels"]
    summary = aggregate.summarise(runs, "test", spec["order"])
    splits: dict[str, list] = {}
    for column in aggregate.columns(summary, labels):
        splits.setdefault(column.task, []).append(column)
    groups, made = aggregate.group_names(summary, labels), []
    for task, columns in splits.items():
        for group, name in groups.items():
            mine = aggregate.runs_of(summary, group)
            rows = list(mine[(mine["task"] == task) & (mine["split"] == columns[0].split)].itertuples())
            arms = TaskArms(rows, runs, task, group, data.predictions)
            if any(arm.name in arms.rows for arm in arms.arms):
                arms.leave_out_unselected(mine)
                made.append(_answer(arms, columns, name, spec))
    return made


def _answer(of: "TaskArms", columns: list, group: str, spec: dict) -> TaskAnswer:
    labels = spec["labels"]
    decision = decide(of.arms, spec.get("within", 0.0), spec.get("price_weight", 0.0))
    names = {name: aggregate.row_name(row, labels) for name, row in (of.unselected | of.rows).items()}
    names |= {name: wording.BASELINE_LABELS[name] for name in BASELINES}
    title = wording.task_name(labels, of.task) + f" ({wording.SYNTHETIC})" * columns[0].synthetic
    subset, encoder, head = of.group
    return TaskAnswer(
        of.task,
        subset,
        encoder,
        head,
        f"{title}, {group}" if group else title,
        columns[0].metric,
        decision,
        names,
        {name: (row.strategy, row.variant) for name, row in of.rows.items()},
        {column.split: of.tested(decision.taken, column.split) for column in columns},
        tuple(of.left_out),
        of.single_class,
        of.curve,
        of.calibration(columns[0].split),
        of.deployment(spec.get("machine_hour"), spec.get("currency", "")),
    )


class TaskArms:
    """The arms of a task in one group of runs, over the most seeds that one of them has."""

    def __init__(self, rows: list, runs, task: str, group: tuple, predictions: PredictionFiles):
        """Read scores and predictions.

        Args: rows of the summary, one for each point of a strategy; runs as `read_runs` returns them; the task; its
        (subset, encoder, head); predictions of the runs.
        """
        self.runs = runs[runs["main"].astype(bool) & (runs["missing"] == "")]
        self.task, self.group, self.predictions = task, group, predictions
        self.rows = {arm_name(row.strategy, row.variant): row for row in rows}
        self.left_out: list[tuple[str, str]] = []
        self.unselected: dict[str, object] = {}  # of other tasks
        scored = {name: self._validated(row) for name, row in self.rows.items()}
        for name in [name for name, mine in scored.items() if mine.empty]:
            self._leave_out(name, NOT_TRAINED)
            scored.pop(name)
        # of one class a score may be undefined whatever is predicted: it counts as 0, and the answer says so
        undefined = [name for name, mine in scored.items() if mine["value"].isna().any()]
        nothing = bool(scored) and len(undefined) == len(scored)
        self.single_class = nothing or any(self._sees_one_class(mine) for mine in scored.values())
        for name in [] if self.single_class else undefined:
            self._leave_out(name, UNDEFINED)
            scored.pop(name)
        trained = [set(mine["seed"]) for name, mine in scored.items() if self.rows[name].optimizer != FITTED]
        sets = trained or [set(mine["seed"]) for mine in scored.values()]  # of ties that of most strategies
        self.seeds = max(sets, key=lambda own: (len(own), sets.count(own)), default=set())
        self._curves: list[CurvePoints] = []
        shared = [mine for name, mine in scored.items() if _is_shared(mine, self.rows[name])]
        self.joint = any(self._known_folds(mine) for mine in [*shared, *map(self._validated_baseline, BASELINES)])
        arms = [arm for name, mine in scored.items() for arm in self._arm(name, mine, self.rows[name])]
        self.arms = self._flagged([*self._baselines(), *arms])
        kept = {arm.name for arm in self.arms}
        self.curve = max((one for one in self._curves if one.arm in kept), key=lambda one: one.score, default=None)

    def tested(self, name: str, split: str) -> Interval | None:
        """Return the score of an arm on a test split with its 95 % CI; None where the score of a seed is undefined."""
        rows = self._of_baseline(name) if name in BASELINES else self._of(self.rows[name], self.runs)
        rows = rows[rows["split"] == split].sort_values("seed")
        if rows.empty or rows["value"].isna().any():
            return None
        return self.predictions.resampled([(100.0, rows)], rows["metric"].iloc[0], split).ci

    def calibration(self, split: str) -> dict[str, Calibration]:
        """Return by arm how far its probabilities are true, of those that have some. Args: a test split."""
        return {arm.name: made for arm in self.arms if (made := self._calibrated(arm.name, split))}

    def _calibrated(self, name: str, split: str) -> Calibration | None:
        rows = self._of_baseline(name) if name in BASELINES else self._of(self.rows[name], self.runs)
        tested, validated = rows[rows["split"] == split], rows[in_role(rows, "validation")]
        seeds = tested["folder"][tested["folder"].isin(validated["folder"])]
        of_split = dict(zip(validated["folder"], validated["split"], strict=True))
        if split in of_split.values():
            return None  # a temperature is not fitted on the rows that it is judged on
        pairs = [(self.predictions.confidences(f, split), self.predictions.confidences(f, of_split[f])) for f in seeds]
        if not pairs or any(side is None for pair in pairs for side in pair):
            return None
        return Calibration.of(*zip(*pairs, strict=True))

    def deployment(self, hour: float | None, currency: str) -> dict[str, Deployment]:
        """Return by arm what serving it takes. Args: the price of an hour of the machine, and its currency."""
        rate, made = extraction_rate(self.runs[self.runs["encoder"] == self.group[1]]), {}
        for name, row in ((arm.name, self.rows[arm.name]) for arm in self.arms if arm.name in self.rows):
            shared = (
                self._of(row, self.runs)["after_flops"].eq(0).all()
            )  # what started elsewhere has layers of that too
            own = row.parameters if shared else float("nan")
            made[name] = Deployment.of(row.inference, rate, own, hour, currency)
        return made

    def leave_out_unselected(self, group) -> None:
        """Note what other tasks have and this one could have. Args: all rows of the summary of this group of runs."""
        pairs = any(row.pairs for row in self.rows.values())
        others = group[(group["task"] != self.task) & (pairs | (group["pairs"].fillna("") == ""))]
        rows = {arm_name(row.strategy, row.variant): row for row in others.itertuples()}
        self.unselected = {name: row for name, row in rows.items() if name not in self.rows}
        for name in self.unselected:
            self._leave_out(name, NOT_SELECTED)

    def _of(self, row, runs):
        return of_cell(runs, [getattr(row, name) for name in CELL])

    def _validated(self, row):
        mine = self._of(row, self.runs[(self.runs["kind"] == "run") & in_role(self.runs, "validation")])
        return mine.sort_values("seed")

    def _of_baseline(self, name: str):
        subset, encoder, _ = self.group
        mine = self.runs[(self.runs["kind"] == "baseline") & (self.runs["strategy"] == name)]
        return mine[(mine["task"] == self.task) & (mine["subset"] == subset) & mine["encoder"].isin(["", encoder])]

    def _sees_one_class(self, validated) -> bool:
        try:
            return self.predictions.has_one_class(validated)
        except UserError:  # no predictions
            return False

    def _leave_out(self, name: str, why: str) -> None:
        self.left_out.append((name, why))

    def _arm(self, name: str, validated, row=None) -> list[Arm]:
        """Return a strategy, or with no row of the summary a baseline; nothing where it has no predictions."""
        metric, split = validated["metric"].iloc[0], validated["split"].iloc[0]
        try:
            by_row = 100 * self.predictions.by_row(validated, metric, split, joint=self.joint)
        except UserError:
            self._leave_out(name, NO_PREDICTIONS)
            return []
        rows, scores = self.predictions.count(validated, split), 100 * validated["value"].to_numpy(float)
        seeds = len(scores)
        shared = row is not None and _is_shared(validated, row)
        if self.seeds <= set(validated["seed"]) and not shared:
            kept = validated["seed"].isin(self.seeds).to_numpy()
            scores, by_row, seeds = scores[kept], by_row[kept], len(self.seeds)
        else:  # a shared fit, a baseline, a strategy without some of the seeds: the mean represents all
            scores, by_row = np.nan_to_num(scores).mean(keepdims=True), np.nan_to_num(by_row).mean(0)[None]
        if row is None:
            of_encoder = name == OF_ENCODER
            price = float(np.nan_to_num(validated["price_seconds"].median())) if of_encoder else 0.0
            return [Arm(name, scores, by_row, rows, price, encoder=of_encoder, folds=self._folds(name, validated))]
        flags = () if self.single_class else usual_flags(validated["flags"])  # whoever predicts that class is right
        folds = self._folds(name, validated) if shared else None
        task_type = self.predictions.task_type(validated["folder"].iloc[0])
        gain = expected(self.group[1], task_type, name, row.thawed > 0)
        pairs = row.pairs if isinstance(row.pairs, str) else ""
        converged = row.optimizer == FITTED
        return [
            Arm(
                name, scores, by_row, rows, row.price, converged, True, flags, gain, pairs, seeds, folds, row.parameters
            )
        ]

    def _folds(self, name: str, validated) -> FoldScores | None:
        """Return the out-of-fold scores of a fit that all seeds share; None where validation chose its settings."""
        if (known := self._known_folds(validated)) is None:
            return None
        metric = validated["metric"].iloc[0]
        score = 100 * (known["scores"][metric] or 0.0)
        if half := known.get("half"):
            points = (half["fitted"], 100 * (half["scores"][metric] or 0.0), known["fitted"], score)
            self._curves.append(CurvePoints(name, *points))
        return FoldScores(score, 100 * self.predictions.by_row_folds(validated[:1], metric)[0], known["rows"])

    def _known_folds(self, validated) -> dict | None:
        return None if validated.empty else self.predictions.cross_validated(validated["folder"].iloc[0])

    def _validated_baseline(self, name: str):
        mine = self._of_baseline(name)
        return mine[in_role(mine, "validation")]

    def _baselines(self) -> list[Arm]:
        arms = []
        for name in BASELINES:
            mine = self._validated_baseline(name)
            arms += [] if mine.empty else self._arm(name, mine)
        return arms

    def _flagged(self, arms: list[Arm]) -> list[Arm]:
        """Return the arms on the same rows of validation, those that no baseline lets pass with a flag."""
        sizes = [arm.rows for arm in arms if arm.encoder]
        usual = max(set(sizes), key=sizes.count, default=0)
        for arm in [arm for arm in arms if arm.rows != usual]:
            self._leave_out(arm.name, OTHER_ROWS)
        arms = [arm for arm in arms if arm.rows == usual]
        if not arms:
            return []
        levels = dict(zip([arm.name for arm in arms], placed(arms).scores.mean(1), strict=True))
        least = max((levels[arm.name] for arm in arms if not arm.encoder), default=-np.inf)
        dearest = np.nanmax([arm.price for arm in arms if arm.price == arm.price], initial=0.0)
        return [
            replace(
                arm,
                flags=arm.flags + (BELOW_BASELINE,) * bool(arm.encoder and levels[arm.name] < least),
                price=arm.price if arm.price == arm.price else float(dearest),  # unknown: nothing is taken for it
            )
            for arm in arms
        ]


def _is_shared(validated, row) -> bool:
    """Tell whether all seeds of a strategy share one fit; draws of the training rows have fits of their own."""
    return row.optimizer == FITTED and np.ptp(validated["value"].to_numpy(float)) == 0
