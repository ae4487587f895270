"""Guidelines by type of task: frozen or fine-tuned, large or small head, from the runs and from papers.

A side of a question is a set of cells, represented by the cell that is best on validation. Scores are in points.
"""

from dataclasses import dataclass

import numpy as np

from thaw.core.errors import UserError
from thaw.declarations.decision import FEWEST_OF_INTERVAL
from thaw.declarations.task_types import TYPE_LABELS
from thaw.outputs import wording
from thaw.outputs.frame import aggregate, paired_differences
from thaw.outputs.frame.paired_differences import Contrast, Contrasts
from thaw.outputs.frame.result_links import run_anchor
from thaw.outputs.frame.runs_frame import CELL, head_alone
from thaw.outputs.tables.table_model import Group, TextTable, text_row, text_table
from thaw.statistics.bootstrap import Interval, interval

SIDES = {"adaptation": ("fine-tuned", "frozen"), "features": ("large head", "small head")}
SIDES["tuning"] = SIDES["features"]
QUESTIONS = {
    "adaptation": "frozen or fine-tuned",
    "features": "head on the frozen encoder",
    "tuning": "head under fine-tuning",
}
ENDS = "low", "high"
EITHER, UNDECIDED = "either", "undecided"
TITLES = ("This study", "Difference", "By task", "Papers")
HEADER = "encoder question types task split subset difference low high seeds answer first second papers"


@dataclass
class Answered:
    """A question about an encoder and some types of task: by (task, split, subset) the contrast and the two cells."""

    question: str
    types: list[str]
    contrasts: dict[tuple, tuple[Contrast, tuple, tuple]]

    @property
    def mean(self) -> float:
        """The mean over these tasks, each the mean of its splits and subsets."""
        return float(self._over_tasks([contrast.mean for contrast, *_ in self.contrasts.values()]))

    @property
    def draws(self) -> np.ndarray:
        """The mean over these tasks in each draw; tasks of one dataset share the resampled examples."""
        return self._over_tasks([contrast.draws for contrast, *_ in self.contrasts.values()])

    @property
    def ci(self) -> Interval:
        """The 95 % CI of the mean; where no drawn example changes any difference, the mean of the tasks' own CIs."""
        made = [contrast.resampled for contrast, *_ in self.contrasts.values()]
        if any(one.spread.error != 0 for one in made):
            return interval(self.mean, self.draws)
        return Interval(self.mean, *(float(self._over_tasks([getattr(one.ci, end) for one in made])) for end in ENDS))

    @property
    def seeds(self) -> int:
        """The fewest seeds of a task."""
        return min(len(contrast.by_seed) for contrast, *_ in self.contrasts.values())

    def _over_tasks(self, values: list):
        by_task: dict[str, list] = {}
        for (task, *_), value in zip(self.contrasts, values, strict=True):
            by_task.setdefault(task, []).append(value)
        return np.mean([np.mean(parts, axis=0) for parts in by_task.values()], axis=0)

    def answer(self, margin: float) -> str:
        """Return what to do over all its tasks."""
        return answer(self.ci, self.seeds, margin, SIDES[self.question])

    def answer_of(self, contrast: Contrast, margin: float) -> str:
        """Return what to do on one task."""
        return answer(contrast.resampled.ci, len(contrast.by_seed), margin, SIDES[self.question])


def answer(ci: Interval, seeds: int, margin: float, sides: tuple[str, str]) -> str:
    """Return which side the 95 % CI of a difference favours.

    "either" if the CI is within the margin, the first side if it is above 0, the second if below, else undecided; with
    fewer than three seeds, whose CI says nothing of seeds, undecided too.
    """
    if seeds < FEWEST_OF_INTERVAL:
        return UNDECIDED
    if -margin < ci.low and ci.high < margin:
        return EITHER
    return sides[0] if ci.low > 0 else sides[1] if ci.high < 0 else UNDECIDED


def build(data, spec: dict) -> TextTable:
    """Return for every encoder and guideline what the runs show and what papers say.

    Args: spec with `margin` in points, `types` {task: type} and `guidelines` as the plan makes them. Raises UserError
    where no question has both sides.
    """
    labels, groups, lines = spec["labels"], [], []
    summary = aggregate.summarise(data.runs, spec["split"], spec["order"])
    fitted = summary[summary["fitted"] & summary["mean"].notna()]
    against = Contrasts(data.runs, spec["split"], data.predictions)
    for encoder, part in fitted.groupby("encoder", sort=False):
        rows = []
        for entry in spec["guidelines"]:
            one = _answered(part, entry, spec["types"], against)
            if one.contrasts:
                said = entry["papers"].get(encoder, [])
                row = text_row(_name(entry), _cells(one, said, spec))
                row.cells[TITLES.index("By task")].runs = _runs(one, labels)
                rows.append(row)
                lines += _lines(one, encoder, said, spec["margin"])
        groups += [Group(wording.label(labels, "encoders", encoder), [], rows)] if rows else []
    if not groups:
        raise UserError("a guideline_table needs runs of a frozen encoder and of the full model, or of two heads")
    fewest = min(line[HEADER.split().index("seeds")] for line in lines)
    return text_table(spec, TITLES, groups, _notes(spec["margin"], fewest), HEADER, lines, of="Tasks", sentences=True)


def _answered(part, entry: dict, types: dict[str, str], against: Contrasts) -> Answered:
    """Return a question answered on each task of its types. Args: the encoder's rows of the summary."""
    contrasts = {}
    chosen = part[[not entry["types"] or types[task] in entry["types"] for task in part["task"]]]
    for key, rows in chosen.groupby(["task", "split", "subset"], sort=False):
        first, second = (against.best(_cells_of(side)) for side in _sides(entry["question"], rows))
        contrast = against.between(first, second, key[1]) if first and second else None
        if contrast:
            contrasts[key] = contrast, first, second
    return Answered(entry["question"], entry["types"], contrasts)


def _sides(question: str, rows):
    """Return the rows of both sides of a question about a task."""
    frozen = head_alone(rows)
    tuned = rows[rows["embeddings"].astype(bool)]
    if question == "adaptation":
        return tuned, frozen
    rows = frozen if question == "features" else tuned
    sizes = rows.groupby("head")["parameters"].mean()
    if len(sizes) < 2:
        return rows[:0], rows[:0]
    return rows[rows["head"] == sizes.idxmax()], rows[rows["head"] == sizes.idxmin()]


def _cells_of(rows) -> list[tuple]:
    return list(rows[CELL].itertuples(index=False, name=None))


def _name(entry: dict) -> str:
    """Return the name of a line: the types of its tasks, and the question."""
    types = wording.listing(TYPE_LABELS[name] for name in entry["types"]) or "all tasks"
    return f"{types[0].upper()}{types[1:]}: {QUESTIONS[entry['question']]}"


def _cells(one: Answered, said: list[dict], spec: dict) -> list[str]:
    labels, ours = spec["labels"], one.answer(spec["margin"])
    subsets = {subset for *_, subset in one.contrasts}
    by_task = []
    for (task, split, subset), (contrast, *_) in one.contrasts.items():
        name = wording.column_name(labels, task, split, split != "test")
        name += f", {wording.label(labels, 'subsets', subset)}" if len(subsets) > 1 else ""
        by_task.append(f"{name}: {one.answer_of(contrast, spec['margin'])} ({contrast.text})")
    papers = [f"{paper['paper']}: {paper['answer']} ({_agreement(paper['answer'], ours)})" for paper in said]
    difference = paired_differences.printed(one.ci)
    return [ours, difference, "; ".join(by_task), "; ".join(papers) or wording.DASH]


def _runs(one: Answered, labels: dict) -> list[tuple[str, str]]:
    """Return (name, anchor) of the runs that represent both sides on each task."""
    return [
        (
            f"{wording.task_name(labels, cell[0])}: {wording.strategy_name(labels, *cell[4:])}, "
            f"{wording.label(labels, 'heads', cell[3])}",
            run_anchor(cell),
        )
        for _, *sides in one.contrasts.values()
        for cell in sides
    ]


def _agreement(theirs: str, ours: str) -> str:
    """Return whether the runs agree with a paper's guideline."""
    return "undecided" if ours == UNDECIDED else "agrees" if theirs == ours else "differs"


def _lines(one: Answered, encoder: str, said: list[dict], margin: float) -> list[list]:
    """Return a CSV line for each task, and one for all."""
    common = [encoder, one.question, " ".join(one.types)]
    papers = ";".join(f"{paper['paper']}: {paper['answer']}" for paper in said)
    lines = []
    for place, (contrast, first, second) in one.contrasts.items():
        cells = ["/".join(cell[3:]) for cell in (first, second)]
        numbers = paired_differences.plain(contrast.resampled.ci)
        lines.append([*common, *place, *numbers, len(contrast.by_seed), one.answer_of(contrast, margin), *cells, ""])
    numbers = paired_differences.plain(one.ci)
    return [*lines, [*common, "", "", "", *numbers, one.seeds, one.answer(margin), "", "", papers]]


def _notes(margin: float, fewest: int) -> list[str]:
    points = wording.points(margin)
    notes = [
        "Each side is represented by the strategy and head that are best on validation. Difference: fine-tuned minus "
        "frozen, head with the most parameters minus head with the fewest; over these tasks, the mean, of a task's "
        "splits and subsets first. It says nothing of other tasks of the type.",
        f"Either: the 95 % CI of the difference is within {points} of 0. Otherwise the side that the whole CI favours, "
        f"or undecided if the CI contains 0. CI: {wording.CI}.",
    ]
    return notes + wording.few_seeds(fewest, "All answers from it are undecided.")
