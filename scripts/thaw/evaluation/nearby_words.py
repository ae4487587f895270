"""The lexical baseline of span extraction: words of the context near to which most words of the question are.

A sliding window in the manner of Richardson et al. 2013, Algorithm 1, which the paper of SQuAD takes for a baseline too
(Rajpurkar et al. 2016, section 5.1); here an answer is any run of L words without one of the question, and what counts
are the question's words up to R words away from it, each once, by the logarithm of how rare it is among the contexts.
L and R are chosen by validation.
"""

import re
from collections import Counter
from itertools import product

import numpy as np

from thaw.evaluation.answers import Answer

WORD = re.compile(r"\w+")
LENGTHS, REACHES = (1, 2, 3, 4), (5, 10, 20)
SETTINGS = [dict(zip(("words", "reach"), point, strict=True)) for point in product(LENGTHS, REACHES)]


class NearbyWords:
    """How rare words are among some contexts."""

    def __init__(self, contexts: list[str]):
        """Count the contexts that have each word; equal ones count once."""
        known = set(contexts)
        self.count = len(known)
        self.holding = Counter(word for context in known for word in set(_words(context)))

    def weight(self, word: str) -> float:
        """Return how much a word counts."""
        return float(np.log(1 + self.count / (1 + self.holding[word])))

    def answer(self, question: str, context: str, words: int, reach: int) -> Answer:
        """Return the first of the best runs of words, as the context writes it; no run is no answer."""
        places = [match.span() for match in WORD.finditer(context)]
        asked, there = dict.fromkeys(_words(question)), _words(context)
        starts = len(there) - words + 1
        if starts < 1 or not asked:
            return Answer("", np.inf)
        weights = np.array([self.weight(word) for word in asked])
        equal = np.array([[word == other for other in there] for word in asked])
        free = self._within(equal, starts, 0, words) == 0
        shares = (weights @ self._within(equal, starts, reach, words + reach)) / weights.sum()
        scores = np.where(free.all(0), shares, -1.0)
        best = int(scores.argmax())
        return Answer(context[places[best][0] : places[best + words - 1][1]], -float(scores[best]))

    @staticmethod
    def _within(equal: np.ndarray, starts: int, before: int, after: int) -> np.ndarray:
        """Return which words [Q] occur within so many positions of each start, 0 or 1, [Q, starts]."""
        summed = np.concatenate([np.zeros((len(equal), 1), int), equal.cumsum(1)], axis=1)
        at = np.arange(starts)
        low, high = np.clip(at - before, 0, None), np.clip(at + after, None, equal.shape[1])
        return (summed[:, high] > summed[:, low]).astype(int)


def _words(text: str) -> list[str]:
    return [match.group().lower() for match in WORD.finditer(text)]
