"""The parts of a section of the page of examples: errors by label, and examples on which strategies differ most."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from thaw.evaluation.metrics import ratio, spans
from thaw.outputs.evidence.task_predictions import PredictedCell, TaskPredictions
from thaw.words import wording


@dataclass(frozen=True)
class LabelScore:
    """Precision, recall and F1 of a label as fractions, NaN where one is not defined."""

    precision: float
    recall: float
    f1: float


def blocks(data: TaskPredictions, cells: list[PredictedCell], most: int) -> dict:
    """Return the parts by name. Args: the examples; what runs predict for them; how many examples are shown."""
    errors = _of_spans if data.task["type"] == "spans" else _of_labels
    return {
        "errors": None if data.is_score else errors(data, cells),
        "marked": not data.is_score,  # the credit of a score is a distance: it is neither right nor wrong
        "differing": differing(data, cells, most) if len(cells) > 1 else [],
        "always_wrong": always_wrong(data, cells),
    }


def _of_labels(data: TaskPredictions, cells: list[PredictedCell]) -> dict:
    """Return scores by label, and the most frequent confusions."""
    matrices = [confusion(data, cell) for cell in cells]
    scores = [label_scores(matrix) for matrix in matrices]
    gold = np.bincount(data.gold, minlength=len(data.labels))
    lines = [
        {"label": label, "gold": int(gold[i]), "scores": [_percent(of[i]) for of in scores]}
        for i, label in enumerate(data.labels)
        if gold[i] or any(matrix[:, i].any() for matrix in matrices)
    ]
    confusions = [
        {"gold": data.labels[a], "as": data.labels[b], "counts": [int(matrix[a, b]) for matrix in matrices]}
        for a, b in frequent_confusions(matrices)
    ]
    return {"lines": lines, "confusions": confusions}


def _of_spans(data: TaskPredictions, cells: list[PredictedCell]) -> dict:
    """Return scores by type of span."""
    scores = [span_scores(data, cell) for cell in cells]
    undefined = LabelScore(float("nan"), float("nan"), float("nan"))
    types = sorted({name for one in scores for name in one})
    lines = [
        {"label": name, "gold": "", "scores": [_percent(one.get(name, undefined)) for one in scores]} for name in types
    ]
    return {"lines": lines, "confusions": []}


def _percent(score: LabelScore) -> list[str]:
    """Return F1, precision and recall in print, x 100."""
    return [wording.number(100 * value, 0) for value in (score.f1, score.precision, score.recall)]


CONFUSIONS = 15


def confusion(data: TaskPredictions, cell: PredictedCell) -> np.ndarray:
    """Return how often each label was predicted for each, over all seeds: [C, C], gold by row."""
    size, known = len(data.labels), cell.values >= 0
    gold = np.broadcast_to(data.gold, cell.values.shape)[known]
    return np.bincount(gold * size + cell.values[known], minlength=size * size).reshape(size, size)


def label_scores(matrix: np.ndarray) -> list[LabelScore]:
    """Return the scores of each label from a confusion matrix [C, C]."""
    right = matrix.diagonal()
    return _scores(right, matrix.sum(0), matrix.sum(1))


def frequent_confusions(matrices: list[np.ndarray]) -> list[tuple[int, int]]:
    """Return the pairs (gold, predicted) of different labels that are confused most often over all matrices."""
    total = np.sum(matrices, axis=0)
    off = total * (1 - np.eye(len(total), dtype=total.dtype))
    order = np.argsort(-off, axis=None, kind="stable")[:CONFUSIONS]
    pairs = [divmod(int(place), len(off)) for place in order]
    return [pair for pair in pairs if off[pair]]


def span_scores(data: TaskPredictions, cell: PredictedCell) -> dict[str, LabelScore]:
    """Return the scores of each type of span, over all seeds. Tags mark spans in IOB2, see `metrics.spans`."""
    right: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    gold: Counter[str] = Counter()
    bounds = np.searchsorted(data.example, np.arange(len(data.frame) + 1))
    names = np.array([*data.labels, "O"])  # -1, a sentence that was not scored, is the last
    all_gold = [spans(names[data.gold[a:b]]) for a, b in zip(bounds, bounds[1:], strict=False)]
    for values in cell.values:
        for n, (a, b) in enumerate(zip(bounds, bounds[1:], strict=False)):
            if a == b or values[a] < 0:
                continue
            same = np.array_equal(values[a:b], data.gold[a:b])
            mine, theirs = all_gold[n], all_gold[n] if same else spans(names[values[a:b]])
            for side, counts in ((mine, gold), (theirs, predicted), (mine & theirs, right)):
                counts.update(name for name, *_ in side)
    types = sorted(gold | predicted)
    of_types = (np.array([counts[name] for name in types]) for counts in (right, predicted, gold))
    return dict(zip(types, _scores(*of_types), strict=True))


def _scores(right, predicted, gold) -> list[LabelScore]:
    parts = (ratio(right, predicted), ratio(right, gold), ratio(2 * right, predicted + gold))
    return [LabelScore(*map(float, three)) for three in zip(*parts, strict=True)]


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
    whole = [row[name] if isinstance(row[name], str) else " ".join(row[name]) for name in data.texts]
    texts = [text if len(text) <= LETTERS else text[:LETTERS] + " …" for text in whole]
    words = list(row[data.texts[0]]) if data.is_tagged else []
    predicted = [
        ShownPrediction(_prediction(data, cell.values[:, units], data.gold[units], words), float(credits[i, n]))
        for i, cell in enumerate(cells)
    ]
    return ShownExample(int(row["row"]), texts, _gold(data, units, words), predicted)


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
