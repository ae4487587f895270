"""Attention heads: how much the loss depends on each, and what is left when those that matter least are removed.

Michel, Levy and Neubig 2019: every head's output is multiplied by a mask of 1; a head's importance is the mean over
texts of the size of the loss' gradient by its mask (equation 2), divided by the norm over its layer (section 4.1).
Nothing is trained, and heads are removed by a mask of 0. The loss of `head_importance` is that of the linear probe on
the last layer. That of `head_removal` is the one of the run's own head, on training rows that no run has read.

B examples, S sequences, T tokens, L layers, H heads, d width.
"""

from thaw.declarations.probes import VECTORS, ExampleOptions, LinearOptions, ProbeKind, RemovalOptions


class HeadImportanceOptions(LinearOptions, ExampleOptions):
    """A linear probe, and the texts on which attention heads are masked."""


PROBES = {
    "head_importance": ProbeKind(
        "thaw.papers.attention_heads:head_importance",
        HeadImportanceOptions,
        VECTORS,
        ("heads_figure",),
        "importance",
        version=2,
    ),
    "head_removal": ProbeKind(
        "thaw.papers.attention_heads:head_removal",
        RemovalOptions,
        VECTORS,
        ("heads_figure",),
        "importance",
        of_runs=True,
        version=2,
    ),
}


import contextlib
import copy
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from thaw.core.errors import UserError
from thaw.core.runtime import derive_seed, progress
from thaw.encoders.transformers import Encoder
from thaw.features.batch import Batch
from thaw.features.row_sets import batches
from thaw.heads.convex import Solution
from thaw.probes.reading import Reading, Split, finished, validation_score
from thaw.training.head_vectors import VectorReader
from thaw.training.objectives import Supervised
from thaw.training.task_model import TaskModel, read_states

SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)  # of all heads, removed together


def head_importance(reading: Reading, seed: int) -> tuple[list[dict], list[dict]]:
    """Return a row for each head and for each share removed, and for each layer its heads; the last has the shares.

    Importance is measured on the training rows that choose the strength, the score on validation. Heads are removed by
    rising importance, and in an order drawn by the seed.
    """
    solution, held = _solution(reading, seed)
    reader = reading.whole()
    part = held.part(np.arange(len(held.rows))[: reading.entry.examples])
    raw = importance(reading, reader.encoder, part.rows, _losses(reading, reader, part, solution))
    normed, orders = ranked(raw, seed)
    removed = [
        {"order": name, "share": share, "score": _score(reading, reader, solution, order[: round(share * raw.size)])}
        for name, order in orders.items()
        for share in SHARES
    ]
    return by_layer(raw, normed, removed, seed, both=True)


def ranked(raw: np.ndarray, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return importances divided by their layer's norm, [L, H], and the orders in which heads go: rising, and drawn."""
    normed = raw / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-20)
    drawn = np.random.default_rng(derive_seed(seed, "heads")).permutation(raw.size)
    return normed, {"importance": np.argsort(normed, axis=None, kind="stable"), "random": drawn}


def by_layer(raw: np.ndarray, normed: np.ndarray, removed: list[dict], seed: int, both: bool) -> tuple[list, list]:
    """Return a row for each head and each share removed, and for each layer its heads; the last has the shares.

    Args: importances [L, H], see `ranked`; both, whether a row has the one that is not normed too.
    """
    rows, layer_scores = [], []
    for layer, (plain, values) in enumerate(zip(raw.tolist(), normed.tolist(), strict=True), 1):
        common = {"layer": layer, "seed": seed}
        for head, (one, two) in enumerate(zip(plain, values, strict=True)):
            rows.append(common | {"head": head} | ({"importance": one} if both else {}) | {"normed": two})
        scores = {"train": {"importance": float(raw[layer - 1].mean())}}
        layer_scores.append(common | {"scores": scores, "heads": values})
    layer_scores[-1]["removed"] = removed
    return rows + [{"layer": len(normed), "seed": seed, **entry} for entry in removed], layer_scores


def importance(
    reading: Reading, encoder: Encoder, rows: np.ndarray, loss: Callable[[np.ndarray, Batch], torch.Tensor]
) -> np.ndarray:
    """Return the mean over rows of train of the size of the loss' gradient by each head's mask, [L, H].

    Args: loss(positions, batch), the sum of the losses that the texts at some positions of rows have by themselves.
    """
    store, total = reading.inputs.store, 0.0
    for positions in progress(batches(store.sizes("train")[rows]), "heads"):
        batch = store.batch("train", rows[positions]).to(reading.device)
        with masked(encoder, len(batch.mask)) as masks:
            (gradient,) = torch.autograd.grad(loss(positions, batch), [masks])
        per_text = gradient.unflatten(0, (len(positions), -1)).sum(1)  # the texts of a pair that are read separately
        total = total + per_text.abs().sum(0)
    return (total / len(rows)).cpu().numpy()


@contextlib.contextmanager
def masked(encoder: Encoder, sequences: int, removed=()) -> Iterator[torch.Tensor]:
    """Multiply what each head gives by its mask, which is yielded, [S, L, H] of ones, and 0 for heads that are removed.

    Args: sequences S of a batch, or 1 for the same masks in any; removed, indices of heads, counted through all layers.
    Raises UserError where there are no such heads.
    """
    layers = encoder.model.get_submodule(encoder.anatomy.layers)
    count = getattr(encoder.model.config, "num_attention_heads", 0)
    outputs = [sublayers.output for sublayers in encoder.sublayers]
    if not count or None in outputs:
        raise UserError("head_importance: this encoder has no attention heads in each layer; leave it out")
    masks = torch.ones(sequences, len(outputs) * count, device=next(encoder.parameters()).device)
    masks[:, np.asarray(removed, dtype=np.int64)] = 0
    masks = masks.unflatten(1, (len(outputs), count)).requires_grad_()

    def hook(layer: int):
        def multiply(module, inputs):
            given = inputs[0].unflatten(-1, (count, -1))  # [S, T, H, d / H]
            return ((given * masks[: len(given), layer, None, :, None]).flatten(-2), *inputs[1:])

        return multiply

    placed = [layers[n].get_submodule(path).register_forward_pre_hook(hook(n)) for n, path in enumerate(outputs)]
    try:
        yield masks
    finally:
        for one in placed:
            one.remove()


def _solution(reading: Reading, seed: int) -> tuple[Solution, Split]:
    """Return the linear probe on the last layer that is read, and the rows that its strength was chosen on."""
    fitted, held = reading.divided(seed)
    last = len(reading.numbers) - 1
    if reading.numbers[last] != reading.layers:
        raise UserError("head_importance: the last layer must be among layers:, since the loss is that of its probe")
    solutions = reading.fit(Split(fitted.rows, fitted.gold, fitted.layers[last:]))[0]
    return reading.best(held, last, solutions), held


def _losses(reading: Reading, reader: VectorReader, split: Split, solution: Solution) -> Callable:
    """Return the loss of the probe on some texts, see `importance`: the sum over their vectors."""
    targets = _by_row(split)

    def loss(positions: np.ndarray, batch: Batch) -> torch.Tensor:
        vectors = reader.head.vectors(read_states(reader.encoder, reader.head, batch, {}), batch)
        vectors = vectors[batch.first_pieces >= 0] if reading.words else vectors
        gold = torch.as_tensor(np.concatenate([targets[position] for position in positions]), device=reading.device)
        return _loss(solution.logits(vectors), gold, bool(reading.labels))

    return loss


def _by_row(split: Split) -> list[np.ndarray]:
    """Return the targets of each row: one of a text, or those of its words that have a piece."""
    seen = split.layers[0].seen
    if seen is None:
        return [np.asarray([target]) for target in split.gold]
    return [np.asarray(tags)[there] for tags, there in zip(split.gold, seen, strict=True)]


def _loss(logits: torch.Tensor, gold: torch.Tensor, labels: bool) -> torch.Tensor:
    """Return the sum over vectors of the loss that the probe was fitted by."""
    if gold.ndim == 2:
        return functional.binary_cross_entropy_with_logits(logits, gold.to(logits.dtype), reduction="sum")
    if labels:
        return functional.cross_entropy(logits, gold, reduction="sum")
    return (logits.squeeze(1) - gold.to(logits.dtype)).square().sum()


def _score(reading: Reading, reader: VectorReader, solution: Solution, removed: np.ndarray) -> float | None:
    """Return the main metric on validation without some heads."""
    name = reading.task["validation"]
    split = reading.splits[name]
    rows, gold = split.rows[: reading.entry.examples], split.gold[: reading.entry.examples]
    words = [len(tags) for tags in gold] if reading.words else None
    # Not `reader`, which keeps vectors of other masks.
    masked_reader = VectorReader(reader.encoder, reader.head, [], reading.device)
    with masked(reader.encoder, 1, removed):
        vectors = masked_reader(reading.inputs.store, name, rows, words)
    return reading.main(Split(rows, gold, [vectors]), 0, solution)


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
    raw = importance(reading, model.encoder, rows, _own_losses(reading, model, rows))
    normed, orders = ranked(raw, seed)
    removed = [
        {"order": name, "share": share}
        | _without(reading, model, order[: round(share * raw.size)], name == "importance")
        for name, order in orders.items()
        for share in SHARES
    ]
    return by_layer(raw, normed, removed, seed, both=False)


def _own_losses(reading: Reading, model: TaskModel, rows: np.ndarray) -> Callable:
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


def take_out(encoder: Encoder, removed: set[int]) -> None:
    """Take heads out of the matrices of queries, keys, values and of the output of their layers.

    A layer keeps one head at least: of one that would lose all, the first stays with an output of 0. Args: indices of
    heads, counted through all layers. Raises UserError for an encoder whose heads share a matrix or are a fixed number.
    """
    layers = encoder.model.get_submodule(encoder.anatomy.layers)
    count = getattr(encoder.model.config, "num_attention_heads", 0)
    for number, (layer, matrices) in enumerate(zip(layers, encoder.sublayers, strict=True)):
        if not count or matrices.fused or set(matrices.roles) != set("qkv"):
            raise UserError("head_removal: this encoder has no separate queries, keys and values in each layer")
        kept = [head for head in range(count) if number * count + head not in removed]
        for one in matrices.heads(kept or [0], count):
            _keep(layer.get_submodule(one.module), one.tensor, one.dimension, one.places)
        if not kept:
            nn.init.zeros_(layer.get_submodule(matrices.output).weight)


def _keep(module: nn.Linear, name: str, dimension: int, places: list[int]) -> None:
    """Keep some rows (dimension 0) or columns (1) of a matrix, or places of its bias."""
    tensor = getattr(module, name).detach().index_select(dimension, torch.tensor(places, device=module.weight.device))
    setattr(module, name, nn.Parameter(tensor.contiguous(), requires_grad=False))
    module.out_features, module.in_features = module.weight.shape
