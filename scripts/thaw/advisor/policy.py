"""What the advisor does next: train a candidate further, or stop and take one.

a candidates. Costs are in units of one whole run of full fine-tuning; a price says how many points one is worth.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import norm

from thaw.advisor.beliefs import RUNGS, Beliefs, Rungs

TOLERANCE = 1.0  # points below the best at which a candidate is as good
DRAWS = 10_000
LAST = len(RUNGS) - 1


@dataclass(frozen=True)
class Advice:
    """The candidate that is taken, what is expected to be lost by it, in points, and what was spent with its training.

    probabilities [a]: of each candidate, that it is within the tolerance of the best.
    """

    taken: int
    regret: float
    spent: float
    probabilities: np.ndarray


@dataclass
class Advisor:
    """Decides for one task. costs [a] of whole runs; beliefs before any run; what rungs show; the price of a full run
    in points; the budget in full runs.

    A candidate of cost 0, as a probe on stored states, is known whole before anything is trained.
    """

    costs: np.ndarray
    beliefs: Beliefs
    rungs: Rungs
    price: float
    budget: float
    spent: float = 0.0
    observed: dict[int, tuple[int, float]] = field(default_factory=dict)

    def observe(self, candidate: int, rung: int, gain: float) -> None:
        """Take in the gain of a candidate on validation at a rung, and charge what was trained since the last one."""
        self.spent += self.charge(candidate, rung)
        self.observed[candidate] = rung, gain

    def charge(self, candidate: int, rung: int = LAST) -> float:
        """Return the cost of training a candidate from where it is to a rung, by default to its end."""
        done = RUNGS[self.observed[candidate][0]] if candidate in self.observed else 0.0
        return float((RUNGS[rung] - done) * self.costs[candidate])

    @property
    def left(self) -> np.ndarray:
        """The cost of finishing each candidate, [a]."""
        return np.array([self.charge(candidate) for candidate in range(len(self.costs))])

    def next(self) -> tuple[int, int] | None:
        """Return a candidate and the rung to train it to, None where nothing that fits the budget is worth its price.

        The one that is expected to raise the value of what is taken in the end most for its cost: the knowledge
        gradient of Frazier et al. 2009 for correlated normal beliefs. A candidate's value is its mean gain less the
        price of finishing it.
        """
        now, left, best, most = self.beliefs.after(self.observed, self.rungs), self.left, None, 0.0
        values = now.mean - self.price * left
        for candidate in range(len(self.costs)):
            first = self.observed[candidate][0] + 1 if candidate in self.observed else 0
            for rung in range(first, len(RUNGS)):  # a later one too, where the next shows too little
                cost = self.charge(candidate, rung)
                if self.spent + max(cost, left[candidate]) > self.budget:
                    continue
                nearer = values.copy()
                nearer[candidate] += self.price * cost
                rise = knowledge_gradient(now, nearer, candidate, self.rungs.share[rung], self.rungs.variance[rung])
                worth = nearer.max() + rise - values.max() - self.price * cost
                if worth > 1e-9 and worth / max(cost, 1e-9) > most:
                    best, most = (candidate, rung), worth / max(cost, 1e-9)
        return best

    def worth_of_more(self) -> float:
        """Return by how many points one more full run is expected to raise the highest mean: of its best use."""
        now, rises = self.beliefs.after(self.observed, self.rungs), [0.0]
        for candidate in range(len(self.costs)):
            first = self.observed[candidate][0] + 1 if candidate in self.observed else 0
            for rung in range(first, len(RUNGS)):
                if self.charge(candidate, rung) <= 1:
                    shown = self.rungs.share[rung], self.rungs.variance[rung]
                    rises.append(knowledge_gradient(now, now.mean, candidate, *shown))
        return max(rises)

    def choose(self) -> Advice:
        """Return the candidate whose mean gain less the price of finishing it is highest, among those that fit."""
        now, left = self.beliefs.after(self.observed, self.rungs), self.left
        fits = self.spent + left <= self.budget + 1e-9
        taken = int(np.where(fits | (left == 0), now.mean - self.price * left, -np.inf).argmax())
        gains = now.draws(DRAWS)
        highest = gains.max(1, keepdims=True)
        regret = float((highest[:, 0] - gains[:, taken]).mean())
        return Advice(taken, regret, self.spent + float(left[taken]), (gains >= highest - TOLERANCE).mean(0))


def knowledge_gradient(now: Beliefs, values: np.ndarray, candidate: int, share: float, variance: float) -> float:
    """Return by how much the best value is expected to rise if a candidate is observed with that share and variance.

    The largest over the others of s f(-|d| / s), f(z) = z Phi(z) + phi(z), d the difference of its value to the best
    one's and s the standard deviation of that difference's change: a lower bound. Args: values [a], means less what is
    certain of each candidate.
    """
    leader = int(np.argmax(values))
    effect = now.covariance[:, candidate] * share
    deviation = np.sqrt(share**2 * now.covariance[candidate, candidate] + variance)
    change = np.abs(effect - effect[leader]) / deviation  # [a]
    moves = change > 0
    if not moves.any():
        return 0.0
    z = -np.abs(values - values[leader])[moves] / change[moves]
    return float((change[moves] * (z * norm.cdf(z) + norm.pdf(z))).max())
