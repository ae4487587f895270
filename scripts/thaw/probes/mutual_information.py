"""Mutual information of each layer and the labels, in bits, by two estimators, with the lower bound that a probe gives.

Peters et al. 2019, figure 2, has EDGE of the means of token vectors and the labels of the development set. Here as
there nothing is fitted to labels: the rows are those of the splits that are scored, of which every layer and encoder
has the same, and both estimators see a fixed number of dimensions, whatever the encoder's width. The bound is
H(labels) less the cross-entropy of a linear probe that was fitted to training rows: no layer holds less.

K layers that are read, N vectors of the sample, d width.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed
from thaw.heads.convex import Solution
from thaw.probes.information_estimates import (
    Estimate,
    clusters,
    edge_weights,
    entropy,
    estimate,
    hashed,
    projected,
)
from thaw.probes.reading import Reading
from thaw.probes.similarity_indices import Products, cka

SHUFFLES = 20  # of the labels
DRAWS = 8  # of random axes, over which EDGE is averaged
DIMENSIONS = 4  # random axes that EDGE sees
WIDTHS = (1.0, 1.5, 2.0, 2.5, 3.0)  # of EDGE's grids, in standard deviations
COMPONENTS = 32  # principal components that k-means sees
CLUSTERS = (8, 16, 32, 64)  # of k-means


def mutual_information(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each layer, split and partition, and for each layer what both estimators and the bound say."""
    fitted, held = reading.divided(seed)
    targets, solutions = held.targets(), []
    for vectors, of_layer in zip(held.layers, reading.fit(fitted), strict=True):
        bits = [surprisal(vectors.values, targets, one, len(fitted.rows)).sum().item() for one in of_layer]
        solutions.append(of_layer[int(np.argmin(bits))])
    samples = {name: Sample.of(reading, name, seed) for name in reading.scored}
    estimates = {name: _measured(sample, seed) for name, sample in samples.items()}
    rows, layer_scores = [], []
    for layer, number in enumerate(reading.numbers):
        scores: dict[str, dict] = {}
        for name, sample in samples.items():
            scores[name] = _bound(sample, layer, solutions[layer], len(fitted.rows))
            scores[name]["cka_with_last"] = _alignment(sample.layers[layer], sample.layers[-1])
            for kind, (result, partitions) in estimates[name][layer].items():
                scores[name] |= _summary(kind, result)
                common = {"layer": number, "seed": seed, "split": name, "rows": len(sample.labels), "estimator": kind}
                for partition, values in zip(partitions, result.swept, strict=True):
                    rows.append(common | partition | dict(zip(("plain", "shuffled", "bits"), values, strict=True)))
        layer_scores.append({"layer": number, "seed": seed, "l2": solutions[layer].l2, "scores": scores})
    return rows, layer_scores


@dataclass
class Sample:
    """The vectors [K][N, d] and labels [N] of a split that both estimators and the bound are measured on."""

    layers: list[torch.Tensor]
    labels: np.ndarray

    @classmethod
    def of(cls, reading: Reading, name: str, seed: int) -> "Sample":
        """Draw as many vectors of a split as the probe's entry says; all of them where there are no more.

        Raises UserError where they have a single label.
        """
        split = reading.splits[name]
        labels = split.targets().astype(np.int64)
        order = np.random.default_rng(derive_seed(seed, f"sample {name}")).permutation(len(labels))
        kept = np.sort(order[: reading.entry.rows])
        if len(np.unique(labels[kept])) < 2:
            raise UserError(
                f"task {reading.task['id']}: all rows of {name} have the label "
                f"{reading.labels[int(labels[kept[0]])]!r}; mutual information needs two or more"
            )
        return cls([vectors.values[kept] for vectors in split.layers], labels[kept])


def _bound(sample: Sample, layer: int, solution: Solution, fitted_rows: int) -> dict[str, float]:
    """Return H, the bound and its standard error over rows; H as counted in the sample, on average too low."""
    bits = surprisal(sample.layers[layer], sample.labels, solution, fitted_rows)
    own = -torch.from_numpy(np.log2(np.bincount(sample.labels) / len(sample.labels))[sample.labels])
    gained = own - bits.cpu()
    error = gained.std().item() / len(gained) ** 0.5
    return {"entropy": entropy(sample.labels), "bound": gained.mean().item(), "bound_error": error}


def _alignment(first: torch.Tensor, second: torch.Tensor) -> float | None:
    """Return the centred kernel alignment of two layers' vectors [N, d], which needs no bins."""
    sums = []
    for pair in ((first, second), (first, first), (second, second)):
        sums.append(Products())
        sums[-1].add(*pair)
    return cka(*sums)


def _summary(kind: str, result: Estimate) -> dict[str, float]:
    """Return what a record says of an estimate: of its sweep the lowest and the highest."""
    swept = [bits for *_, bits in result.swept]
    values = {"": result.bits, "_plain": result.plain, "_shuffled": result.shuffled, "_noise": result.noise}
    values |= {"_lowest": min(swept), "_highest": max(swept)}
    return {f"{kind}{part}": value for part, value in values.items()}


def _measured(sample: Sample, seed: int) -> list[dict[str, tuple[Estimate, list[dict]]]]:
    """Return for each layer the estimates of EDGE, of k-means, and of k-means with the last layer that is read.

    With each stand its partitions. All layers have the same random axes, shifts, starts and shuffles.
    """
    labels = sample.labels
    vectors = [layer.cpu().numpy() for layer in sample.layers]
    numbers = [number for number in CLUSTERS if number < len(labels)] or [2]
    joined = [clusters(layer, numbers, COMPONENTS, derive_seed(seed, "clusters") % 2**32) for layer in vectors]
    equal, shown = np.full(len(numbers), 1 / len(numbers)), [{"clusters": number} for number in numbers]
    by_layer = []
    for layer, cells in zip(vectors, joined, strict=True):
        pairs = {"edge": _edge(layer, labels, seed)}
        for kind, others in (("kmeans", [labels] * len(numbers)), ("with_last", joined[-1])):
            generator = np.random.default_rng(derive_seed(seed, "shuffles"))
            pairs[kind] = (estimate(cells, others, equal, SHUFFLES, generator), shown)
        by_layer.append(pairs)
    return by_layer


def _edge(vectors: np.ndarray, labels: np.ndarray, seed: int) -> tuple[Estimate, list[dict]]:
    """Return EDGE of a layer's vectors [N, d] and the labels, averaged over draws of axes, and its widths."""
    generator = np.random.default_rng(derive_seed(seed, "edge"))
    cells = []
    for _ in range(DRAWS):
        axes = projected(vectors, DIMENSIONS, generator)
        cells += [hashed(axes, width, generator) for width in WIDTHS]
    weights = np.tile(edge_weights(WIDTHS, len(labels), axes.shape[1]), DRAWS) / DRAWS
    result = estimate(cells, [labels] * len(cells), weights, SHUFFLES, generator)
    swept = np.array(result.swept).reshape(DRAWS, len(WIDTHS), -1).mean(0)
    return replace(result, swept=swept.tolist()), [{"width": width} for width in WIDTHS]


def surprisal(vectors: torch.Tensor, targets: np.ndarray, solution: Solution, fitted_rows: int) -> torch.Tensor:
    """Return the bits [N] that each target takes under a solution that was fitted to so many rows.

    Its probabilities are mixed with equal ones, with a share of 1 / (rows + 1): a label that no fitted row has
    would else take any number of bits.
    """
    shares = solution.logits(vectors).double().softmax(1)
    mixed = (shares * fitted_rows + 1 / shares.shape[1]) / (fitted_rows + 1)
    return -mixed.gather(1, torch.as_tensor(targets, device=shares.device).unsqueeze(1)).log2().squeeze(1)
