"""How large the gradients of each layer are, as means over the updates of an epoch.

The slopes by all that trains of a layer, of the embeddings or of the head are one vector, whose L2 norm is taken before
it is clipped.
"""

import torch
from torch.nn.utils import get_total_norm

from thaw.adaptation.selectors import block
from thaw.core.files import finite
from thaw.evaluation.result_files import GRADIENT


class Gradients:
    """The norms of an epoch's gradients by layer, added up on their device."""

    def __init__(self):
        """Begin an epoch."""
        self.sums: dict[str, torch.Tensor] = {}
        self.updates = 0

    def add(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        """Add those of an update. Args: what trains, by component and name, as `layer.1/...`."""
        found: dict[str, list[torch.Tensor]] = {}
        for name, parameter in parameters.items():
            if parameter.grad is not None:
                found.setdefault(block(name.partition("/")[0]), []).append(parameter.grad)
        for layer, gradients in found.items():
            self.sums[layer] = self.sums.get(layer, 0.0) + get_total_norm(gradients)
        self.updates += 1

    def told(self) -> dict[str, float | None]:
        """Return the means as columns of the history, None where one is not finite, and begin the next epoch."""
        found = {GRADIENT + layer: finite(total.item() / self.updates) for layer, total in self.sums.items()}
        self.sums, self.updates = {}, 0
        return found
