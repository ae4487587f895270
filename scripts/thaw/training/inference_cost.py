"""What one prediction costs: it differs between strategies, since an encoder ends at the highest layer that is read.

N examples of a split, S sequences of an example (1; 2 where the texts of pairs are read separately; its windows).
"""

from dataclasses import replace

import numpy as np
import torch

from thaw.compute_cost.flops import encoder_flops
from thaw.features.batch import pieces
from thaw.features.store import FeatureStore
from thaw.heads.base import Head
from thaw.training.context import TaskContext


def inference_cost(context: TaskContext, head: Head, inserted: int = 0) -> dict:
    """Return the layers of the encoder that a prediction needs, and the mean operations of one test example.

    They are those of a trained model that is given one text or pair at a time, each sequence by itself and nothing from
    a cache: of the embeddings and the layers up to the highest one that the head reads, of inserted matrices (each
    parameter is multiplied once a token), of what combines the layers, as a side network, and of the head. The examples
    are the scored ones of the task's first test split.
    """
    shape, store, split = context.shape_below(head), context.store, context.task["test"][0]
    rows, counts = _distinct(store, split, context.rows[split])
    total = 0.0
    for row, count in zip(rows, counts, strict=True):
        batch = store.batch(split, [row])
        lengths = batch.mask.sum(1).tolist()
        alone = [replace(batch, mask=batch.mask[[place], :tokens]) for place, tokens in enumerate(lengths)]
        encoder = encoder_flops(shape, lengths) + 2 * inserted * sum(lengths)
        total += count * (encoder + sum(map(head.combination.flops, alone)) + head.flops(batch))
    return {"layers": shape.layers, "flops": float(total / counts.sum())}


def _distinct(store: FeatureStore, split: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one row of each shape among some rows, and how many have it: operations depend on lengths alone."""
    lengths = np.concatenate([_lengths(store, split, piece) for piece in pieces(rows)])
    _, first, counts = np.unique(lengths, axis=0, return_index=True, return_counts=True)
    return rows[first], counts


def _lengths(store: FeatureStore, split: str, rows: np.ndarray) -> np.ndarray:
    """Return the tokens of each sequence and of each text in it, the words, and those with a token, int [N, ...]."""
    batch = store.batch(split, rows)
    tokens = torch.stack([batch.mask.sum(1), (batch.texts == 1).sum(1), (batch.texts == 2).sum(1)], 1)
    counts = store.counts(split)
    each = np.zeros((len(rows), counts.max(), 3), np.int64)
    each[np.arange(counts.max()) < counts[rows][:, None]] = tokens.numpy()
    numbers = [each.reshape(len(rows), -1)]
    if batch.first_pieces is not None:
        numbers += [store.has_word(split)[1][rows][:, None], (batch.first_pieces >= 0).sum(1).numpy()[:, None]]
    return np.concatenate(numbers, axis=1)
