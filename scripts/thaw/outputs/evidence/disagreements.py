"""The examples on which strategies differ most, and those that none gets right, with their predictions."""

from dataclasses import dataclass

import numpy as np

from thaw.outputs.evidence.task_predictions import PredictedCell, TaskPredictions
from thaw.words import wording

LETTERS = 400  # of a text that is shown
WORDS = 4  # wrong tags of a sentence that are shown
ALWAYS_WRONG = 5


@dataclass(frozen=True)
class ShownPrediction:
    """What a cell predicts for an example, in print, and its credit: 1 for right by all seeds, NaN for not scored."""

    text: str
    credit: float


@dataclass(frozen=True)
class ShownExample:
    """An example: its row in the split's file, its texts, its gold, and the prediction of each cell."""

    row: int
    texts: list[str]
    gold: str
    predictions: list[ShownPrediction]


def differing(data: TaskPredictions, cells: list[PredictedCell], most: int) -> list[ShownExample]:
    """Return the examples whose credit varies most over cells, of those that share texts only one."""
    credits = np.stack([data.credits(cell) for cell in cells])
    spread = np.nan_to_num(credits.std(0))
    order = [n for n in np.argsort(-spread, kind="stable") if spread[n] > 0]
    return [_shown(data, cells, credits, n) for n in _one_of_each(data, order, most)]


def always_wrong(data: TaskPredictions, cells: list[PredictedCell]) -> list[ShownExample]:
    """Return some examples of a label that every seed of every cell gets wrong; none of other targets."""
    if data.is_score or data.is_tagged:
        return []
    credits = np.stack([data.credits(cell) for cell in cells])
    order = np.flatnonzero(credits.max(0) == 0)
    return [_shown(data, cells, credits, n) for n in _one_of_each(data, order, ALWAYS_WRONG)]


def _one_of_each(data: TaskPredictions, order, most: int) -> list[int]:
    """Return the first examples of an order, of a group of examples that share texts only one."""
    groups = data.frame["group"].to_numpy() if "group" in data.frame else np.arange(len(data.frame))
    return list({groups[n]: int(n) for n in reversed(list(order))}.values())[::-1][:most]


def _shown(data: TaskPredictions, cells: list[PredictedCell], credits: np.ndarray, n: int) -> ShownExample:
    row = data.frame.iloc[n]
    units = np.flatnonzero(data.example == n) if data.is_tagged else np.array([n])
    texts = [_text(row[name]) for name in data.texts]
    words = list(row[data.texts[0]]) if data.is_tagged else []
    predicted = [
        ShownPrediction(_prediction(data, cell.values[:, units], data.gold[units], words), float(credits[i, n]))
        for i, cell in enumerate(cells)
    ]
    return ShownExample(int(row["row"]), texts, _gold(data, units, words), predicted)


def _text(value) -> str:
    text = value if isinstance(value, str) else " ".join(value)
    return text if len(text) <= LETTERS else text[:LETTERS] + " …"


def _gold(data: TaskPredictions, units, words: list[str]) -> str:
    if data.is_score:
        return f"{data.gold[units[0]]:.2f}"
    if not data.is_tagged:
        return data.labels[data.gold[units[0]]]
    tags = [data.labels[tag] for tag in data.gold[units]]
    return " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=False) if tag != "O")


def _prediction(data: TaskPredictions, values: np.ndarray, gold: np.ndarray, words: list[str]) -> str:
    """Return a prediction in print. Args: of each seed [S, units]; gold [units]; the words of a sentence."""
    if data.is_score:
        return wording.DASH if np.isnan(values).any() else ", ".join(f"{value:.2f}" for value in values[:, 0])
    if (values < 0).any():
        return wording.DASH
    if not data.is_tagged:
        labels, counts = np.unique(values[:, 0], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        of = f"/{len(values)}" if len(labels) > 1 else ""
        return ", ".join(data.labels[labels[i]] + (f" {counts[i]}{of}" if of else "") for i in order)
    worst = values[(values != gold).sum(1).argmax()]
    wrong = np.flatnonzero(worst != gold)
    named = [f"{words[i]}/{data.labels[worst[i]]}" for i in wrong[:WORDS]]
    return ", ".join(named) + (f" +{len(wrong) - WORDS}" if len(wrong) > WORDS else "") or "as gold"
