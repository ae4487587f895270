"""Tables and figure of docs/results/joint.md, from the records joint and task_pairs.

Scores are × 100 on test. Differences are paired by seed and test row; one 95 % interval holds all of a table together.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from answers import Record, difference, recorded
from record_names import HOME, label, mean, task_label, title
from thaw.decision.contrasts import OPEN
from thaw.outputs.figures import figure_style, panels
from thaw.outputs.frame.paired_differences import jointly, printed
from thaw.papers import task_pairs
from thaw.statistics.bootstrap import Resampled

THREE, SIX = ("1", "2", "3"), ("1", "2", "3", "4", "5", "6")
PAIRS = ("sick_e", "stsb", "mrpc")
SINGLE, SAME, MORE = "linear_probe", "full_100", "full_300"  # as many updates of the task, and of the encoder
JOINT = ("joint_pairs", "joint_sentences", "joint_far")
ARMS = (
    *(MORE, SAME, SINGLE, *JOINT, "full_after_pairs", "full_after_sentences", "full_after_far", "bam_pairs"),
    *("born_again_annealed", "head_200", "probe_after_others", "full_after_others"),
)
SENTENCES, UNLIKE = ("sst2_sentences", "trec6", "cola"), ("stsb", "trec6", "conll2003")
EXPECTED = (  # by hypothesis of config/experiments/joint.yaml: a strategy, what it is compared with, tasks
    (1, "joint_pairs", SAME, PAIRS),
    (1, "joint_pairs", MORE, ("stsb", "mrpc")),
    (2, "joint_sentences", SAME, SENTENCES),
    (2, "joint_sentences", MORE, SENTENCES),
    (3, "joint_far", MORE, UNLIKE),
    (4, "full_after_pairs", MORE, PAIRS),
    (4, "full_after_sentences", MORE, SENTENCES),
    (4, "full_after_far", MORE, UNLIKE),
    (5, "bam_pairs", "joint_pairs", PAIRS),
    (6, "probe_after_others", "head_200", ("trec6", "stsb")),
    (6, "full_after_others", SAME, ("trec6", "stsb")),
    (7, MORE, SAME, ("cola", "trec6", "conll2003")),
)


class Seeds(Record):
    """A record whose runs differ by seed, and not by draw."""

    def __init__(self, name: str):
        frame = recorded(name)
        super().__init__(frame.assign(subset=frame["seed"].map("{:.0f}".format)))

    def columns(self, tasks: tuple[str, ...] = ()) -> list[tuple[str, str]]:
        """Return tasks, of none all, with their test splits."""
        tests = sorted({(task, split) for (task, *_, split), line in self.lines.items() if line.role == "test"})
        return [one for task in tasks or self.tasks for one in tests if one[0] == task]

    def has(self, place: tuple[str, str], arm: str, seeds: tuple[str, ...]) -> bool:
        """Return whether a strategy was trained with all seeds. Args: task and split; the strategy."""
        return all((place[0], seed, arm, place[1]) in self.lines for seed in seeds)

    def values(self, place: tuple[str, str], arm: str, seeds: tuple[str, ...]) -> np.ndarray:
        """Return scores by seed."""
        return np.array([100 * self.lines[place[0], seed, arm, place[1]].value for seed in seeds])

    def difference(self, place: tuple[str, str], arm: str, other: str, seeds: tuple[str, ...]) -> Resampled:
        """Return what one strategy is above another, resampled by test rows and by seeds."""
        lines = self.lines
        return difference([[[lines[place[0], seed, one, place[1]] for one in (arm, other)]] for seed in seeds])


@cache
def read(name: str) -> Seeds:
    """Return a committed record."""
    return Seeds(name)


def scores(record: Seeds) -> list[list[str]]:
    """Return means over three seeds; bold where the difference to 300 updates of the task is decided."""
    of = record.columns()
    places = [(arm, one) for arm in ARMS for one in of if record.has(one, arm, THREE)]
    others = [place for place in places if place[0] != MORE]
    found = jointly([record.difference(one, arm, MORE, THREE) for arm, one in others])
    decided = {place for place, one in zip(others, found, strict=True) if one.answer != OPEN}
    lines = [["", *(title(*one) for one in of)]]
    for arm in dict.fromkeys(arm for arm, _ in places):
        shown = {one: mean(record.values(one, arm, THREE)) for one in of if (arm, one) in places}
        lines.append([label(arm), *(_bold(shown.get(one, "–"), (arm, one) in decided) for one in of)])
    return lines


def _bold(shown: str, decided: bool) -> str:
    return f"**{shown}**" if decided else shown


def expected(record: Seeds) -> list[list[str]]:
    """Return the differences that the hypotheses are about, with one interval for all of them."""
    places = [(*row[:3], one) for row in EXPECTED for one in record.columns(row[3])]
    found = jointly([record.difference(one, arm, other, THREE) for _, arm, other, one in places])
    lines = [["Expected", "difference", "by task"]]
    for number, arm, other, _ in EXPECTED:
        mine = [
            f"{title(*place[3]).partition('<br>')[0]} {_bold(printed(one), one.answer != OPEN)}"
            for place, one in zip(places, found, strict=True)
            if place[:3] == (number, arm, other)
        ]
        lines.append([str(number), f"{label(arm)}, less {label(other)}", "<br>".join(mine)])
    return lines


def pairs(record: Seeds) -> list[list[str]]:
    """Return what the joint training of pairs is above both controls with six seeds, with one interval for all."""
    of, joint = record.columns(PAIRS), JOINT[0]
    cells = jointly([record.difference(one, joint, control, SIX) for control in (SAME, MORE) for one in of])
    lines = [[f"{label(joint)}, less", *(title(*one) for one in of)]]
    for at, control in enumerate((SAME, MORE)):
        lines.append([label(control), *map(printed, cells[len(of) * at : len(of) * (at + 1)])])
    return lines


def draw_pairs(path: Path) -> pd.DataFrame:
    """Draw which tasks help each other as the experiment does, and return the gains. Args: where the SVG goes."""
    rows = pd.read_csv(HOME / "docs/results/task_pairs.csv")
    rows = rows[rows["gain"].notna()]
    tasks = {task: task_label(task) for task in {*rows["source"], *rows["target"]}}
    drawn = task_pairs.figure(rows, {"labels": {"tasks": tasks}}).drawn
    with figure_style.style():
        figure_style.freeze_layout(drawn)
        panels.write_picture(drawn, path)
    return rows


TABLES: dict[str, Callable[[], list[list[str]]]] = {
    "joint": lambda: scores(read("joint")),
    "joint_expected": lambda: expected(read("joint")),
    "joint_six": lambda: pairs(read("joint")),
}
