"""Optimizers: AdamW of torch, and Adam as the first BERT code had it; which rate and decay each parameter has."""

import inspect
from collections.abc import Iterable, Iterator

import torch
from torch.nn import Parameter

from thaw.adaptation.selectors import block, renumbered
from thaw.schema.phases import PhaseConfig

BETAS = (0.9, 0.999)  # of torch's own AdamW, and the default of a phase


class BertAdam(torch.optim.Optimizer):
    """Adam with decoupled weight decay and without bias correction (google-research/bert, optimization.py).

    The two running means start at 0 and are used as they are, so that the first updates are larger than Adam's: the
    first one 0.1 / sqrt(0.001) = 3.2 times. Zhang et al. 2021 (section 4) find small data unstable with it.
    """

    def __init__(self, groups: list[dict], betas: tuple[float, float] = BETAS):
        """Take the groups; each has its `lr` and `weight_decay`. Default betas and epsilon are those of the source."""
        super().__init__(groups, {"betas": betas, "eps": 1e-6})

    @torch.no_grad()
    def step(self, closure=None) -> None:  # type: ignore[override]
        """Make one update of all parameters that have a gradient."""
        for group in self.param_groups:
            for parameters in together([p for p in group["params"] if p.grad is not None]):
                self._update(parameters, group)

    def _update(self, parameters: list, group: dict) -> None:
        """Update some parameters of a group by the same operations."""
        first, second = group["betas"]
        gradients, means, squares = ([p.grad for p in parameters], *self._means(parameters))
        torch._foreach_lerp_(means, gradients, 1 - first)
        torch._foreach_mul_(squares, second)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - second)
        torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        roots = torch._foreach_sqrt(squares)
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_addcdiv_(parameters, means, roots, value=-group["lr"])

    def _means(self, parameters: list) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        states = [self.state[parameter] for parameter in parameters]
        for parameter, state in zip(parameters, states, strict=True):
            if not state:
                state.update(mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
        return [state["mean"] for state in states], [state["square"] for state in states]


class AdamW(torch.optim.AdamW):
    """torch's AdamW without its compiler, which its `step` loads, though nothing here is compiled."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


def optimizer(name: str, groups: list[dict], betas: tuple[float, float] = BETAS) -> torch.optim.Optimizer:
    """Return the optimizer of a name, "adamw" or "bert_adam", over some parameter groups."""
    # torch's compiler, whose import takes as long as that of torch, is loaded to mark some methods as never to be
    # compiled: here they are marked so without it
    for method in vars(torch.optim.Optimizer).values():
        if hasattr(method, "__wrapped__"):
            setattr(method.__wrapped__, "__dynamo_disable", method.__wrapped__)  # noqa: B010
    return BertAdam(groups, betas) if name == "bert_adam" else AdamW(groups, betas=betas, fused=True)


def together(tensors: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Yield the tensors that one operation should take at once.

    On a GPU all of them: each launch costs more than the work on a small tensor. On a CPU one by one, so that the next
    operation finds a tensor still in the cache.
    """
    if tensors and tensors[0].device.type == "cpu":
        yield from ([tensor] for tensor in tensors)
    elif tensors:
        yield tensors


PROJECTION = "projection"  # the component of learned projections towards a teacher, which have the head's rate


def groups(
    components: dict[str, Iterable[tuple[str, Parameter]]],
    phase: PhaseConfig,
    layers: int,
    kept: list[int] | None = None,
) -> list[dict]:
    """Return groups for the optimizer: one for each component's matrices, one for its biases and norms.

    Args: the trained components by name ("head", "embeddings", "layer.1", "layer.1:bias", ...) with their named
    parameters; the phase; the number of layers L below the head; those that are kept, None for all. Each group
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
    below layer 1.
    """
    place = block(component)
    if place in ("head", PROJECTION):
        return phase.head_rate or phase.one_rate
    above = layers - (0 if place == "embeddings" else int(place.removeprefix("layer.")))
    return phase.one_rate * phase.layer_decay**above
