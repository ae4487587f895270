"""How well distances and depths in a space agree with those in dependency trees (Hewitt and Manning 2019, section 3).

W words of a sentence.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

LENGTHS = (5, 50)  # sentences whose correlations are averaged


def tree_distances(heads: Sequence[int]) -> np.ndarray:
    """Return the number of arcs between any two words [W, W]. Args: each word's head, from 0; -1 for the root's."""
    above = [_way_up(word, heads) for word in range(len(heads))]
    distances = np.zeros((len(heads), len(heads)))
    for one in range(len(heads)):
        for other in range(one):
            steps = {word: step for step, word in enumerate(above[one])}
            distances[one, other] = next(step + steps[word] for step, word in enumerate(above[other]) if word in steps)
    return distances + distances.T


def tree_depths(heads: Sequence[int]) -> np.ndarray:
    """Return the number of arcs between each word and the root [W]."""
    return np.array([len(_way_up(word, heads)) - 1.0 for word in range(len(heads))])


def _way_up(word: int, heads: Sequence[int]) -> list[int]:
    """Return the words from a word to the root, both included."""
    path = [word]
    while heads[path[-1]] >= 0:
        path.append(heads[path[-1]])
    return path


def spanning_tree(distances: np.ndarray, words: Sequence[int]) -> set[tuple[int, int]]:
    """Return the arcs, the lower word first, of the least spanning tree over some of the words (Prim's algorithm).

    A word at an infinite distance hangs on none.
    """
    left, edges = list(words[1:]), set()
    if not left:
        return edges
    nearest = {word: words[0] for word in left}
    while left:
        word = min(left, key=lambda each: (distances[nearest[each], each], each))
        if np.isfinite(distances[nearest[word], word]):
            edges.add((min(word, nearest[word]), max(word, nearest[word])))
        left.remove(word)
        nearest |= {each: word for each in left if distances[word, each] < distances[nearest[each], each]}
    return edges


def attachment(distances: Sequence[np.ndarray], truths: Sequence[np.ndarray], words: Sequence[Sequence[int]]) -> float:
    """Return UUAS: the share of the true trees' arcs that are in the minimum spanning trees of distances [W, W].

    Args: words, by sentence those that have a part in it: punctuation has none.
    """
    hits, total = 0, 0
    for distance, truth, chosen in zip(distances, truths, words, strict=True):
        true = spanning_tree(truth, chosen)
        hits, total = hits + len(true & spanning_tree(distance, chosen)), total + len(true)
    return hits / total if total else float("nan")


def correlation(predicted: Sequence[np.ndarray], truths: Sequence[np.ndarray]) -> float:
    """Return DSpr of distances [W, W], or NSpr of depths [W]: Spearman's correlation with the truth.

    It is averaged over the words (or sentences) of each length, then over lengths of 5 to 50. Where all values are
    equal it counts as 0. Infinite values come after all others.
    """
    by_length: dict[int, list[float]] = {}
    for values, truth in zip(predicted, truths, strict=True):
        if LENGTHS[0] <= len(truth) <= LENGTHS[1]:
            by_length.setdefault(len(truth), []).extend(_spearman(np.atleast_2d(values), np.atleast_2d(truth)))
    return float(np.mean([np.mean(each) for each in by_length.values()])) if by_length else float("nan")


def _spearman(predicted: np.ndarray, truths: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation of each row with that of the truth, ties at their mean rank."""
    one, two = (rankdata(each, axis=1) for each in (predicted, truths))
    one, two = one - one.mean(1, keepdims=True), two - two.mean(1, keepdims=True)
    spread = np.sqrt((one**2).sum(1) * (two**2).sum(1))
    return np.divide((one * two).sum(1), spread, out=np.zeros(len(one)), where=spread > 0)


def root_accuracy(depths: Sequence[np.ndarray], truths: Sequence[np.ndarray], words: Sequence[Sequence[int]]) -> float:
    """Return the share of sentences in which the least deep of some words is the root."""
    pairs = zip(depths, truths, words, strict=True)
    hits = [truth[chosen[int(np.argmin(depth[chosen]))]] == 0 for depth, truth, chosen in pairs if len(chosen)]
    return float(np.mean(hits)) if hits else float("nan")
