"""Parameter groups: which rate and which weight decay each trained parameter has."""

from collections.abc import Iterable

from torch.nn import Parameter

from thaw.settings import Phase


def groups(components: dict[str, Iterable[tuple[str, Parameter]]], phase: Phase) -> list[dict]:
    """Return a phase's groups for the optimizer, all of them at the start.

    Args: the trained components by name ("head", "embeddings", "layer.1", ...) with their named parameters.
    Each group has `params`, `lr` and `peak` (the head's own rate, where it has one), and `weight_decay`:
    none on biases and norms, that is, on parameters of one dimension.
    """
    found: dict[tuple[float, float], list[Parameter]] = {}
    for component, parameters in components.items():
        rate = phase.head_rate if component == "head" and phase.head_rate else phase.rate
        for _, parameter in parameters:
            decay = phase.weight_decay if parameter.ndim > 1 else 0.0
            found.setdefault((rate, decay), []).append(parameter)
    return [
        {"params": parameters, "lr": rate, "peak": rate, "weight_decay": decay}
        for (rate, decay), parameters in found.items()
    ]
