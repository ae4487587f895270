"""What a search is worth: the best score to expect of so many trials."""

import numpy as np


def expected_maximum(scores) -> list[float]:
    """Return the expected best validation score of 1 to N trials drawn from the N that were run, with replacement.

    Dodge et al. 2019, equation 6: the sum over scores v of v (P(V <= v)^n - P(V < v)^n). Args: scores of the trials.
    """
    values = np.sort(np.asarray(scores, dtype=np.float64))
    upto = np.arange(1, len(values) + 1) / len(values)
    below = upto - 1 / len(values)
    return [float((values * (upto**n - below**n)).sum()) for n in range(1, len(values) + 1)]
