"""Learning curves: the loss of training and the score on validation of a run, from its history.csv."""

from dataclasses import dataclass
from pathlib import Path

from thaw.outputs.frame.sanity_flags import notes_of

POINTS = 24  # of a drawn curve


@dataclass(frozen=True)
class LearningCurve:
    """Points (update, value) of a run: loss on training batches; the main metric on validation and on train, x 100."""

    loss: list[tuple[float, float]]
    validation: list[tuple[float, float]]
    training: list[tuple[float, float]]


def learning_curve(folder: Path, metric: str) -> LearningCurve | None:
    """Return the curve of a run; None where it was fitted by a convex solver or wrote no history."""
    notes = notes_of(folder)
    if not notes or "epoch" not in notes[0]:
        return None
    done, last, steps = 0.0, None, []
    for note in notes:  # each phase counts its updates from 0
        if last is not None and note["phase"] != last["phase"]:
            done += float(last["step"])
        last = note
        steps.append(done + float(note["step"]))
    loss = _mean_of_parts(_column(notes, steps, "loss"))
    scores = [_column(notes, steps, f"{split}_{metric}", 100.0) for split in ("validation", "train")]
    return LearningCurve(loss, *scores)


def _column(notes: list[dict], steps: list[float], name: str, times: float = 1.0) -> list[tuple[float, float]]:
    """Return the finite values of a column with their updates."""
    pairs = [(step, times * float(note[name])) for step, note in zip(steps, notes, strict=True) if note.get(name)]
    return [(step, value) for step, value in pairs if abs(value) < float("inf")]


def _mean_of_parts(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most POINTS points: means of neighbours."""
    size = -(-len(points) // POINTS) or 1
    parts = [points[i : i + size] for i in range(0, len(points), size)]
    return [(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]
