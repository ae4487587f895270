"""How many floating-point operations a second one core of this machine does in a product of two matrices.

python -m thaw.compute_cost.matrix_rate

A program of its own, since numpy's libraries read how many threads they may take only as they start. It counts the
processor's seconds and not the clock's, so that other programs on the machine change little.
"""

import os
import time

SIZE, REPEATED = 1024, 10
LIBRARIES = ("OPENBLAS", "OMP", "MKL", "VECLIB")  # that multiply for numpy


def main() -> None:
    """Print the operations a second of the fastest of some products."""
    os.environ |= {f"{library}_NUM_THREADS": "1" for library in LIBRARIES}
    import numpy as np

    matrix, best = np.ones((SIZE, SIZE), dtype=np.float32), float("inf")
    for _ in range(REPEATED):
        start = time.process_time()
        matrix @ matrix
        best = min(best, time.process_time() - start)
    print(2 * SIZE**3 / best)


if __name__ == "__main__":
    main()
