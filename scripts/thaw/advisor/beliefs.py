"""What is believed of the candidates' gains over the linear probe: before a run of theirs, and after some.

a candidates, t past tasks, f features of a task. Gains are in points (score x 100); candidate 0 is the linear probe,
whose gain is 0. A candidate is observed at a rung: a share of its updates, after which validation was scored. After
Swersky et al. 2014 (Freeze-Thaw Bayesian Optimization), with one normal distribution over the gains of all candidates
in place of processes over curves.
"""

from dataclasses import dataclass

import numpy as np

RUNGS = (0.125, 0.25, 0.5, 1.0)
UNKNOWN_SD, UNKNOWN_CORRELATION = 8.0, 0.7  # of gains without past tasks
RIDGE = 1.0  # on features in units of their standard deviation: the weight of one task
SHRINKAGE = 0.5  # of correlations between candidates: few tasks show them badly
LEAST_SD = 0.5  # of a gain, in points: past tasks never make one certain


@dataclass(frozen=True)
class Past:
    """One task and draw that was run whole.

    features [f]: what the probes said of it; gains [a]: of the finished candidates on test over the linear probe;
    seen [rungs, a]: of validation at each rung over the linear probe's.
    """

    task: str
    features: np.ndarray
    gains: np.ndarray
    seen: np.ndarray

    @classmethod
    def of(cls, task: str, seen: np.ndarray, test: np.ndarray, probes: int) -> "Past":
        """Return a task by its scores on validation [rungs, a] and on test [a]; the first candidates are the probes."""
        return cls(task, features_of(seen[-1, :probes]), test - test[0], seen - seen[-1, 0])


def features_of(probes: np.ndarray) -> np.ndarray:
    """Return what the probes' scores on validation [f] say of a task: the first one's, and what others gain over it."""
    return np.array([probes[0], *(probes[1:] - probes[0])])


@dataclass(frozen=True)
class Rungs:
    """How a gain on validation at each rung relates to the gain on test at the end: share [rungs], variance [rungs]."""

    share: np.ndarray
    variance: np.ndarray


@dataclass(frozen=True)
class Beliefs:
    """A normal distribution over the gains of the candidates: mean [a], covariance [a, a]."""

    mean: np.ndarray
    covariance: np.ndarray

    def after(self, observed: dict[int, tuple[int, float]], rungs: Rungs) -> "Beliefs":
        """Return the distribution given the last observation of some candidates: index: (rung, gain on validation).

        The linear-Gaussian update. Of a candidate's rungs only the last one counts: an earlier one is part of it.
        """
        if not observed:
            return self
        index = list(observed)
        share = np.array([rungs.share[rung] for rung, _ in observed.values()])
        noise = np.diag([rungs.variance[rung] for rung, _ in observed.values()])
        off = np.array([gain for _, gain in observed.values()]) - share * self.mean[index]
        crossed = self.covariance[:, index] * share  # [a, observed]
        weights = np.linalg.solve(crossed[index] * share[:, None] + noise, crossed.T).T
        return Beliefs(self.mean + weights @ off, self.covariance - weights @ crossed.T)

    def draws(self, count: int) -> np.ndarray:
        """Return gains drawn from the distribution, [count, a], from a fixed seed."""
        values, vectors = np.linalg.eigh(self.covariance)
        factor = vectors * np.sqrt(np.clip(values, 0.0, None))
        return self.mean + np.random.default_rng(0).standard_normal((count, len(self.mean))) @ factor.T


def before(features: np.ndarray, past: list[Past], count: int) -> Beliefs:
    """Return the beliefs about a new task with these features [f], before any run. Args: past; how many candidates.

    Means by ridge regression of gains on features, a task one observation whatever its draws; covariance that of what
    the regression leaves of each task when it is fitted to the others, with correlations shrunk to zero. With fewer
    than three past tasks a wide distribution around zero.
    """
    tasks = list(dict.fromkeys(one.task for one in past))
    if len(tasks) < 3:
        correlations = np.full((count, count), UNKNOWN_CORRELATION)
        np.fill_diagonal(correlations, 1.0)
        correlations[0] = correlations[:, 0] = 0.0
        return Beliefs(np.zeros(count), UNKNOWN_SD**2 * correlations)
    known, gains = (
        np.array([np.mean([getattr(one, name) for one in past if one.task == task], axis=0) for task in tasks])
        for name in ("features", "gains")
    )
    centre, scale = known.mean(0), np.maximum(known.std(0), 1e-9)
    scaled = (known - centre) / scale
    inverse = np.linalg.inv(scaled.T @ scaled + RIDGE * np.eye(len(centre)))
    weights = inverse @ scaled.T @ (gains - gains.mean(0))
    leverage = 1 / len(tasks) + np.einsum("tf,fg,tg->t", scaled, inverse, scaled)
    left = (gains - gains.mean(0) - scaled @ weights) / (1 - leverage)[:, None]
    covariance = left.T @ left / len(tasks)
    least = np.array([0.0, *[LEAST_SD**2] * (count - 1)])
    diagonal = np.diag(np.maximum(np.diag(covariance), least))
    mean = gains.mean(0) + (features - centre) / scale @ weights
    return Beliefs(mean, (1 - SHRINKAGE) * covariance + SHRINKAGE * diagonal)


def rungs_of(past: list[Past], rows: int) -> Rungs:
    """Return how rungs relate to the end, by least squares through zero over all past tasks, draws and candidates.

    Probes, of which there are as many as features and which are first, have no rungs and do not count.
    Without past tasks a rung r shows the share sqrt(r) of a gain, with the error of two accuracies of one half on so
    many validation rows, and of four points for what is still to be trained.
    """
    if len({one.task for one in past}) < 3:
        rung = np.array(RUNGS)
        return Rungs(np.sqrt(rung), 2 * 100**2 / (4 * rows) + (4.0 * (1 - rung)) ** 2)
    gains = np.concatenate([one.gains[len(one.features) :] for one in past])
    seen = np.concatenate([one.seen[:, len(one.features) :] for one in past], axis=1)  # [rungs, all]
    share = seen @ gains / max(float(gains @ gains), 1e-9)
    left = seen - share[:, None] * gains
    return Rungs(share, np.maximum((left**2).mean(1), LEAST_SD**2))
