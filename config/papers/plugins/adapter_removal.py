"""What a fine-tuned model keeps without the adapters of some layers (Houlsby et al. 2019, figure 6).

Nothing is trained again: the output of a sublayer passes as it is, and the layer norms that were trained with the
adapters stay. A span is some layers in a row, from its first to its last.

L layers.
"""

from thaw.declarations.probes import VECTORS, ProbeKind, RemovalOptions

PROBES = {
    "adapter_removal": ProbeKind(
        "thaw.papers.adapter_removal:adapter_removal",
        RemovalOptions,
        VECTORS,
        ("adapters_figure",),
        of_runs=True,
        insert="adapters",
    )
}


import contextlib
from collections.abc import Iterator

from thaw.adaptation.peft_modules import BottleneckAdapter
from thaw.encoders.transformers import Encoder
from thaw.probes.reading import Reading, finished, validation_score


def adapter_removal(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each span of layers, and for each layer the spans that begin with it; the first has the whole.

    Scores are of the run's own head on validation.
    """
    model = finished(reading)
    layers = len(model.encoder.sublayers)
    split, metric = reading.task["validation"], reading.task["metrics"][0]
    rows, by_layer = [], []
    for first in range(1, layers + 1):
        spans = []
        for last in range(first, layers + 1):
            with without_adapters(model.encoder, range(first, last + 1)):
                spans.append({"last": last, "score": validation_score(reading, model)})
        rows += [{"layer": first, "seed": seed, **span} for span in spans]
        scores = {split: {metric: spans[0]["score"]}}  # without this layer's adapters alone
        by_layer.append({"layer": first, "seed": seed, "scores": scores, "spans": spans})
    by_layer[0]["whole"] = validation_score(reading, model)
    return rows, by_layer


@contextlib.contextmanager
def without_adapters(encoder: Encoder, layers: range) -> Iterator[None]:
    """Let sublayers of some layers, 1 to L, compute without their adapters."""
    stack = encoder.model.get_submodule(encoder.anatomy.layers)
    removed = [
        module for layer in layers for module in stack[layer - 1].modules() if isinstance(module, BottleneckAdapter)
    ]
    for module in removed:
        module.forward = module.base_layer.forward
    try:
        yield
    finally:
        for module in removed:
            del module.forward
