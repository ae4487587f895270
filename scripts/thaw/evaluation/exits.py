"""Early exits: which layer a text leaves at, and what threshold on its probability loses little.

K exits, N texts, C labels.
"""

import numpy as np

NEVER = 1.01  # no probability reaches it
THRESHOLDS = [*np.linspace(0, 1, 101).round(2).tolist(), NEVER]


class Exits:
    """The answers of texts that leave early. Args: probabilities [K, N, C] of the exits; the layers of these."""

    def __init__(self, probabilities: np.ndarray, layers: list[int]):
        self.sure, self.best, self.layers = probabilities.max(2), probabilities.argmax(2), np.array(layers)

    def leave(self, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Return how many layers each text executes, and its answer, both [N]; the last exit takes all that is left."""
        reached = self.sure >= threshold
        reached[-1] = True
        exits = reached.argmax(0)
        return self.layers[exits], self.best[exits, np.arange(len(exits))]


def loses(value: float | None, whole: float | None, within: float) -> bool:
    """Return whether a score is more than some points below another; an undefined one is."""
    return value is None or whole is None or value < whole - within / 100


def lowest(curve: dict[float, float | None], whole: float | None, within: float) -> float:
    """Return the lowest threshold from which on none loses more than some points.

    The lowest that passes by itself would more often be one that chance favours.
    """
    failing = [threshold for threshold, value in curve.items() if loses(value, whole, within)]
    return min((threshold for threshold in curve if threshold > max(failing, default=-1.0)), default=NEVER)
