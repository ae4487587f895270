"""How a rule chooses a point of a strategy in each seed of a task, replayed on finished runs, and what it spends.

Costs [2] are in units of one whole run of full fine-tuning: with the whole extraction of features, and with a share.
"""

from dataclasses import dataclass

import numpy as np

from thaw.advisor.beliefs import RUNGS, Past, before, rungs_of
from thaw.advisor.policy import Advice, Advisor


@dataclass(frozen=True)
class Taken:
    """What a rule takes in each seed, and what it spends on average over seeds."""

    points: dict
    cost: np.ndarray


def best(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Train all points of a rule and take the best on validation. Args: the rule; Points by task; full's strategy."""
    points = tasks[task]
    among = [point for point in points.of(rule["among"]) if rule.get("variant") in (None, point[1])]
    if not among:
        return None
    cost = points.seconds(among) / points.seconds(points.of([whole]))
    return Taken({seed: points.best(seed, among) for seed in points.test.index}, cost)


def halved(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Train all points to the first rung, and after each rung the better half further (Karnin et al. 2013)."""
    points = tasks[task]
    among = points.of(rule["among"])
    if not among:
        return None
    one = points.seconds(points.of([whole]))
    taken, costs = {}, []
    for seed in points.test.index:
        left, done, spent = among, 0.0, points.extraction.loc[among].max().to_numpy()
        for number, rung in enumerate(RUNGS):
            spent = spent + (rung - done) * points.training[left].sum()
            done = rung
            ranked = sorted(left, key=lambda point: -points.rungs[seed, point][number])
            left = ranked[: -(-len(left) // 2)] if rung < 1 else ranked[:1]
        taken[seed] = left[0]
        costs.append(spent / one)
    return Taken(taken, np.mean(costs, axis=0))


def by_evidence(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Take the first of two points where LogME of the frozen layers is above a threshold, else the second.

    The threshold is the one by which the other tasks' runs lose least, of several the middle one. The time that LogME
    takes is not counted.
    """
    points, others = tasks[task], [one for name, one in tasks.items() if name != task]
    if any(len(one.of(rule["among"])) != 2 or set(one.test.index) - set(one.evidence) for one in (points, *others)):
        return None
    values = np.unique([value for one in others for value in one.evidence.values()])
    thresholds = [-np.inf, *(values[1:] + values[:-1]) / 2, np.inf]

    def taken(one, threshold: float) -> dict:
        first, second = one.of(rule["among"])
        return {seed: first if one.evidence[seed] > threshold else second for seed in one.test.index}

    lost = np.array([np.nanmean([one.regret(taken(one, threshold)) for one in others]) for threshold in thresholds])
    least = np.flatnonzero(lost <= lost.min() + 1e-9)
    chosen = taken(points, thresholds[least[len(least) // 2]])
    unit = points.seconds(points.of([whole]))
    return Taken(chosen, np.mean([points.seconds([point]) / unit for point in chosen.values()], axis=0))


def advised(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Let the advisor decide, which knows of the other tasks what all runs gave, and of this one only one seed.

    Its probes are fitted first; the first of them is what gains are over. Points that a task lacks are no candidates.
    """
    points, others = tasks[task], {name: one for name, one in tasks.items() if name != task}
    named = list(dict.fromkeys(points.of([*rule["probes"], *rule["among"]])))
    candidates = [point for point in named if all(point in one.test.columns for one in others.values())]
    if not candidates or candidates[0][0] != rule["probes"][0]:
        return None
    probes = [place for place, point in enumerate(candidates) if point[0] in rule["probes"]]
    past = [_past(name, one, seed, candidates, probes) for name, one in others.items() for seed in one.test.index]
    unit = points.seconds(points.of([whole]))
    training = points.training[candidates].to_numpy()
    first = (points.extraction.loc[candidates].max().to_numpy() + training[probes].sum()) / unit
    costs = training / unit[1]
    costs[probes] = 0.0
    taken, spent = {}, []
    for seed in points.test.index:
        now = _past(task, points, seed, candidates, probes)
        beliefs, rungs = before(now.features, past, len(candidates)), rungs_of(past, points.rows)
        advice = _decide(
            Advisor(costs, beliefs, rungs, rule["price"], rule["budget"] - float(first[1])), now.seen, probes
        )
        taken[seed] = candidates[advice.taken]
        spent.append(first + advice.spent)
    return Taken(taken, np.mean(spent, axis=0))


def _decide(advisor: Advisor, seen: np.ndarray, probes: list[int]) -> Advice:
    """Return what the advisor takes. Args: gains on validation [rungs, a] that it sees as it asks; its probes."""
    for place in probes:
        advisor.observe(place, len(RUNGS) - 1, float(seen[-1, place]))
    while step := advisor.next():
        candidate, rung = step
        advisor.observe(candidate, rung, float(seen[rung, candidate]))
    return advisor.choose()


def _past(task: str, points, seed, candidates: list[tuple], probes: list[int]) -> Past:
    """Return one seed of a task: what its probes say, and the gains over the first of them."""
    test = points.test.loc[seed, candidates].to_numpy()
    seen = np.array([points.rungs[seed, point] for point in candidates]).T
    gains = seen - seen[-1, 0]
    return Past(task, np.array([seen[-1, 0], *gains[-1, probes[1:]]]), test - test[0], gains)


WAYS = {"best": best, "halving": halved, "advisor": advised, "logme": by_evidence}
