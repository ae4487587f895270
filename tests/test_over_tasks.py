"""Claims over tasks: the trend against brute force, and the tables against numbers by hand."""

import csv
import io
from itertools import permutations, product

import numpy as np
import pytest

import invented
import scored_runs
from thaw.core.errors import UserError
from thaw.outputs.frame.output_data import OutputData
from thaw.outputs.tables import over_tasks, writers
from thaw.statistics.ordered_trend import falling


def brute(groups: list[list[float]]) -> float:
    """Return the same p by all permutations of the values, pairs counted one by one."""
    values, sizes = [value for group in groups for value in group], [len(group) for group in groups]

    def fallen(order) -> float:
        ends = np.cumsum([0, *sizes])
        parts = [order[a:b] for a, b in zip(ends, ends[1:], strict=False)]
        pairs = [(x, y) for i, one in enumerate(parts) for other in parts[i + 1 :] for x in one for y in other]
        return sum(1.0 if x > y else 0.5 if x == y else 0.0 for x, y in pairs)

    seen = fallen(values)
    return float(np.mean([fallen(order) >= seen for order in permutations(values)]))


@pytest.mark.parametrize(
    "groups",
    [
        [[5, 4, 6], [3, 3.5], [1, 2]],
        [[1, 2], [3, 4], [5]],
        [[2, 2, 1], [2, 1]],
        [[3.0], [2.0], [1.0]],
    ],
)
def test_the_p_of_a_trend_is_that_of_all_permutations(groups):
    assert falling(groups) == pytest.approx(brute(groups))


def test_a_perfect_trend_over_eight_tasks_has_one_way_in_560():
    assert falling([[8, 7, 6], [5, 4, 3], [2, 1]]) == pytest.approx(1 / 560)
    assert falling([[1, 2, 3], [], []]) == 1.0, "one group has no trend"


def test_p_of_a_trend_is_uniform_where_there_is_none():
    rng = np.random.default_rng(0)
    found = [falling([list(part) for part in np.split(rng.standard_normal(8), [3, 6])]) for _ in range(400)]
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.08


def test_a_trend_of_many_values_is_drawn_and_holds_its_own_order():
    rng = np.random.default_rng(1)
    groups = [list(shift + rng.standard_normal(8)) for shift in (2.0, 1.0, 0.0)]
    assert 0 < falling(groups) < 0.01


TASKS = {"a": 9.0, "b": 6.0, "c": 5.0, "d": 2.0, "e": 1.0, "f": 0.5}


def drawn(folder, weak=(), **spec):
    """Return the table of a claim with these contrasts by task, and the lines of its CSV; weak tasks are underfit."""
    import pandas

    frames = []
    for task, gain in TASKS.items():
        means = {("full", "base"): 0.7 + gain / 100, ("frozen", "base"): 0.7}
        frames.append(scored_runs.write(folder, means, seeds=(1, 2, 3), task=task).assign(role="test", main=True))
    runs = pandas.concat(frames, ignore_index=True)
    runs["flags"] = np.where(runs["task"].isin(weak) & (runs["strategy"] == "full"), "underfit", "")
    terms = [[1.0, "linear", "full", "base"], [-1.0, "linear", "frozen", "base"]]
    tests = [{"task": task, "metric": "accuracy", "split": "test", "terms": terms} for task in TASKS]
    entry = {"id": "gain", "encoder": "tiny", "claim": "Full is better.", "paper": "P", "above": 0, "tests": tests}
    shown = invented.shown("o", "over_tasks_table", claims=["gain"], findings=[entry], **spec)
    table = over_tasks.build(OutputData(folder, runs), shown)
    return runs, table, list(csv.DictReader(io.StringIO(writers.to_csv(table))))


def by_hand(runs) -> dict[str, float]:
    means = runs.groupby(["task", "strategy"])["value"].mean()
    return {task: 100 * (means[task, "full"] - means[task, "frozen"]) for task in TASKS}


def test_the_mean_over_tasks_and_its_test(tmp_path):
    runs, table, (line,) = drawn(tmp_path)
    values = np.array(list(by_hand(runs).values()))
    assert float(line["mean"]) == pytest.approx(values.mean(), abs=1e-3)
    half = 2.5706 * values.std(ddof=1) / np.sqrt(6)
    assert float(line["low"]) == pytest.approx(values.mean() - half, abs=1e-2)
    flips = np.array(list(product((1, -1), repeat=6))) @ values
    assert float(line["p"]) == pytest.approx(np.mean(np.abs(flips) >= abs(values.sum()) - 1e-9), abs=1e-4)
    assert line["tasks"] == "a b c d e f" and not line["left_out"]


def test_tasks_left_out_are_in_a_mean_of_their_own(tmp_path):
    runs, table, (line,) = drawn(tmp_path, weak=("a",))
    values = by_hand(runs)
    assert line["left_out"] == "a" and line["tasks"] == "b c d e f"
    assert float(line["mean"]) == pytest.approx(np.mean([values[task] for task in "bcdef"]), abs=1e-3)
    assert float(line["all_mean"]) == pytest.approx(np.mean(list(values.values())), abs=1e-3)
    cells = [cell.text for cell in table.groups[0].rows[0].cells]
    assert cells[1] == "–", "five tasks decide nothing"
    assert cells[3].endswith(f"a left out ({values['a']:.1f})")


def test_groups_in_their_order_have_their_means_and_one_p(tmp_path):
    runs, _, lines = drawn(tmp_path, ordered={"far": ["a", "b"], "middle": ["c", "d"], "near": ["e", "f", "z"]})
    values = by_hand(runs)
    far, middle, near, trend = lines
    assert float(far["mean"]) == pytest.approx((values["a"] + values["b"]) / 2, abs=1e-3)
    assert near["tasks"] == "e f" and middle["p"] == ""
    assert float(trend["p"]) == pytest.approx(
        falling([[values[t] for t in pair] for pair in ("ab", "cd", "ef")]), abs=1e-4
    )


def test_without_a_score_it_says_so(tmp_path):
    with pytest.raises(UserError, match="an over_tasks_table needs scores for one of its claims: gain"):
        runs = scored_runs.write(tmp_path, {("full", "base"): 0.9}, seeds=(1,)).assign(role="test", main=True)
        entry = {"id": "gain", "encoder": "tiny", "claim": "C", "paper": "P", "above": 0, "reason": "no runs"}
        shown = invented.shown("o", "over_tasks_table", claims=["gain"], findings=[entry])
        over_tasks.build(OutputData(tmp_path, runs), shown)
