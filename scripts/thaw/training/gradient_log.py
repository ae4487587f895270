"""The gradient norms of each layer, as means over the updates of an epoch.

All gradients of a layer, of the embeddings or of the head are one vector. Its L2 norm is taken before clipping.
"""

import torch
from torch.nn.utils import get_total_norm

from thaw.adaptation.selectors import block
from thaw.core.files import finite
from thaw.evaluation.result_files import GRADIENT


class Gradients:
    """The sums of an epoch's gradient norms by layer, on the device of the gradients."""

    def __init__(self):
        """Start an epoch."""
        self.sums: dict[str, torch.Tensor] = {}
        self.updates = 0

    def add(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        """Add the norms of an update. Args: the parameters that train, by component and name, as `layer.1/...`."""
        by_layer: dict[str, list[torch.Tensor]] = {}
        for name, parameter in parameters.items():
            if parameter.grad is not None:
                by_layer.setdefault(block(name.partition("/")[0]), []).append(parameter.grad)
        for layer, gradients in by_layer.items():
            self.sums[layer] = self.sums.get(layer, 0.0) + get_total_norm(gradients)
        self.updates += 1

    def means(self) -> dict[str, float | None]:
        """Return the means as columns of the history, None where one is not finite, and start the next epoch."""
        columns = {GRADIENT + layer: finite(total.item() / self.updates) for layer, total in self.sums.items()}
        self.sums, self.updates = {}, 0
        return columns
