"""What a fine-tuned model keeps without some attention heads: score, parameters and time (Michel et al. 2019).

Unlike `head_importance`, the loss is that of the run's own head. Heads are removed by rising importance, measured on
training rows that no run has read, and the score is that of validation. Nothing is trained.
"""

import copy
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from thaw.core.errors import UserError
from thaw.encoders.fewer_heads import take_out
from thaw.features.batch import Batch
from thaw.probes.head_importance import SHARES, by_layer, importance, masked, ranked
from thaw.probes.reading import Reading
from thaw.probes.run_model import finished, validation_score
from thaw.training.objectives import Supervised
from thaw.training.task_model import TaskModel

PASSES = 5  # over the examples; the median is the time
ROUNDING = 0.01  # of a score: the smaller products are rounded otherwise, and a prediction may be another


def head_removal(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each head and share removed, and for each layer its heads; the last has the shares.

    Of each share `score` on validation, with heads masked; for heads in the order of importance also `parameters` of
    the encoder without them and `seconds` of one pass over the examples. Raises UserError where a model without the
    heads scores otherwise than one in which they are masked.
    """
    model = finished(reading)
    rows = reading.rows["train"][: reading.entry.examples]
    raw = importance(reading, model.encoder, rows, _losses(reading, model, rows))
    normed, orders = ranked(raw, seed)
    removed = [
        {"order": name, "share": share}
        | _without(reading, model, order[: round(share * raw.size)], name == "importance")
        for name, order in orders.items()
        for share in SHARES
    ]
    return by_layer(raw, normed, removed, seed, both=False)


def _losses(reading: Reading, model: TaskModel, rows: np.ndarray) -> Callable:
    """Return the loss of the run's own head on some rows of train, see `importance`: each by itself, then the sum.

    That of a batch is a mean over all of its words, and depends on which texts are in it.
    """
    objective = Supervised(reading.corpus.targets(reading.task, "train"))

    def loss(positions: np.ndarray, batch: Batch) -> torch.Tensor:
        logits, targets = model(batch, {}), objective.targets(model.head, rows[positions], batch)
        by_text = zip(logits.split(1), targets.split(1), strict=True)
        return torch.stack([model.head.loss(*one) for one in by_text]).sum()

    return loss


def _without(reading: Reading, model: TaskModel, removed: np.ndarray, measured: bool) -> dict:
    """Return the score without some heads; if measured, parameters and seconds of the encoder without them."""
    with masked(model.encoder, 1, removed):
        score = validation_score(reading, model)
    if not measured:
        return {"score": score}
    smaller = copy.deepcopy(model)
    take_out(smaller.encoder, set(map(int, removed)))
    try:
        unmasked = validation_score(reading, smaller)
    except RuntimeError as error:  # a bias for each head, as MPNet's for positions
        raise UserError("head_removal: this encoder has more of each head than its queries, keys and values") from error
    if abs((unmasked or 0.0) - (score or 0.0)) > ROUNDING:
        raise UserError(f"head_removal: without {len(removed)} heads this encoder does not compute what a mask gives")
    taken = []
    for _ in range(PASSES):
        begun = time.perf_counter()
        validation_score(reading, smaller)
        taken.append(time.perf_counter() - begun)
    parameters = sum(parameter.numel() for parameter in smaller.encoder.parameters())
    return {"score": score, "parameters": parameters, "seconds": statistics.median(taken)}
