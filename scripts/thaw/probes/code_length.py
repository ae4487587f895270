"""What labels cost in bits under a probe that was fitted to other rows.

N vectors, C classes.
"""

import numpy as np
import torch

from thaw.heads.convex import Solution


def surprisal(vectors: torch.Tensor, targets: np.ndarray, solution: Solution, fitted_rows: int) -> torch.Tensor:
    """Return the bits [N] that each target takes under a solution that was fitted to so many rows.

    Its probabilities are mixed with equal ones, with a share of 1 / (rows + 1): a label that no fitted row has
    would else take any number of bits.
    """
    shares = solution.logits(vectors).double().softmax(1)
    mixed = (shares * fitted_rows + 1 / shares.shape[1]) / (fitted_rows + 1)
    return -mixed.gather(1, torch.as_tensor(targets, device=shares.device).unsqueeze(1)).log2().squeeze(1)


def code_length(split, layer: int, solution: Solution, fitted_rows: int) -> float:
    """Return the bits that all targets of a split (thaw.probes.reading.Split) take, by its layer's position."""
    return surprisal(split.layers[layer].values, split.targets(), solution, fitted_rows).sum().item()
