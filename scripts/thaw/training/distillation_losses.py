"""The formulas of distillation, on tensors: float32, means over what has a target, 0 where student equals teacher.

KL divergence and not cross-entropy: the gradient is the same. n vectors (examples, or words that have a target), C
classes, S sequences, T tokens, d width.
"""

import torch
from torch.nn import functional


def soft_targets(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return t^2 times the mean KL(softmax(teacher / t) || softmax(student / t)) of logits [n, C] (Hinton et al. 2015).

    The square keeps the size of the gradient independent of the temperature t.
    """
    log_student = functional.log_softmax(student.float() / temperature, -1)
    log_teacher = functional.log_softmax(teacher.float() / temperature, -1)
    each = (log_teacher.exp() * (log_teacher - log_student)).sum(-1)
    return temperature**2 * each.mean()


def squared_error(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return the mean squared error of logits [n, C] or scores [n], over all their numbers."""
    return functional.mse_loss(student.float(), teacher.float())


def state_distance(
    student: torch.Tensor, teacher: torch.Tensor, mask: torch.Tensor, of: str, loss: str, normalise: bool
) -> torch.Tensor:
    """Return the mean distance of hidden states [S, T, d] of the first token or of all tokens that are no padding.

    Args: states of both; mask [S, T]; of: first or tokens; loss: mse, the mean over sequences (tokens) and d, or
    cosine, 1 - cos; normalise: scale both to length 1 first (Sun et al. 2019, equation 7, a mean over d and no sum).
    """
    student, teacher = (x[:, 0].float() if of == "first" else x[mask].float() for x in (student, teacher))
    if loss == "cosine":
        return (1 - functional.cosine_similarity(student, teacher, dim=-1)).mean()
    if normalise:
        student, teacher = functional.normalize(student, dim=-1), functional.normalize(teacher, dim=-1)
    return functional.mse_loss(student, teacher)
