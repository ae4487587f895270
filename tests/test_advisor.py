"""The advisor: beliefs against plain conditioning, the value of an observation against simulation, and replays."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

import invented
from test_choice_rules import runs_of
from thaw.advisor.beliefs import RUNGS, Beliefs, Past, Rungs, before, rungs_of
from thaw.advisor.policy import Advisor, knowledge_gradient
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import choice_rules, writers

HISTORY = "phase,epoch,step,loss,rate,validation_accuracy"
SHARES = Rungs(np.array([0.3, 0.6, 0.9, 1.0]), np.array([9.0, 6.0, 4.0, 2.0]))
WIDE = Beliefs(np.array([0.0, 3.0, 5.0]), np.array([[0.0, 0.0, 0.0], [0.0, 9.0, 6.0], [0.0, 6.0, 16.0]]))


def test_an_observation_changes_beliefs_as_the_precision_form_says():
    seen = {1: (0, 2.0), 2: (2, 1.0)}
    now = WIDE.after(seen, SHARES)
    prior = np.linalg.inv(WIDE.covariance[1:, 1:])
    share, noise = SHARES.share[[0, 2]], SHARES.variance[[0, 2]]
    covariance = np.linalg.inv(prior + np.diag(share**2 / noise))
    mean = covariance @ (prior @ WIDE.mean[1:] + share / noise * np.array([2.0, 1.0]))
    assert now.covariance[1:, 1:] == pytest.approx(covariance) and now.mean[1:] == pytest.approx(mean)
    assert now.mean[0] == 0 and not now.covariance[0].any(), "the probe's gain is 0 whatever is seen"
    assert WIDE.after({}, SHARES) is WIDE


def test_the_value_of_an_observation_between_two_candidates_is_what_simulation_gives():
    beliefs = Beliefs(np.array([0.0, -1.0]), np.array([[0.0, 0.0], [0.0, 16.0]]))
    share, variance = 0.6, 6.0
    rng = np.random.default_rng(1)
    gains = -1 + 4 * rng.standard_normal(200_000)
    seen = share * gains + np.sqrt(variance) * rng.standard_normal(200_000)
    means = -1 + 16 * share / (share**2 * 16 + variance) * (seen + share)
    value = knowledge_gradient(beliefs, beliefs.mean, 1, share, variance)
    assert value == pytest.approx(np.maximum(means, 0).mean(), abs=0.02)
    assert knowledge_gradient(beliefs, beliefs.mean, 0, share, variance) == 0, "the probe is known"


def past_tasks(count: int, effect: float, noise: float = 1.0) -> list[Past]:
    """Return tasks, two draws each, whose second candidate gains `effect` for each unit of the feature, and 10 more."""
    rng, past = np.random.default_rng(2), []
    for task in range(count):
        feature = float(task)
        for _ in range(2):
            gains = np.array([0.0, 10 + effect * feature]) + np.array([0.0, noise]) * rng.standard_normal(2)
            seen = SHARES.share[:, None] * gains + np.sqrt(SHARES.variance)[:, None] * rng.standard_normal((4, 2))
            past.append(Past(f"t{task}", np.array([feature]), gains, seen))
    return past


def test_past_tasks_say_what_a_gain_is_and_how_much_of_it_a_rung_shows():
    past = past_tasks(40, 0.5)
    low, high = (before(np.array([feature]), past, 2).mean[1] for feature in (0.0, 40.0))
    assert low == pytest.approx(10, abs=1.5) and high == pytest.approx(30, abs=1.5)
    rungs = rungs_of(past, 200)
    assert rungs.share == pytest.approx(SHARES.share, abs=0.05)
    assert rungs.variance == pytest.approx(SHARES.variance, rel=0.4)


def test_without_past_tasks_beliefs_are_wide_and_the_probe_is_still_zero():
    beliefs = before(np.array([1.0]), past_tasks(2, 0.5), 3)
    assert not beliefs.mean.any() and beliefs.covariance[1, 1] == 64 and not beliefs.covariance[0].any()
    assert (np.diff(rungs_of([], 200).variance) < 0).all()


def test_it_trains_nothing_where_nothing_can_be_gained():
    flat = Beliefs(np.zeros(2), np.diag([0.0, 0.01]))
    advisor = Advisor(np.array([0.0, 1.0]), flat, SHARES, price=0.5, budget=2.0)
    assert advisor.next() is None and advisor.choose().taken == 0 and advisor.choose().spent == 0


def test_it_pays_for_a_rung_only_once_and_never_more_than_its_budget():
    advisor = Advisor(np.array([0.0, 1.0, 0.4]), WIDE, SHARES, price=0.5, budget=0.6)
    first = advisor.next()
    assert first[0] == 2 and first[1] > 0, "the cheaper one, as far as it shows something"
    advisor.observe(2, 0, 5.0)
    advisor.observe(2, 1, 6.0)
    assert advisor.spent == pytest.approx(RUNGS[1] * 0.4)
    while step := advisor.next():
        advisor.observe(*step, 6.0)
    assert advisor.spent <= 0.6
    done = advisor.choose()
    assert done.spent >= advisor.spent and done.probabilities.max() <= 1 and done.regret >= 0


RULES = [
    {"label": "Always full", "among": ["full"]},
    {"label": "Halving", "among": ["frozen", "top_k", "full"], "way": "halving"},
    {"label": "Advisor", "among": ["top_k", "full"], "way": "advisor", "probes": ["frozen"], "price": 1, "budget": 2},
]
# By task: the probe's score, and the gains of top_k and full; where the probe is good nothing is gained.
GAINS = {"a": (95, 0, 0), "b": (94, 0.3, 0.4), "c": (70, 8, 9), "d": (72, 7, 9), "e": (93, 0, 0.3), "f": (69, 9, 10)}


def progress_of(folder) -> OutputData:
    """Return runs of six tasks, whose scores rise with the root of their updates; full costs 16, top k 5."""
    frames = []
    for task, (probe, *gains) in GAINS.items():
        scores = {"frozen": (probe, probe, 1.0, 4.0)}
        for name, gain, seconds in zip(("top_k", "full"), gains, (5.0, 16.0), strict=True):
            scores[name] = (probe + gain, probe + gain, seconds, 4.0)
        frames.append(runs_of(scores, [task]))
    runs = pd.concat(frames, ignore_index=True).assign(n=200)
    runs["folder"] = ["/".join(map(str, key)) for key in runs[["task", "strategy", "seed"]].to_numpy()]
    for row in runs[(runs["role"] == "validation") & (runs["strategy"] != "frozen")].itertuples():
        start = GAINS[row.task][0] / 100
        scores = [start + (row.value - start) * share for share in np.sqrt(np.arange(1, 9) / 8)]
        lines = [f"1,1,{10 * n},0.1,1e-4,{score}" for n, score in enumerate(scores, 1)]
        (folder / row.folder).mkdir(parents=True)
        (folder / row.folder / "history.csv").write_text("\n".join([HISTORY, *lines]))
    return OutputData(folder, runs)


def replayed(folder) -> dict:
    """Return the lines of the CSV of a replay by rule and task."""
    table = choice_rules.build(progress_of(folder), invented.shown("r", "rule_table", whole="full", rules=RULES))
    return {(line["rule"], line["task"]): line for line in csv.DictReader(io.StringIO(writers.to_csv(table)))}


def test_a_replay_takes_the_probe_where_nothing_is_gained_and_full_where_much_is(tmp_path):
    lines, columns = replayed(tmp_path), ("regret", "cost", "cost_shared")
    numbers = {key: {name: float(line[name]) for name in columns} for key, line in lines.items()}
    for task, (_, _, full) in GAINS.items():
        assert numbers["Always full", task]["regret"] == 0
        assert numbers["Advisor", task]["regret"] <= 1, task
        assert numbers["Advisor", task]["cost"] <= 2
        if full < 1:
            assert numbers["Advisor", task]["cost_shared"] < 1, "where nothing is gained, less is trained"
    assert numbers["Halving", "f"]["regret"] == 0
    # three are trained to 1/8, two to 1/4, one to the end: (22 / 8 + 21 / 8 + 16 * 3 / 4) and the extraction, by 20
    assert numbers["Halving", "f"]["cost"] == pytest.approx((22 / 8 + 21 / 8 + 12 + 4) / 20, abs=1e-4)
