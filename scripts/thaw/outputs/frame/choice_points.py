"""What the points of all strategies reach on a task, and take: what rules that choose among them are judged by.

n seeds or draws, a points.
"""

from dataclasses import dataclass

import numpy as np

from thaw.declarations.decision import FEWEST_OF_RULES
from thaw.outputs.frame.price import price
from thaw.outputs.frame.probe_frame import PRETRAINED
from thaw.outputs.frame.sanity_flags import notes_of, of_phase

POINT = ["strategy", "variant"]
RUNGS = (0.125, 0.25, 0.5, 1.0)  # shares of the updates after which validation is looked at
WITH_RUNGS = {"halving"}  # ways to choose that look at validation before a training ends


@dataclass(frozen=True)
class Points:
    """Scores of the points of a task by seed, prices as medians over seeds.

    validation and test, frames [n, a] of scores x 100, of several test splits the mean; price [a], and what of it is
    paid before training, for extraction and search; rungs, by (seed, point) the scores on validation after each share
    of the updates in RUNGS, of a convex fit its score at each; evidence, by seed LogME of the last frozen layer less
    that of shuffled targets; corpus, the task's dataset, whose other tasks are no others.
    """

    validation: object
    test: object
    price: object
    before: object
    rungs: dict[tuple, list[float]] | None = None
    evidence: dict[int, float] | None = None
    corpus: str = ""

    def of(self, strategies: list[str]) -> list[tuple]:
        """Return the points of some strategies that the task has, in the order of the strategies."""
        return [point for strategy in strategies for point in self.test.columns if point[0] == strategy]

    def best(self, seed, points: list[tuple]) -> tuple:
        """Return the point that is best on validation in a seed."""
        return self.validation.loc[seed, points].idxmax()

    def regret(self, taken: dict) -> float:
        """Return what is lost by points that were taken, in points of the score, as a mean over seeds; NaN for fewer
        than five seeds. Args: taken, the point by the seed in which it was chosen, or points, one of which is taken by
        chance.

        A point is chosen in one seed and scored in the others, and so is the best one: selected in half of the others
        and scored in their other half, and the reverse. Else the best would be the luckiest.
        """
        if len(self.test) < FEWEST_OF_RULES:
            return np.nan
        lost = []
        for seed in self.test.index:
            others = self.test.drop(index=seed)
            halves = others.iloc[::2].mean(), others.iloc[1::2].mean()
            best = sum(half[other.idxmax()] for half, other in zip(halves, halves[::-1], strict=True)) / 2
            lost.append(best - others[taken[seed]].to_numpy().mean())
        return float(np.mean(lost))


def points_by_task(data, spec: dict, group: tuple, strategy: str, ways: set[str]) -> dict[str, Points]:
    """Return the points of each task of a group that has a strategy. Args: see `points_of`; an output's spec."""
    corpora, tasks = spec.get("corpora", {}), dict.fromkeys(data.runs["task"])
    points = {task: points_of(data, spec["split"], group, task, ways, corpora.get(task, task)) for task in tasks}
    return {task: one for task, one in points.items() if one and one.of([strategy])}


def points_of(data, split: str, group: tuple, task: str, ways: set[str], corpus: str = "") -> Points | None:
    """Return the points of a task and group, in the seeds that all of them have; None where it has no runs.

    Args: OutputData; the role of the splits that are scored; (subset, encoder, head); how rules choose, which says
    whether rungs and the probe's records are read; the task's dataset.
    """
    runs, (subset, encoder, head) = data.runs.assign(price=price(data.runs)), group
    mine = runs[(runs["kind"] == "run") & runs["main"].astype(bool) & runs["value"].notna() & (runs["task"] == task)]
    mine = mine[(mine["subset"] == subset) & (mine["encoder"] == encoder) & (mine["head"] == head)]
    frames = [
        100 * mine[mine["role"] == role].pivot_table("value", index="seed", columns=POINT).dropna()
        for role in ("validation", split)
    ]
    both = frames[0].index.intersection(frames[1].index)
    if both.empty:
        return None
    once = mine.drop_duplicates([*POINT, "seed"])
    early = once["extraction_seconds"] + once["search_seconds"].fillna(0.0)  # unknown where a trial left no record
    share = early / (early + once["train_seconds"] + once["after_seconds"])
    costs = once.assign(before=share.fillna(0.0) * once["price"]).groupby(POINT)[["price", "before"]].median()
    validated = mine[(mine["role"] == "validation") & mine["seed"].isin(both)]
    rungs = None
    if ways & WITH_RUNGS:
        rungs = {(row.seed, (row.strategy, row.variant)): _rungs(data, row) for row in validated.itertuples()}
    evidence = _evidence(data, group, task) if "logme" in ways else None
    scores = frames[0].loc[both], frames[1].loc[both]
    return Points(*scores, costs["price"], costs["before"], rungs, evidence, corpus)


def _evidence(data, group: tuple, task: str) -> dict[int, float]:
    """Return by seed LogME of the last layer of the pretrained encoder, less that of shuffled targets.

    The draws of a size are one subset here, as in `data.runs`.
    """
    differences = {}
    for record in data.probes:
        cell, spec = record.cell, record.record["spec"]
        place = data.shown_subset(cell["subset"]), cell["encoder"]
        if (cell["task"], *place, cell["run"]) == (task, *group[:2], PRETRAINED) and spec["probe"].get("shuffles"):
            real, shuffled = (data.by_seed(record, spec["layers"], name) for name in ("logme", "logme_shuffled"))
            differences |= {seed: value - shuffled[seed] for seed, value in real.items()}
    return differences


def _rungs(data, row) -> list[float]:
    """Return a run's scores on validation after each share of the updates of its last phase, and its score at the end.

    NaN where none was scored by then. Of a convex fit, and of a run without a history, the score at each share.
    """
    notes, column = notes_of(data.results / row.folder), f"validation_{row.metric}"
    if not notes or "epoch" not in notes[0]:
        return [100 * row.value] * len(RUNGS)
    mine = of_phase(notes, notes[-1]["phase"])
    scored = [(float(note["step"]), 100 * float(note[column])) for note in mine if note.get(column)]
    last = float(mine[-1]["step"])
    by_then = [[score for step, score in scored if step <= share * last + 1e-9] for share in RUNGS[:-1]]
    return [*(scores[-1] if scores else np.nan for scores in by_then), 100 * row.value]
