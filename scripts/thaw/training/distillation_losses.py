"""The formulas of distillation, on tensors: float32, means over what has a target, 0 where student equals teacher.

KL divergence and not cross-entropy: the gradient is the same. n vectors (examples, or words that have a target), C
classes, S sequences, T tokens, d width.
"""

import torch
from torch.nn import functional


def soft_targets(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return t^2 times the mean KL(softmax(teacher / t) || softmax(student / t)) of logits [..., C] (Hinton 2015).

    The square keeps the size of the gradient independent of the temperature t.
    """
    log_student, log_teacher = ((x.float() / temperature).log_softmax(-1) for x in (student, teacher))
    return temperature**2 * _divergence(log_student, log_teacher).mean()


def _divergence(log_student: torch.Tensor, log_teacher: torch.Tensor) -> torch.Tensor:
    """Return KL(teacher || student) [...] of logarithms of probabilities [..., C]."""
    return functional.kl_div(log_student, log_teacher, reduction="none", log_target=True).sum(-1)


def yes_or_no(logits: torch.Tensor) -> torch.Tensor:
    """Return the logits [n, C] of labels that each hold or not as those of two classes each, [n, C, 2]."""
    return torch.stack([logits, torch.zeros_like(logits)], -1)


def relation_distance(
    student: tuple[torch.Tensor, torch.Tensor],
    teacher: tuple[torch.Tensor, torch.Tensor],
    mask: torch.Tensor,
    heads: int,
    form: str,
) -> torch.Tensor:
    """Return the mean distance of what tokens attend to, over heads and queries that are no padding.

    Args: of each model two of queries, keys and values [S, T, d], whose products in so many heads are compared; mask
    [S, T]; form: shares, the KL divergence after the softmax over tokens that are no padding (Wang W. et al. 2020;
    Aguilar et al. 2020), or scores, the mean squared error before it over these tokens (Jiao et al. 2020).
    """
    ours, theirs = (_scores(*one, heads) for one in (student, teacher))
    queries = mask[:, None, :].expand(ours.shape[:3])
    if form == "scores":
        both = queries[..., None] & mask[:, None, None, :]
        return functional.mse_loss(ours[both], theirs[both])
    lowest = torch.finfo(torch.float32).min
    ours, theirs = (x.masked_fill(~mask[:, None, None, :], lowest).log_softmax(-1) for x in (ours, theirs))
    return _divergence(ours, theirs)[queries].mean()


def _scores(first: torch.Tensor, second: torch.Tensor, heads: int) -> torch.Tensor:
    """Return the scaled products [S, heads, T, T] of two of queries, keys and values [S, T, d]."""
    first, second = (x.float().unflatten(-1, (heads, -1)).transpose(1, 2) for x in (first, second))
    return first @ second.transpose(-1, -2) / first.shape[-1] ** 0.5


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
