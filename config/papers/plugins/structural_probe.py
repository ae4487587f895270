"""Structural probes: whether a linear image of a layer has the shape of trees (Hewitt and Manning 2019).

For each layer a matrix under which squared distances between words are those in the dependency tree (section 2.2), and
one under which squared lengths are depths (section 2.3). A word is the mean of its tokens.

K layers, B sentences, W words of the longest, d width, r rank.
"""

from pydantic import Field

from thaw.declarations.probe_options import DescentOptions
from thaw.declarations.probes import LAYERS, ProbeInput, ProbeKind


class StructuralOptions(DescentOptions):
    """The space of a structural probe."""

    rank: int | None = Field(
        None, ge=1, description="dimensions of the space of the tree; default: the width of the encoder"
    )


PROBES = {
    "structural": ProbeKind(
        "thaw.papers.structural_probe:structural",
        StructuralOptions,
        ProbeInput("thaw.papers.structural_probe:TreeReading"),
        LAYERS,
        "uuas",
        types=("edges",),
        keeps=("head",),
        serves="edges of a corpus that keeps the heads of its words",
    )
}


from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata
from torch import nn

from thaw.core.errors import UserError
from thaw.core.files import finite
from thaw.core.runtime import derive_seed
from thaw.probes.layer_states import LayerStates, word_means
from thaw.probes.probe_context import ProbeContext
from thaw.probes.side_by_side import train
from thaw.training.run_inputs import Inputs

SENTENCES = 20  # a batch, as in the authors' settings
MAIN = "uuas"


@dataclass
class Trees:
    """The trees of some rows: true distances [W, W] and depths [W] of each, and the words that are no punctuation."""

    split: str
    rows: np.ndarray
    distances: list[np.ndarray]
    depths: list[np.ndarray]
    words: list[np.ndarray]

    def part(self, positions: np.ndarray) -> "Trees":
        """Return some of them."""
        lists = ([each[p] for p in positions] for each in (self.distances, self.depths, self.words))
        return Trees(self.split, self.rows[positions], *lists)


class TreeReading(ProbeContext):
    """A corpus with trees: the states of all layers, and the distances and depths of its words."""

    main = MAIN

    def __init__(self, spec: dict, inputs: Inputs):
        """Open the states, and read the trees of train (see `read_rows`), validation and test."""
        super().__init__(spec, inputs)
        self.states, self.width = LayerStates(spec, inputs), self.shape.width
        self.splits = {split: self._trees(split, rows) for split, rows in self.rows.items()}
        if len(self.splits["train"].rows) < 2:
            raise UserError(f"task {self.task['id']}: a structural probe needs two sentences: take a larger subset")

    def batches(self, trees: Trees, order: np.ndarray) -> Iterator[tuple]:
        """Yield (positions, words [K, B, W, d], which have a token [B, W]) of 20 sentences at a time, in some order."""
        for start in range(0, len(order), SENTENCES):
            positions = order[start : start + SENTENCES]
            batch, states = self.states(trees.split, trees.rows[positions])
            yield positions, *word_means(batch, states)

    def majority(self) -> dict[str, dict[str, float | None]]:
        """Return the scores of a chain on each split: each word depends on the one before it, the first is the root."""
        scores = {}
        for name in self.scored:
            trees = self.splits[name]
            depths = [np.arange(len(each), dtype=float) for each in trees.depths]
            distances = [np.abs(each[:, None] - each) for each in depths]
            scores[name] = measured(trees, distances, depths)
        return scores

    def _trees(self, split: str, rows: np.ndarray) -> Trees:
        parents, parts_of_speech = self.corpus.column(split, "head"), self.corpus.column(split, "upos")
        heads = [[int(head) - 1 for head in parents.iloc[row]] for row in rows]
        plain = [np.flatnonzero(np.asarray(parts_of_speech.iloc[row]) != "PUNCT") for row in rows]
        return Trees(
            split, rows, [tree_distances(each) for each in heads], [tree_depths(each) for each in heads], plain
        )


class Space(nn.Module):
    """For each layer a matrix [d, r] into the space of the tree; it begins as the authors' does."""

    def __init__(self, layers: int, width: int, rank: int):
        """Make the matrices [K, d, r]."""
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(layers, width, rank).uniform_(-0.05, 0.05))

    def depths(self, words: torch.Tensor) -> torch.Tensor:
        """Return the squared length of each word's image [K, B, W], of words [K, B, W, d]."""
        return torch.einsum("kbwd,kdr->kbwr", words, self.matrix).square().sum(-1)

    def distances(self, words: torch.Tensor) -> torch.Tensor:
        """Return the squared distance of any two words' images [K, B, W, W]."""
        images = torch.einsum("kbwd,kdr->kbwr", words, self.matrix)
        lengths = images.square().sum(-1)
        return (lengths.unsqueeze(-1) + lengths.unsqueeze(-2) - 2 * images @ images.mT).clamp(min=0)


def structural(reading: TreeReading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer and space, and for each layer UUAS, DSpr, NSpr and root accuracy by split."""
    torch.manual_seed(derive_seed(seed, "structural"))
    fitted, held = reading.divided(seed)
    spaces, rows = {}, []
    for kind in ("distances", "depths"):
        space = Space(len(reading.numbers), reading.width, reading.entry.rank or reading.width).to(reading.device)
        order = np.random.default_rng(derive_seed(seed, f"order of {kind}"))

        def epoch(space=space, kind=kind, order=order):
            for part in reading.batches(fitted, order.permutation(len(fitted.rows))):
                yield losses(space, kind, fitted, part)

        best = train(
            space, epoch, lambda space=space, kind=kind: -_mean_loss(reading, space, kind, held), reading.entry
        )
        spaces[kind] = space
        rows += [
            {"layer": number, "seed": seed, "space": kind, **epoch_kept}
            for number, epoch_kept in zip(reading.numbers, best, strict=True)
        ]
    by_split = {name: _scores(reading, spaces, reading.splits[name]) for name in reading.scored}
    layer_scores = [
        {"layer": number, "seed": seed, "scores": {name: scores[index] for name, scores in by_split.items()}}
        for index, number in enumerate(reading.numbers)
    ]
    return rows, layer_scores


def losses(space: Space, kind: str, trees: Trees, part: tuple) -> torch.Tensor:
    """Return the loss of each layer [K]: the mean absolute error in a sentence, and of that the mean over sentences."""
    positions, words, seen = part
    predicted = getattr(space, kind)(words)
    gold = torch.zeros(*seen.shape, *seen.shape[1:] * (kind == "distances"), device="cpu")  # filled there, sent once
    for row, position in enumerate(positions):
        truth = torch.from_numpy(getattr(trees, kind)[position])
        gold[row][tuple(slice(size) for size in truth.shape)] = truth.float()
    scored = seen.unsqueeze(2) & seen.unsqueeze(1) if kind == "distances" else seen
    counts = scored.flatten(1).sum(1).clamp(min=1)
    errors = ((predicted - gold.to(predicted.device)).abs() * scored).flatten(2).sum(2)
    return (errors / counts).mean(1)


@torch.no_grad()
def _mean_loss(reading: TreeReading, space: Space, kind: str, trees: Trees) -> np.ndarray:
    """Return the loss of each layer over all sentences [K]."""
    every = reading.batches(trees, np.arange(len(trees.rows)))
    sums = [(losses(space, kind, trees, part) * len(part[0])).cpu().numpy() for part in every]
    return np.sum(sums, axis=0) / len(trees.rows)


@torch.no_grad()
def _scores(reading: TreeReading, spaces: dict[str, Space], trees: Trees) -> list[dict]:
    layers = range(len(reading.numbers))
    distances, depths = [[] for _ in layers], [[] for _ in layers]
    for positions, words, seen in reading.batches(trees, np.arange(len(trees.rows))):
        distance, depth = (
            space(words).double().cpu().numpy() for space in (spaces["distances"].distances, spaces["depths"].depths)
        )
        for row, position in enumerate(positions):
            known = seen[row, : len(trees.depths[position])].cpu().numpy()
            for layer in layers:
                distances[layer].append(_of_known(distance[layer, row], known))
                depths[layer].append(_of_known(depth[layer, row], known))
    return [measured(trees, distances[layer], depths[layer]) for layer in layers]


def _of_known(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the values of a sentence's words; those of a word without a token are infinite."""
    values = values[tuple(slice(len(known)) for _ in values.shape)].copy()
    values[~known] = np.inf
    if values.ndim == 2:
        values[:, ~known] = np.inf
    return values


def measured(trees: Trees, distances: list[np.ndarray], depths: list[np.ndarray]) -> dict[str, float | None]:
    """Return the four scores of distances and depths; None for one that no sentence defines."""
    scores = {
        "uuas": attachment(distances, trees.distances, trees.words),
        "dspr": correlation(distances, trees.distances),
        "nspr": correlation(depths, trees.depths),
        "root": root_accuracy(depths, trees.depths, trees.words),
    }
    return {name: finite(score) for name, score in scores.items()}


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
