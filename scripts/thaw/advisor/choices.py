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
    if not among or not _is_seen(points, among):
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


def by_chance(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Train one of the points, each with the same probability."""
    points = tasks[task]
    among = points.of(rule["among"])
    if not among:
        return None
    unit = points.seconds(points.of([whole]))
    cost = np.mean([points.seconds([point]) / unit for point in among], axis=0)
    return Taken(dict.fromkeys(points.test.index, among), cost)


def by_evidence(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Take the first of two points where LogME of the frozen layers is above a threshold, else the second.

    The threshold is the one by which the runs of other datasets lose least, of several the middle one. The frozen
    layers are extracted in any case; the seconds of LogME itself are not counted.
    """
    points, others = tasks[task], list(_others(tasks, task).values())
    if any(len(one.of(rule["among"])) != 2 or set(one.test.index) - set(one.evidence) for one in (points, *others)):
        return None
    values = np.unique([value for one in others for value in one.evidence.values()])
    thresholds = [-np.inf, *(values[1:] + values[:-1]) / 2, np.inf]

    def taken(one, threshold: float) -> dict:
        first, second = one.of(rule["among"])
        return {seed: first if one.evidence[seed] > threshold else second for seed in one.test.index}

    lost = np.array([[one.regret(taken(one, threshold)) for one in others] for threshold in thresholds])
    known = lost[:, ~np.isnan(lost).any(0)]
    if not known.size:
        return None
    means = known.mean(1)
    least = np.flatnonzero(means <= means.min() + 1e-9)
    chosen = taken(points, thresholds[least[len(least) // 2]])
    extraction = points.extraction.loc[points.of(rule["among"][:1])].max().to_numpy()
    seconds = [extraction + points.training[point] for point in chosen.values()]
    return Taken(chosen, np.mean(seconds, axis=0) / points.seconds(points.of([whole])))


def advised(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Let the advisor decide, which knows what the runs of other datasets gave, and of this task only one seed.

    Its probes are fitted first; the first of them is what gains are over. Points that a task lacks are no candidates.
    The budget counts the whole extraction.
    """
    points, others = tasks[task], _others(tasks, task)
    named = list(dict.fromkeys(points.of([*rule["probes"], *rule["among"]])))
    every = [points, *others.values()]
    candidates = [
        point for point in named if all(point in one.test.columns and _is_seen(one, [point]) for one in every)
    ]
    if not candidates or candidates[0][0] != rule["probes"][0]:
        return None
    probes = [place for place, point in enumerate(candidates) if point[0] in rule["probes"]]
    past = [_past(one.corpus, one, seed, candidates, len(probes)) for one in others.values() for seed in one.test.index]
    unit = points.seconds(points.of([whole]))
    training = points.training[candidates].to_numpy()
    first = (points.extraction.loc[candidates].max().to_numpy() + training[probes].sum()) / unit
    costs = training / unit[0]
    costs[probes] = 0.0
    taken, spent = {}, []
    for seed in points.test.index:
        now = _past(task, points, seed, candidates, len(probes))
        beliefs, rungs = before(now.features, past, len(candidates)), rungs_of(past, points.rows)
        advisor = Advisor(costs, beliefs, rungs, rule["price"], rule["budget"], float(first[0]))
        advice = _decide(advisor, now.seen, probes)
        taken[seed] = candidates[advice.taken]
        spent.append(first + (advice.spent - first[0]) * unit[0] / unit)
    return Taken(taken, np.mean(spent, axis=0))


def _others(tasks: dict, task: str) -> dict:
    """Return the tasks of other datasets than a task's."""
    return {name: one for name, one in tasks.items() if one.corpus != tasks[task].corpus}


def _is_seen(points, among: list[tuple]) -> bool:
    """Return whether validation was scored at each rung of some points in all seeds."""
    return not any(np.isnan(points.rungs[seed, point]).any() for seed in points.test.index for point in among)


def _decide(advisor: Advisor, seen: np.ndarray, probes: list[int]) -> Advice:
    """Return what the advisor takes. Args: gains on validation [rungs, a] that it sees as it asks; its probes."""
    for place in probes:
        advisor.observe(place, len(RUNGS) - 1, float(seen[-1, place]))
    while step := advisor.next():
        candidate, rung = step
        advisor.observe(candidate, rung, float(seen[rung, candidate]))
    return advisor.choose()


def _past(task: str, points, seed, candidates: list[tuple], probes: int) -> Past:
    """Return one seed of a task. Args: the candidates, of which so many are probes, and these are first."""
    seen = np.array([points.rungs[seed, point] for point in candidates]).T
    return Past.of(task, seen, points.test.loc[seed, candidates].to_numpy(), probes)


WAYS = {"best": best, "halving": halved, "advisor": advised, "logme": by_evidence, "random": by_chance}
