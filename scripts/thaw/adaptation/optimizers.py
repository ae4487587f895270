"""Optimizers: AdamW of torch, and Adam as the first BERT code had it."""

import inspect

import torch


class BertAdam(torch.optim.Optimizer):
    """Adam with decoupled weight decay and without bias correction (google-research/bert, optimization.py).

    The two running means start at 0 and are used as they are, so that the first updates are larger than Adam's: the
    first one 0.1 / sqrt(0.001) = 3.2 times. Zhang et al. 2021 (section 4) find small data unstable with it.
    """

    def __init__(self, groups: list[dict]):
        """Take the groups; each has its `lr` and `weight_decay`. Betas and epsilon are those of the source."""
        super().__init__(groups, {"betas": (0.9, 0.999), "eps": 1e-6})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        """Make one update of all parameters that have a gradient."""
        for group in self.param_groups:
            first, second = group["betas"]
            for parameter in (p for p in group["params"] if p.grad is not None):
                state = self.state[parameter]
                if not state:
                    state.update(mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
                state["mean"].lerp_(parameter.grad, 1 - first)
                state["square"].mul_(second).addcmul_(parameter.grad, parameter.grad, value=1 - second)
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.addcdiv_(state["mean"], state["square"].sqrt().add_(group["eps"]), value=-group["lr"])


class AdamW(torch.optim.AdamW):
    """torch's AdamW without its compiler, which its `step` loads, though nothing here is compiled."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


def optimizer(name: str, groups: list[dict]) -> torch.optim.Optimizer:
    """Return the optimizer of a name, "adamw" or "bert_adam", over some parameter groups."""
    _uncompiled()
    return BertAdam(groups) if name == "bert_adam" else AdamW(groups, fused=True)


def _uncompiled() -> None:
    """Let optimizers be made without torch's compiler, whose import takes as long as that of torch itself.

    torch loads it to mark some of their methods as never to be compiled; here they are marked so without it.
    """
    for method in vars(torch.optim.Optimizer).values():
        if hasattr(method, "__wrapped__"):
            setattr(method.__wrapped__, "__dynamo_disable", method.__wrapped__)  # noqa: B010
