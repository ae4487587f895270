"""Structural probes: whether a linear image of a layer has the shape of trees (Hewitt and Manning 2019).

For each layer a matrix under which squared distances between words are those in the dependency tree (section 2.2), and
one under which squared lengths are depths (section 2.3). A word is the mean of its tokens.

K layers, B sentences, W words of the longest, d width, r rank.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from thaw.core.errors import UserError
from thaw.core.files import finite
from thaw.core.runtime import derive_seed
from thaw.probes.layer_states import LayerStates, word_means
from thaw.probes.measures.tree_measures import attachment, correlation, root_accuracy, tree_depths, tree_distances
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
