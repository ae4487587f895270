"""How a rule chooses a point of a strategy in each seed of a task, replayed on finished runs, and what it spends.

Costs are prices, in units of one run of full fine-tuning.
"""

from dataclasses import dataclass

import numpy as np

from thaw.outputs.frame.choice_points import RUNGS


@dataclass(frozen=True)
class Taken:
    """What a rule takes in each seed, and what it spends on average over seeds."""

    points: dict
    cost: float


def best(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Train all points of a rule and take the best on validation. Args: the rule; Points by task; full's strategy."""
    points = tasks[task]
    among = [point for point in points.of(rule["among"]) if rule.get("variant") in (None, point[1])]
    if not among:
        return None
    cost = points.price[among].sum() / points.price[points.of([whole])].sum()
    return Taken({seed: points.best(seed, among) for seed in points.test.index}, cost)


def halved(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Train all points to the first rung, and after each rung the better half further (Karnin et al. 2013)."""
    points = tasks[task]
    among = points.of(rule["among"])
    if not among or not _is_seen(points, among):
        return None
    one, before = points.price[points.of([whole])].sum(), points.before[among].sum()
    training, taken, costs = points.price - points.before, {}, []
    for seed in points.test.index:
        left, done, spent = among, 0.0, before
        for number, rung in enumerate(RUNGS):
            spent = spent + (rung - done) * training[left].sum()
            done = rung
            ranked = sorted(left, key=lambda point: -points.rungs[seed, point][number])
            left = ranked[: -(-len(left) // 2)] if rung < 1 else ranked[:1]
        taken[seed] = left[0]
        costs.append(spent / one)
    return Taken(taken, np.mean(costs))


def by_chance(rule: dict, tasks: dict, task: str, whole: str) -> Taken | None:
    """Train one of the points, each with the same probability."""
    points = tasks[task]
    among = points.of(rule["among"])
    if not among:
        return None
    cost = points.price[among].mean() / points.price[points.of([whole])].sum()
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
    (first, *_) = points.of(rule["among"])
    paid = [points.price[point] + (points.before[first] if point != first else 0.0) for point in chosen.values()]
    return Taken(chosen, np.mean(paid) / points.price[points.of([whole])].sum())


def _others(tasks: dict, task: str) -> dict:
    """Return the tasks of other datasets than a task's."""
    return {name: one for name, one in tasks.items() if one.corpus != tasks[task].corpus}


def _is_seen(points, among: list[tuple]) -> bool:
    """Return whether validation was scored at each rung of some points in all seeds."""
    return not any(np.isnan(points.rungs[seed, point]).any() for seed in points.test.index for point in among)


WAYS = {"best": best, "halving": halved, "logme": by_evidence, "random": by_chance}
