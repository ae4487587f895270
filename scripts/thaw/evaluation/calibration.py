"""How far the probabilities of a classifier are true, and the temperature that mends them.

N examples, C classes; probabilities [N, C]; gold [N] class indices. Confidence: the probability of the predicted class.
"""

from dataclasses import dataclass

import numpy as np

BINS = 15  # of confidence, of equal width, as in Guo et al. 2017
LEAST = float(np.finfo(np.float32).tiny)  # a probability that was rounded to 0
LIMITS = (1e-2, 1e2)  # of temperatures
DRAWS = 200  # of labels, for the error that true probabilities would show
ENOUGH = 30  # rows of validation
BAD = 0.05  # an expected calibration error below it is not worth a sentence


@dataclass(frozen=True)
class Calibration:
    """The calibration of one arm on test, means over seeds.

    error: expected calibration error. usual: what it is at most for true probabilities, in 95 % of draws of as many
    rows. brier: sum over classes of squared errors. log_loss in nats. selective_risk: the area under the curve of risk
    against coverage. temperature: fitted on so many rows of validation; tempered: the error
    after it.
    """

    error: float
    usual: float
    brier: float
    log_loss: float
    selective_risk: float
    temperature: float
    tempered: float
    fitted_on: float

    @property
    def bad(self) -> bool:
        return self.error > max(BAD, self.usual)

    @property
    def mended(self) -> bool:
        """Whether the temperature may be told: it helps, is no limit, and enough rows chose it."""
        inside = 2 * LIMITS[0] < self.temperature < LIMITS[1] / 2
        return inside and self.tempered < self.error and self.fitted_on >= ENOUGH

    @classmethod
    def of(cls, test: list[tuple], validation: list[tuple]) -> "Calibration":
        """Measure an arm. Args: for each seed (probabilities, gold) on both splits."""
        each = []
        for (shares, gold), on_validation in zip(test, validation, strict=True):
            fitted = temperature(*on_validation)
            measures = [measure(shares, gold) for measure in (expected_error, usual_error, brier, log_loss)]
            tempered = expected_error(at_temperature(shares, fitted), gold)
            each.append([*measures, selective_risk(shares, gold), fitted, tempered, len(on_validation[1])])
        return cls(*np.mean(each, axis=0).tolist())


def expected_error(probabilities, gold) -> float:
    """Return the mean over examples of their bin's distance between mean confidence and accuracy (Guo et al. 2017)."""
    right = probabilities.argmax(1) == gold
    return float(_by_bin(probabilities.max(1), right[None])[0])


def usual_error(probabilities, gold) -> float:
    """Return the 95th percentile of `expected_error` where labels are drawn from the probabilities themselves."""
    confidence = probabilities.max(1)
    right = np.random.default_rng(0).random((DRAWS, len(confidence))) < confidence
    return float(np.quantile(_by_bin(confidence, right), 0.95))


def _by_bin(confidence, right) -> np.ndarray:
    """Return the expected calibration error of each draw, [D]. Args: confidence [N]; which are right [D, N]."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    distances = [np.abs((right[:, bins == one] - confidence[bins == one]).sum(1)) for one in np.unique(bins)]
    return np.sum(distances, axis=0) / len(confidence)


def brier(probabilities, gold) -> float:
    """Return the mean over examples of the sum over classes of squared errors (Brier 1950)."""
    return float(np.square(probabilities - np.eye(probabilities.shape[1])[gold]).sum(1).mean())


def log_loss(probabilities, gold) -> float:
    """Return the mean negative logarithm of the probability of the true class, in nats."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(gold)), gold], LEAST)).mean())


def selective_risk(probabilities, gold) -> float:
    """Return the mean over coverages of the error rate among the most confident (Geifman et al. 2019)."""
    order = np.argsort(-probabilities.max(1), kind="stable")
    wrong = (probabilities.argmax(1) != gold)[order]
    return float((np.cumsum(wrong) / np.arange(1, len(gold) + 1)).mean())


def at_temperature(probabilities, temperature: float) -> np.ndarray:
    """Return the probabilities of the logits divided by a temperature."""
    logits = np.log(np.maximum(probabilities, LEAST)) / temperature
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


def temperature(probabilities, gold) -> float:
    """Return the temperature of the least `log_loss` (Guo et al. 2017), between LIMITS."""
    from scipy.optimize import minimize_scalar

    def loss(exponent: float) -> float:
        return log_loss(at_temperature(probabilities, np.exp(exponent)), gold)

    return float(np.exp(minimize_scalar(loss, bounds=np.log(LIMITS), method="bounded").x))
