"""Answers that were found in a context, compared with the gold ones as SQuAD's evaluation script does.

The definitions are those of Rajpurkar et al. 2016, section 6.1, and of the script of version 2.0 (2018): texts are
compared in lower case, without punctuation, the articles a, an and the, and with single blanks. A prediction counts by
the gold answer that it agrees with best; no answer is the empty text on both sides.

N questions, D draws. A question's gold is a list of (first character, text), empty where it has no answer.
"""

import re
import string
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


class Answer(NamedTuple):
    """The best answer to a question, and how much less likely it is than none: above 0 there is none.

    `others` are the next best ones, each a text and how much less likely it is than the best.
    """

    text: str
    no_answer: float = -np.inf
    others: tuple[tuple[str, float], ...] = ()

    @property
    def given(self) -> str:
        return "" if self.no_answer > 0 else self.text


def of_contexts(spans: list, corpus, split: str, rows) -> list[Answer]:
    """Return answers as texts.

    Args: of each row the best ones, of each the first character, the one after the last, and `no_answer`.
    """
    contexts, answers = corpus.column(split, corpus.texts[1]).to_numpy()[rows], []
    for context, best in zip(contexts, spans, strict=True):
        texts = [(context[int(first) : int(beyond)], no_answer) for first, beyond, no_answer in best]
        (text, least), *rest = texts
        others = tuple((other, no_answer - least) for other, no_answer in rest if np.isfinite(no_answer))
        answers.append(Answer(text, least, others))
    return answers


def normalised(text: str) -> str:
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact(gold: str, predicted: str) -> float:
    """Return 1 where two normalised texts are the same, else 0."""
    return float(normalised(gold) == normalised(predicted))


def overlap(gold: str, predicted: str) -> float:
    """Return the F1 of the words of two texts; where one has no words, whether the other has none either."""
    ours, theirs = normalised(gold).split(), normalised(predicted).split()
    if not ours or not theirs:
        return float(ours == theirs)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs))


def best_of(measure, gold: list, predicted: str) -> float:
    """Return the largest value of `exact` or `overlap` over the gold answers; those without a word are left out."""
    texts = [text for _, text in gold if normalised(text)] or [""]
    return max(measure(text, predicted) for text in texts)


def values(measure, gold: list, predicted: list[Answer]) -> np.ndarray:
    """Return the values [N] of predictions; none is right where there is no answer."""
    pairs = zip(gold, predicted, strict=True)
    return np.array([float(not each) if one.no_answer > 0 else best_of(measure, each, one.text) for each, one in pairs])


class Thresholds:
    """What N predictions score by the threshold above which there is no answer, [D, thresholds] or at the best one.

    A threshold is the `no_answer` of some prediction: those up to it are answered; one is below them all.
    """

    def __init__(self, measure, gold: list, predicted: list[Answer]):
        """Compare each text once. Args: `exact` or `overlap`."""
        certainty = np.array([one.no_answer for one in predicted], dtype=float)
        self.order = np.argsort(certainty, kind="stable")
        self.certainty = certainty[self.order]
        self.empty = np.array([float(not each) for each in gold])
        pairs = zip(gold, predicted, strict=True)
        gain = [best_of(measure, each, one.text) if each else -float(bool(one.text)) for each, one in pairs]
        self.gain = np.array(gain, dtype=float)[self.order]
        self.last = np.append(self.certainty[1:] != self.certainty[:-1], True)[: len(predicted)]  # of equal ones

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the best score of each draw, [D], NaN of nothing. Args: how often it holds each question, [D, N]."""
        total, gained = weights.sum(1), (weights[:, self.order] * self.gain).cumsum(1)[:, self.last]
        best = weights @ self.empty + gained.max(1, initial=0.0)
        return np.divide(best, total, out=np.full(len(weights), np.nan), where=total > 0)

    @property
    def best(self) -> float:
        """The lowest of the best thresholds; -inf where nothing is answered best."""
        gained = self.gain.cumsum()[self.last]
        place = int(gained.argmax()) if len(gained) else 0
        return float(self.certainty[self.last][place]) if len(gained) and gained[place] > 1e-12 else -np.inf


@dataclass(frozen=True)
class BestThreshold:
    """The mean of what answers are worth at the no-answer threshold that is best on the very examples that are scored.

    Args: measure, `exact` or `overlap`.
    """

    measure: Callable

    def __call__(self, gold, predicted) -> float:
        """Return the score of the examples, each counted once."""
        return float(self.weighted(gold, predicted)(np.ones((1, len(gold))))[0])

    def weighted(self, gold, predicted) -> Callable[[np.ndarray], np.ndarray]:
        """Return the score as a function of weights [D, N]."""
        return Thresholds(self.measure, gold, predicted).scores


def threshold(task: dict, gold: list, predicted: list[Answer]) -> float:
    """Return the threshold by which a validation split scores best, in exact matches where the main metric counts them.

    Where every question has an answer it is inf: one is always given.
    """
    if all(gold):
        return np.inf
    return Thresholds(exact if "exact" in task["metrics"][0] else overlap, gold, predicted).best


def shifted(predicted: list[Answer], by: float) -> list[Answer]:
    """Return predictions whose `no_answer` is counted from a threshold; at most a prediction is answered at it."""
    return [one._replace(no_answer=-by if np.isinf(by) else one.no_answer - by) for one in predicted]
