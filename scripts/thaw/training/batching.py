"""Which rows stand together in a batch, and in which order batches come.

N rows, B rows of a batch.
"""

import numpy as np

POOL = 50  # batches whose rows are sorted among themselves: little padding, and still a random order


def shuffled_batches(lengths: np.ndarray, size: int, seed: int) -> list[np.ndarray]:
    """Return one epoch's batches: positions into `lengths` [N], each once, `size` a batch but for one last rest.

    Rows are shuffled, sorted by length within pools of 50 batches, cut into batches, and the batches shuffled, so
    that rows of like length stand together.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [batches[i] for i in random.permutation(len(batches))]
