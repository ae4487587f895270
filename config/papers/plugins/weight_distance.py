"""How far training moved the weights of each layer: the L2 norm of the difference, and as a share of the weights'."""

from thaw.declarations.probes import CHANGE, COMPARISON, ProbeKind, ProbeOptions

PROBES = {
    "weight_distance": ProbeKind(
        "thaw.papers.weight_distance:weight_distance", ProbeOptions, COMPARISON, CHANGE, "weight_distance"
    )
}


import torch

from thaw.adaptation.peft_modules import merge
from thaw.core.errors import UserError
from thaw.encoders.transformers import Encoder
from thaw.probes.encoder_comparison import EncoderComparison


def weight_distance(comparison: EncoderComparison) -> tuple[list[dict], list[dict]]:
    """Return for each layer, 0 the embeddings, the distance of weights as a share of the first one's norm.

    `distance` is the plain L2 norm. LoRA and IA3 are merged into their weight matrices; adapters cannot
    be, and are a UserError.
    """
    weights = {side: _weights(comparison, side) for side in comparison.sides}

    def measure(layer: int) -> dict:
        name, distances = f"layer.{layer}" if layer else "embeddings", {}
        for _, _, (one, other) in comparison.pairs:
            first, second = weights[one][name], weights[other][name]
            distance = _norm([second[tensor] - value for tensor, value in first.items()])
            distances[one, other] = {"weight_distance": distance / _norm(first.values()), "distance": distance}
        return distances

    return comparison.by_layer(measure)


def _weights(comparison: EncoderComparison, side: int | None) -> dict[str, dict[str, torch.Tensor]]:
    """Return the weights of a side by component and name, inserts multiplied in."""
    encoder, inputs = comparison.encoder(side), comparison.sides[side]
    if inputs.adapted and inputs.adapted.inserts:
        if inputs.adapted.inserts.make.kind == "adapters":
            raise UserError(
                f"{comparison.task['id']}: adapters change no pretrained weights; leave "
                f"{comparison.entry.kind} out, or the strategy out of adapted:"
            )
        merge(encoder.model)
        encoder = Encoder(encoder.model)
    return {part: {name: p.detach().double() for name, p in named} for part, named in encoder.components().items()}


def _norm(tensors) -> float:
    return sum(tensor.square().sum().item() for tensor in tensors) ** 0.5
