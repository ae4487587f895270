"""How attention changes: the cosine of each head's map before and after adaptation (Kovaleva et al. 2019, figure 5).

A map is flattened without padding, which the paper's code leaves in; cosines are averaged over texts.

S sequences, H heads, T tokens, L layers.
"""

from thaw.declarations.probes import CHANGE, COMPARISON, ExampleOptions, ProbeKind

PROBES = {
    "attention_similarity": ProbeKind(
        "thaw.papers.attention_similarity:attention_similarity",
        ExampleOptions,
        COMPARISON,
        (*CHANGE, "attention_figure"),
        "attention_similarity",
    )
}


import torch
from torch.nn import functional

from thaw.core.errors import UserError
from thaw.core.runtime import progress
from thaw.encoders.registry import builtin_kind
from thaw.features.row_sets import batches
from thaw.probes.encoder_comparison import PRETRAINED, EncoderComparison


def attention_similarity(comparison: EncoderComparison) -> tuple[list[dict], list[dict]]:
    """Return the mean cosine over texts of each layer's maps, from layer 1; each layer score has those of its heads."""
    sides = comparison.sides
    if builtin_kind(sides[None].encoder):
        raise UserError(f"{sides[None].encoder}: this encoder has no attention that could be compared; leave it out")
    encoders = {side: comparison.encoder(side) for side in sides}
    for encoder in encoders.values():
        encoder.model.set_attn_implementation("eager")  # the only one that hands out its maps
    store, rows, pairs = sides[None].store, comparison.rows(), list(comparison.pairs)
    sums, count = {pair: 0.0 for _, _, pair in pairs}, 0
    for positions in progress(batches(store.sizes(comparison.split)[rows]), "attention maps"):
        batch = store.batch(comparison.split, rows[positions]).to(sides[None].device)
        maps = {side: _maps(encoder, batch) for side, encoder in encoders.items()}
        for one, other in sums:
            sums[one, other] = sums[one, other] + cosines(maps[one], maps[other], batch.mask).sum(1)
        count += len(batch.mask)
    return _rows_and_scores(comparison, {pair: (total / count).tolist() for pair, total in sums.items()})


def cosines(first: torch.Tensor, second: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the cosine of each head's maps [L, S, H] without padding, of maps [L, S, H, T, T] and the mask [S, T]."""
    real = (mask.unsqueeze(1) & mask.unsqueeze(2)).unsqueeze(1)
    flat = [(maps * real).flatten(3) for maps in (first, second)]
    return functional.cosine_similarity(*flat, dim=-1)


@torch.no_grad()
def _maps(encoder, batch) -> torch.Tensor:
    """Return the maps of all layers, float32 [L, S, H, T, T]."""
    attentions = encoder.model(**encoder.inputs(batch), output_attentions=True).attentions
    return torch.stack([layer.float() for layer in attentions])


def _rows_and_scores(comparison: EncoderComparison, cosines_by_pair: dict) -> tuple[list[dict], list[dict]]:
    """Return rows and layer scores of cosines by pair, layer and head."""
    rows, layer_scores = [], []
    for layer in (number for number in comparison.numbers if number):
        heads: dict[int, dict] = {seed: {} for seed in comparison.seeds}
        for seed, name, pair in comparison.pairs:
            other = "pretrained" if pair[0] is PRETRAINED else pair[1]
            cosines_of = heads[seed][name] = cosines_by_pair[pair][layer - 1]
            common = {"layer": layer, "seed": seed, "with": other}
            rows += [common | {"head": head, "cosine": value} for head, value in enumerate(cosines_of)]
        for seed, of_heads in heads.items():
            scores = {name: sum(values) / len(values) for name, values in of_heads.items()}
            layer_scores.append({"layer": layer, "seed": seed, "scores": {comparison.split: scores}, "heads": of_heads})
    return rows, layer_scores
