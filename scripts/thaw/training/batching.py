"""The batches of an epoch: which rows form a batch, and the order of the batches.

N rows, B rows of a batch.
"""

import numpy as np

POOL = 50  # batches whose rows are sorted among themselves: little padding, and still a random order


def shuffled_batches(lengths: np.ndarray, size: int, seed: int) -> list[np.ndarray]:
    """Return one epoch's batches: positions into `lengths` [N], each once, `size` a batch but for the last.

    Rows are shuffled, sorted by length within pools of 50 batches, cut into batches, and the batches shuffled, so
    that the rows of a batch have similar lengths.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [batches[i] for i in random.permutation(len(batches))]
