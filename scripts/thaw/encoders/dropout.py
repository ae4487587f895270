"""Dropout with masks that a processor draws quickly: four values from one number, where torch draws one by one."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

LEVELS = 2**16
BITS = {torch.float32: torch.int32, torch.bfloat16: torch.int16}  # integers as wide as each type


class FastDropout(nn.Dropout):
    """nn.Dropout with the same distribution, its share rounded to 1/65536; on a GPU it is nn.Dropout."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return values of any shape, each 0 with share p and else divided by 1 - p; in eval mode as they are."""
        if not self.training or not 0 < self.p < 1 or values.device.type != "cpu":
            return functional.dropout(values, self.p, self.training)
        dtype = values.dtype if values.dtype in BITS else torch.float32
        return values * noise(values.shape, self.p, dtype=dtype).to(values.dtype)


def noise(shape, share: float, sources: list[np.random.SFC64] | None = None, dtype=torch.float32) -> torch.Tensor:
    """Return numbers of a shape on the CPU, 0 with the given share and else 1 / (1 - share); see `kept`.

    Those of bfloat16 are written as 16 bits, at half the time of float32 that is cast, and are the same.
    """
    scale = torch.tensor(1 / (1 - share), device="cpu").to(dtype).view(BITS[dtype]).numpy()
    return torch.from_numpy(np.multiply(_kept(shape, share, sources), scale)).view(dtype).view(shape)


def kept(shape, share: float, sources: list[np.random.SFC64] | None = None) -> torch.Tensor:
    """Return which numbers of a shape are kept by a dropout of the given share, bool, on the CPU."""
    return torch.from_numpy(_kept(shape, share, sources)).view(shape)


def _kept(shape, share: float, sources: list[np.random.SFC64] | None) -> np.ndarray:
    """Return which numbers of a shape, flat, are kept by a dropout of the given share.

    The random numbers are those of some sources, one for each entry of the first dimension; without any, of one that
    begins with a draw of torch's generator. Draws and comparisons are numpy's, whose code for 16 bits takes a tenth of
    the time of torch's.
    """
    sources = sources or [np.random.SFC64(int(torch.randint(2**63 - 1, ())))]
    count = math.prod(shape) // len(sources)
    drawn = [source.random_raw(-(-count // 4)).view(np.uint16)[:count] for source in sources]
    return (drawn[0] if len(drawn) == 1 else np.concatenate(drawn)) >= round(share * LEVELS)


def replace(model: nn.Module) -> None:
    """Put this dropout into the place of every plain nn.Dropout of a model."""
    for path, module in list(model.named_modules()):
        if type(module) is nn.Dropout:
            model.set_submodule(path, FastDropout(module.p))
