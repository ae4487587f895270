#!/usr/bin/env python3
"""Replay the decision on the record of the grid: what it loses, and whether what it says of losses is what comes.

    python scripts/replay.py     from docs/results/grid.parquet

It decides by the validation rows of one draw, with one seed, and is scored on the other draws: on the official test and
on reserved rows. The best strategy is selected in half of those draws and scored in the other half, and the reverse: of
all draws it would be the luckiest. What the prior expects and its deviation are of other datasets. In
docs/results/grid it writes

  calibration.csv .png   expected losses against those that came, by number of validation rows; and in groups
  answer.txt             the answer on one task, as `thaw advise` prints it

and config/replay.json: by rule what it loses over all tasks, and its price in full fine-tunings (for `thaw advise`).
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from answers import FULL, PROBES, ROLES, STANDARD, TOP_2, Record, recorded, scorer_of
from record_names import HOME, catalogue, task_label
from thaw.core.files import write_json, write_text
from thaw.core.runtime import run_step
from thaw.decision.arms import Arm
from thaw.decision.decide import decide
from thaw.decision.record import TaskAnswer
from thaw.decision.stops import gain_of_unseen, has_to_gain
from thaw.declarations.splits import RESERVED
from thaw.outputs.figures import figure_style
from thaw.statistics.bootstrap import PartDraws, interval
from thaw.words import answer_text, wording
from thaw.words.wording import number

GRID, SUMMARY = HOME / "docs/results/grid", HOME / "config/replay.json"
ADVISE = "`thaw advise`"
SHOWN = ("trec6", "n1000_r1")  # the task and the draw whose answer the README shows
ROWS = (30, 60, 100, 200, 1000)  # of validation; 1,000 are the reserved rows, with the official test as the truth
OFF = 1.0  # points below the best from which on a choice counts as off
BINS = (0.05, 0.2, 0.5, 0.8)  # between groups of the chance to be the best
TICKS = (0, 1, 3, 10, 20)
PRINTED = (  # on the grid's page; the others are in config/replay.json
    "Always full fine-tuning",
    "Always top 2",
    "Both probes, the highest on validation",
    "Both probes and full, decision",
    ADVISE,
    f"{ADVISE}, points that a full fine-tuning has to gain: 1",
    "The standard set, the highest on validation",
    "The standard set, decision",
    "The standard set, decision within 1",
    "The standard set, decision without the prior",
    "All strategies, decision",
)
NAMED = {"test": "official test", RESERVED: "reserved rows"}


@dataclass(frozen=True)
class Rule:
    """How a strategy is chosen: of those `among` that a task has, by the decision with `within`, None for the highest.

    among: None for all. draws: how many are used. weight: the points that a full fine-tuning has to gain, by which
    `thaw advise` stops; None where all are tried.
    """

    label: str
    among: tuple[str, ...] | None = STANDARD
    within: float | None = None
    prior: bool = True
    draws: int = 1
    weight: float | None = None

    def taken(self, record: Record, task: str, draw: int) -> tuple[str, list[str], tuple[str, ...]]:
        """Return the strategy that is taken, the draws that were used, and the strategies that were tried.

        Args: the number of the first draw.
        """
        if self.weight is not None:
            taken, tried = advised(record, task, record.draws[draw], self.weight)
            return taken, [record.draws[draw]], tried
        tried = of_task(record, task, self.among)
        used = [record.draws[(draw + n) % len(record.draws)] for n in range(self.draws)]
        shown = [record.shown(task, one, 200) for one in used]
        arms = [_together([one[name] for one in shown]) for name in tried]
        if self.within is None:
            return max(arms, key=lambda arm: arm.scores.mean()).name, used, tried
        arms = arms if self.prior else [replace(arm, expected=0.0) for arm in arms]
        return decide(arms, self.within, spread=record.spread(task)).taken, used, tried


def of_task(record: Record, task: str, among: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return those of some strategies that a task has, from cheap to dear; None stands for all."""
    named = record.arms[task] if among is None else [name for name in among if name in record.arms[task]]
    return tuple(sorted(named, key=lambda name: record.price(task, (name,))))


def advised(record: Record, task: str, draw: str, weight: float) -> tuple[str, tuple[str, ...]]:
    """Return what `thaw advise` takes and tries with one seed: both probes, then what may gain most, while it may."""
    shown, spread, trained = record.shown(task, draw, 200), record.spread(task), record.spread(task, "trained")
    tried, left = PROBES, [name for name in of_task(record, task, STANDARD) if name not in PROBES]
    while True:
        decision = decide([shown[one] for one in tried], price_weight=weight, spread=spread)
        worth = {}
        for name in left:
            price = record.price(task, (*tried, name)) - record.price(task, tried)
            gain = gain_of_unseen(decision, shown[name].expected, shown[name].pairs, spread, trained)
            if gain >= has_to_gain(weight, price):
                worth[name] = gain
        if not worth:
            return decision.taken, tried
        tried = (*tried, max(worth, key=worth.get))
        left.remove(tried[-1])


def _together(arms: list[Arm]) -> Arm:
    """Return the same arm in several draws as one with so many seeds, none of which shares a fit with another."""
    if len(arms) == 1:
        return arms[0]
    scores, by_row = (np.concatenate([getattr(arm, name) for arm in arms]) for name in ("scores", "by_row"))
    return replace(arms[0], scores=scores, by_row=by_row, converged=False)


RULES = [
    Rule("Always full fine-tuning", (FULL,)),
    Rule("Always top 2", (TOP_2,)),
    Rule("Always the linear probe", PROBES[:1]),
    Rule("Always the linear probe on all layers", PROBES[1:]),
    Rule("Both probes, the highest on validation", PROBES),
    Rule("Both probes and full, the highest on validation", (*PROBES, FULL)),
    Rule("The standard set, the highest on validation"),
    Rule("All strategies, the highest on validation", None),
    Rule("Both probes and full, decision", (*PROBES, FULL), 0),
]
RULES += [
    Rule(ADVISE, weight=0.0),
    *(Rule(f"{ADVISE}, points that a full fine-tuning has to gain: {points}", weight=points) for points in (1, 3)),
]
for LABEL, AMONG in (("The standard set, decision", STANDARD), ("All strategies, decision", None)):
    RULES += [Rule(LABEL, AMONG, 0), *(Rule(f"{LABEL} within {points}", AMONG, points) for points in (1, 2))]
    RULES += [
        Rule(f"{LABEL} without the prior", AMONG, 0, prior=False),
        Rule(f"{LABEL}, two draws", AMONG, 0, draws=2),
    ]


def replay(record: Record) -> pd.DataFrame:
    """Return by rule and task the mean loss, the share of choices that are off, and both prices."""
    lines = []
    for rule, task in ((rule, task) for rule in RULES for task in record.tasks):
        taken = [rule.taken(record, task, draw) for draw in range(len(record.draws))]
        line = {"rule": rule.label, "task": task}
        for role in ROLES:
            mine = np.array([record.lost(task, role, tuple(used))[arm] for arm, used, _ in taken])
            line |= {role: mine.mean(), f"{role}_off": (mine > OFF).mean()}
        line["taken"] = np.mean([record.price(task, (arm,)) for arm, _, _ in taken])
        line["tried"] = np.mean([len(used) * record.price(task, tried) for _, used, tried in taken])
        lines.append(line)
    return pd.DataFrame(lines)


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """Return by rule the means over tasks, and the largest loss of a task. Args: what `replay` returns."""
    by_rule = lines.groupby("rule", sort=False)
    parts = []
    for role in ROLES:
        worst = lines.loc[by_rule[role].idxmax()].set_index("rule")[[role, "task"]]
        parts += [
            by_rule[[role, f"{role}_off"]].mean(),
            worst.set_axis([f"{role}_worst", f"{role}_worst_task"], axis=1),
        ]
    return pd.concat([*parts, by_rule[["taken", "tried"]].mean()], axis=1).reset_index().round(4)


def cases(record: Record) -> pd.DataFrame:
    """Return what is said of each strategy in each decision, and what it then lost on the other draws, by role.

    Columns: strategies, rows, said (expected loss), chance, cheaper (than what is taken), taken; by role its loss, and
    whether it is the best.
    """
    made = []
    for rows, task in ((rows, task) for rows in ROWS for task in record.tasks):
        for label, among in (("standard", of_task(record, task, STANDARD)), ("all", of_task(record, task, None))):
            for draw in record.draws:
                decision = decide([record.shown(task, draw, rows)[name] for name in among], spread=record.spread(task))
                came = {role: record.lost(task, role, (draw,), among) for role in ROLES}
                for arm in decision.arms:
                    line = {"strategies": label, "rows": rows, "task": task, "said": arm.loss, "chance": arm.chance}
                    line |= {"cheaper": arm.price < decision.answer.price, "taken": arm.name == decision.taken}
                    for role, losses in came.items():
                        line |= {role: losses[arm.name], f"{role}_best": losses[arm.name] <= min(losses.values())}
                    made.append(line)
    return pd.DataFrame(made)


def calibration(entries: pd.DataFrame) -> pd.DataFrame:
    """Return said and realised losses with the slope of the latter on the former. Args: what `cases` returns."""
    lines = []
    for (label, rows), mine in entries.groupby(["strategies", "rows"], sort=False):
        for role in ROLES[: 1 if rows > 200 else 2]:
            line = {"strategies": label, "rows": rows, "split": role}
            for what, part in (("all", mine), ("cheaper", mine[mine["cheaper"]]), ("taken", mine[mine["taken"]])):
                line |= {f"{what}_said": part["said"].mean(), f"{what}_came": part[role].mean()}
                if what != "taken":
                    line[f"{what}_slope"] = np.polyfit(part["said"], part[role], 1)[0]
            lines.append(line)
    return pd.DataFrame(lines).sort_values(["strategies", "rows"], ascending=[False, True], kind="stable").round(4)


def groups(entries: pd.DataFrame) -> pd.DataFrame:
    """Return the figure's points with 200 rows: eighths by expected loss, and bins of the chance to be the best."""
    lines = []
    for label, mine in entries[entries["rows"] == 200].groupby("strategies", sort=False):
        eighth = pd.qcut(mine["said"].rank(method="first"), 8, labels=False)
        bins = np.digitize(mine["chance"], BINS)
        for role in ROLES:
            for what, said, came, of in (("loss", "said", role, eighth), ("chance", "chance", f"{role}_best", bins)):
                for place, part in mine.groupby(of):
                    point = {"said": part[said].mean(), "came": part[came].mean(), "cases": len(part)}
                    lines.append({"what": what, "strategies": label, "split": role, "group": place} | point)
    return pd.DataFrame(lines)


def draw(points: pd.DataFrame, path: Path) -> None:
    """Draw said against realised losses and chances. Args: what `groups` returns; where the PNG goes."""
    with figure_style.style():
        figure, axes = figure_style.grid(["Expected loss, points", "Chance to be the best"])
        shown = list(points.groupby(["strategies", "split"], sort=False).groups)
        marks = figure_style.marks([" ".join(one) for one in shown])
        for axis, what, end in zip(axes, ("loss", "chance"), (25, 1), strict=True):
            axis.plot([0, end], [0, end], color=figure_style.GREY, linewidth=0.8)
            axis.set(xlabel="as printed", ylabel="as it came")
            if what == "loss":
                axis.set_xscale("symlog", linthresh=1), axis.set_yscale("symlog", linthresh=1)
                axis.set_xticks(TICKS, TICKS), axis.set_yticks(TICKS, TICKS)
            handles = []
            for label, split in shown:
                mine = points[(points["what"] == what) & (points["strategies"] == label) & (points["split"] == split)]
                colour, marker = marks[f"{label} {split}"]
                handles += axis.plot(mine["said"], mine["came"], color=colour, marker=marker, linewidth=0.8)
                handles[-1].set_label(f"{label} strategies, {NAMED[split]}")
        figure_style.legend(figure, handles)
        figure_style.freeze_layout(figure)
        figure.savefig(path, metadata={"Software": None})


def replay_rows(made: pd.DataFrame) -> list[list[str]]:
    """Return the rules that the page prints, as cells. Args: what `summary` returns."""
    titles = ["", "Test", "Worst task", "Off", "Reserved", "Worst task", "Off", "Price, taken", "Price, tried"]
    cells = []
    for line in made[made["rule"].isin(PRINTED)].to_dict("records"):
        row = [line["rule"]]
        for role in ROLES:
            label = task_label(line[f"{role}_worst_task"])
            worst = f"{number(line[f'{role}_worst'])} ({label})"
            row += [number(line[role], 2), worst, f"{100 * line[f'{role}_off']:.0f} %"]
        cells.append([*row, number(line["taken"], 2), number(line["tried"], 2)])
    return [titles, *cells]


def answer(record: Record, task: str, draw: str) -> TaskAnswer:
    """Return the answer on a task as `thaw advise` has it, by one draw, among the standard set."""
    seconds = record.seconds.loc[task].sum(axis=1)
    names = of_task(record, task, STANDARD)
    arms = [replace(record.shown(task, draw, 200)[name], price=float(seconds[name])) for name in names]
    decision, entry = decide(arms, spread=record.spread(task)), catalogue().get("tasks", task, "tasks")
    points = {name: (name.partition(" ")[0], name.partition(" ")[2] or "base") for name in names}
    labels = {"strategies": {id: catalogue().get("strategies", id, "strategies").label for id, _ in points.values()}}
    titles = {name: wording.strategy_name(labels, *point) for name, point in points.items()}
    line = record.lines[task, draw, decision.taken, "test"]
    rows = np.arange(len(line.group))
    drawn = 100 * PartDraws(line.group).scores([scorer_of(line, rows)])[0]
    tested = {"test": interval(100 * line.value, drawn)}
    metric = wording.metric_name(labels, entry.metrics[0])
    return TaskAnswer(task, draw, "minilm", "linear_mean", entry.label, metric, decision, titles, points, tested)


def main() -> None:
    """Write summary, calibration, figure, and the answer that the README shows."""
    record = Record(recorded("grid"))
    entries = cases(record)
    write_json(SUMMARY, summary(replay(record)).round(4).to_dict("records"))
    write_text(GRID / "calibration.csv", calibration(entries).to_csv(index=False, float_format="%.4f"))
    draw(groups(entries), GRID / "calibration.png")
    shown = answer_text.in_terminal(answer(record, *SHOWN)).splitlines()
    write_text(GRID / "answer.txt", "".join(f"    {line}\n" for line in shown))


if __name__ == "__main__":
    run_step(main)
