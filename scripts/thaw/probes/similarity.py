"""Similarity of hidden states before and after adaptation, layer by layer: CKA, SVCCA and RSA over tokens."""

import numpy as np
import torch

from thaw.core.runtime import derive_seed
from thaw.probes import similarity_indices
from thaw.probes.encoder_comparison import BATCH, PRETRAINED, EncoderComparison


def cka(comparison: EncoderComparison) -> tuple[list[dict], list[dict]]:
    """Return debiased linear CKA of each layer, added up in batches."""
    return comparison.by_layer(lambda layer: _from_products(comparison, layer, similarity_indices.cka))


def svcca(comparison: EncoderComparison) -> tuple[list[dict], list[dict]]:
    """Return SVCCA of each layer, and what it gives by chance: with the tokens of one side in another order."""
    return comparison.by_layer(lambda layer: _from_products(comparison, layer, similarity_indices.svcca, "chance"))


def rsa(comparison: EncoderComparison) -> tuple[list[dict], list[dict]]:
    positions = comparison.token_positions()

    def measure(layer: int) -> dict:
        states = {side: _states(comparison, side, layer, positions) for side in comparison.sides}
        return {
            (one, other): {"rsa": similarity_indices.rsa(states[one], states[other])}
            for _, _, (one, other) in comparison.pairs
        }

    return comparison.by_layer(measure)


def _from_products(comparison: EncoderComparison, layer: int, measure, chance: str = "") -> dict:
    """Return a measure of each pair of sides from sums over batches of tokens, and that by chance under a name."""
    positions, pairs = comparison.token_positions(), [pair for _, _, pair in comparison.pairs]
    mixed = np.random.default_rng(derive_seed(0, "chance")).permutation(positions) if chance else positions
    wanted = [*pairs, *((side, side) for side in comparison.sides)]
    sums = {pair: similarity_indices.Products() for pair in wanted}
    by_chance = {pair: similarity_indices.Products() for pair in pairs if chance}
    for start in range(0, len(positions), BATCH):
        here = slice(start, start + BATCH)
        states = {side: _states(comparison, side, layer, positions[here]) for side in comparison.sides}
        for (first, second), products in sums.items():
            products.add(states[first], states[second])
        others = {side: _states(comparison, side, layer, mixed[here]) for side in comparison.sides if chance}
        for (first, second), products in by_chance.items():
            products.add(states[first], others[second])
    values = {}
    for first, second in pairs:
        own = (sums[first, first], sums[second, second])
        values[first, second] = {comparison.entry.kind: measure(sums[first, second], *own)}
        if chance:
            values[first, second][chance] = measure(by_chance[first, second], *own)
    return values


def _states(comparison: EncoderComparison, side, layer: int, positions: np.ndarray) -> torch.Tensor:
    return comparison.states(side, layer, positions).to(comparison.sides[PRETRAINED].device)
