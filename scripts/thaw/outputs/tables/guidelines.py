"""A table of guidelines: frozen or fine-tuned, large or small head, by type of task, from the runs and from papers.

A side of a question is a set of cells; the one that is best on validation stands for it. Scores are in points (x 100).
"""

from dataclasses import dataclass

import numpy as np

from thaw.core.errors import UserError
from thaw.outputs import wording
from thaw.outputs.frame import aggregate, paired_differences
from thaw.outputs.frame.paired_differences import Contrast, Contrasts
from thaw.outputs.frame.runs_frame import CELL, head_alone
from thaw.outputs.tables.table_model import Group, Row, TextCell, TextTable, text_table
from thaw.statistics.bootstrap import interval
from thaw.statistics.significance import FEWEST_SEEDS

SIDES = {"adaptation": ("fine-tuned", "frozen"), "features": ("large head", "small head")}
SIDES["tuning"] = SIDES["features"]
QUESTIONS = {
    "adaptation": "frozen or fine-tuned",
    "features": "head on the frozen encoder",
    "tuning": "head under fine-tuning",
}
EITHER, UNDECIDED = "either", "undecided"
TITLES = ("Here", "Difference", "By task", "Papers")
HEADER = "encoder question types task split difference low high seeds answer first second papers"


@dataclass
class Answered:
    """A question about an encoder and some types of task: by (task, split) the contrast and the two cells."""

    question: str
    types: list[str]
    found: dict[tuple, tuple[Contrast, tuple, tuple]]

    @property
    def mean(self) -> float:
        """The mean over tasks."""
        return float(np.mean([contrast.mean for contrast, *_ in self.found.values()]))

    @property
    def draws(self) -> np.ndarray:
        """The mean over tasks in each draw; tasks are drawn apart from each other."""
        return np.mean([contrast.draws for contrast, *_ in self.found.values()], axis=0)

    def answer(self, margin: float) -> str:
        """Return what to do over all its tasks."""
        return answer(self.mean, self.draws, margin, SIDES[self.question])


def answer(mean: float, draws: np.ndarray, margin: float, sides: tuple[str, str]) -> str:
    """Return either, where the interval of the difference lies within the margin; else the side that it favours.

    The first side where the interval lies above 0, the second where it lies below, undecided where it holds 0.
    """
    found = interval(mean, draws)
    if -margin < found.low and found.high < margin:
        return EITHER
    return sides[0] if found.low > 0 else sides[1] if found.high < 0 else UNDECIDED


def build(data, spec: dict) -> TextTable:
    """Return for every encoder and guideline what the runs say, beside what papers say.

    Args: spec with `margin` in points, `types` {task: type} and `guidelines` as the plan makes them. Raises UserError
    where no question has both sides.
    """
    labels, groups, lines = spec["labels"], [], []
    found = aggregate.summarise(data.runs, spec["split"], spec["order"])
    fitted, against = (
        found[found["fitted"] & found["mean"].notna()],
        Contrasts(data.runs, spec["split"], data.predictions),
    )
    for encoder, part in fitted.groupby("encoder", sort=False):
        rows = []
        for entry in spec["guidelines"]:
            one = _answered(part, entry, spec["types"], against)
            if one.found:
                said = entry["papers"].get(encoder, [])
                rows.append(Row({}, _name(entry), [TextCell(text) for text in _cells(one, said, spec)]))
                lines += _lines(one, encoder, said, spec["margin"])
        groups += [Group(labels["encoders"].get(encoder, encoder), [], rows)] if rows else []
    if not groups:
        raise UserError("a guideline_table needs runs of a frozen encoder and of the full model, or of two heads")
    few = min(int(line[8]) for line in lines) < FEWEST_SEEDS
    return text_table(spec, TITLES, groups, _notes(spec["margin"], few), HEADER, lines, of="Tasks", sentences=True)


def _answered(part, entry: dict, types: dict[str, str], against: Contrasts) -> Answered:
    """Return a question answered on each task of its types. Args: the encoder's rows of the summary."""
    found = {}
    chosen = part[[not entry["types"] or types[task] in entry["types"] for task in part["task"]]]
    for place, rows in chosen.groupby(["task", "split", "subset"], sort=False):
        first, second = (against.best(_cells_of(side)) for side in _sides(entry["question"], rows))
        contrast = against.between(first, second, place[1]) if first and second else None
        if contrast:
            found[place] = contrast, first, second
    return Answered(entry["question"], entry["types"], found)


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
    types = wording.listing(wording.TYPE_LABELS[name] for name in entry["types"]) or "all tasks"
    return f"{types[0].upper()}{types[1:]}: {QUESTIONS[entry['question']]}"


def _cells(one: Answered, said: list[dict], spec: dict) -> list[str]:
    """Return the cells of a line, as TITLES names them."""
    tasks, ours = spec["labels"]["tasks"], one.answer(spec["margin"])
    by_task = [
        f"{wording.column_name(tasks, task, split, split != 'test')}: "
        f"{answer(contrast.mean, contrast.draws, spec['margin'], SIDES[one.question])} ({contrast.text})"
        for (task, split, _), (contrast, *_) in one.found.items()
    ]
    papers = [f"{paper['paper']}: {paper['answer']} ({_beside(paper['answer'], ours)})" for paper in said]
    difference = paired_differences.printed(one.mean, one.draws)
    return [ours, difference, "; ".join(by_task), "; ".join(papers) or wording.DASH]


def _beside(theirs: str, ours: str) -> str:
    """Return how a paper's guideline stands to what the runs say."""
    return "open here" if ours == UNDECIDED else "the same" if theirs == ours else "not here"


def _lines(one: Answered, encoder: str, said: list[dict], margin: float) -> list[list]:
    """Return a line for programs for each task, and one for all."""
    common = [encoder, one.question, " ".join(one.types)]
    papers = ";".join(f"{paper['paper']}: {paper['answer']}" for paper in said)
    lines = []
    for (task, split, _), (contrast, first, second) in one.found.items():
        told_apart = answer(contrast.mean, contrast.draws, margin, SIDES[one.question])
        cells = ["/".join(cell[3:]) for cell in (first, second)]
        numbers = paired_differences.plain(contrast.mean, contrast.draws)
        lines.append([*common, task, split, *numbers, len(contrast.differences), told_apart, *cells, ""])
    seeds = min(len(contrast.differences) for contrast, *_ in one.found.values())
    return [
        *lines,
        [*common, "", "", *paired_differences.plain(one.mean, one.draws), seeds, one.answer(margin), "", "", papers],
    ]


def _notes(margin: float, few: bool) -> list[str]:
    """Return the rule, and what a reader must know of the table."""
    points = f"{margin:g} {'point' if margin == 1 else 'points'}"
    notes = [
        "Of each side the strategy and head that are best on validation; the full model less the frozen one, the head "
        "with the most parameters less that with the fewest. Over tasks: the mean difference.",
        f"The rule: either, where the 95 % interval of the difference lies within {points} of 0; else the side that it "
        "favours with all of it; undecided where it holds 0. The interval is that of a bootstrap over seeds and "
        "examples (entities by document).",
    ]
    if few:
        notes.append(
            f"Fewer than {wording.plural(FEWEST_SEEDS, 'seed')}: the interval holds what another test set would do "
            "more than what other seeds would, and the answers are provisional."
        )
    return notes
