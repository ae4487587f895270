"""Parameter groups: which rate and which weight decay each trained parameter has."""

from collections.abc import Iterable

from torch.nn import Parameter

from thaw.adaptation.selectors import block, renumbered
from thaw.schema.phases import PhaseConfig

PROJECTION = "projection"  # the component of learned projections towards a teacher, which have the head's rate


def groups(
    components: dict[str, Iterable[tuple[str, Parameter]]],
    phase: PhaseConfig,
    layers: int,
    kept: list[int] | None = None,
) -> list[dict]:
    """Return groups for the optimizer: one for each component's matrices, one for its biases and norms.

    Args: the trained components by name ("head", "embeddings", "layer.1", "layer.1:bias", ...) with their named
    parameters; the phase; the number of layers L below the head; those that a student keeps, None for all. Each group
    has `params`, its `component`, `lr` and `peak` (see `peak`), and `weight_decay`: none on parameters of one
    dimension, that is, on biases and norms.
    """
    by_component: dict[tuple[str, float], list[Parameter]] = {}
    for component, parameters in components.items():
        for _, parameter in parameters:
            decay = phase.weight_decay if parameter.ndim > 1 else 0.0
            by_component.setdefault((component, decay), []).append(parameter)
    return [
        {"params": parameters, "component": component, "weight_decay": decay}
        | dict.fromkeys(("lr", "peak"), peak(renumbered(component, kept) if kept else component, phase, layers))
        for (component, decay), parameters in by_component.items()
    ]


def peak(component: str, phase: PhaseConfig, layers: int) -> float:
    """Return the peak rate of a component.

    The head has its own, where the phase gives one. The top layer has `rate`, and each layer below it that of the layer
    above times `layer_decay`: 1 / 2.6 is the rule of Howard and Ruder 2018 (section 3.1). The embeddings are the layer
    below layer 1. `layer_rates` lists the rates one by one, from the top; its last one holds for all further layers.
    """
    place = block(component)
    if place in ("head", PROJECTION):
        return phase.head_rate or phase.rate
    above = layers - (0 if place == "embeddings" else int(place.removeprefix("layer.")))
    if phase.layer_rates:
        return phase.layer_rates[min(above, len(phase.layer_rates) - 1)]
    return phase.rate * phase.layer_decay**above
